"""The containers of the audit chains as they must be defined; Bicep creates the same in production."""

from collections.abc import Mapping
from typing import Any, Final

from azure.cosmos import PartitionKey
from azure.cosmos.aio import DatabaseProxy

from shared.provenance.ports import PROJECTED, Target

PARTITION_KEY_PATH: Final = "/chain"
UNIQUE_KEY_PATH: Final = "/append"
INDEXED_PATHS: Final = ("/chain/?", "/append/?", "/tip/timestamp/?", *(f"/p/{name}/?" for name in PROJECTED))


def indexing_policy() -> dict[str, Any]:
    """Return the policy that indexes what is filtered on and nothing else; ids are indexed always."""
    return {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": path} for path in INDEXED_PATHS],
        "excludedPaths": [{"path": "/*"}],
    }


async def create_containers(database: DatabaseProxy) -> None:
    """Create the containers of every target in a database; needs the account's key, tokens cannot."""
    unique: Any = {"uniqueKeys": [{"paths": [UNIQUE_KEY_PATH]}]}
    for target in Target:
        await database.create_container(
            target.value,
            PartitionKey(PARTITION_KEY_PATH),
            indexing_policy=indexing_policy(),
            unique_key_policy=unique,
        )


def faults_of(properties: Mapping[str, Any]) -> list[str]:
    """Return why a container cannot hold chains; empty when it can."""
    faults = []
    if properties.get("partitionKey", {}).get("paths") != [PARTITION_KEY_PATH]:
        faults.append(f"its partition key must be {PARTITION_KEY_PATH}")
    unique = properties.get("uniqueKeyPolicy") or {}
    if {"paths": [UNIQUE_KEY_PATH]} not in [{"paths": key.get("paths")} for key in unique.get("uniqueKeys", [])]:
        faults.append(f"it must have the unique key {UNIQUE_KEY_PATH}")
    if properties.get("defaultTtl"):
        faults.append("its items must not expire")
    return faults
