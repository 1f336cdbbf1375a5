"""Definitions of the Cosmos DB containers of the service; Bicep creates the containers from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.cosmos import PartitionKey
from azure.cosmos.aio import DatabaseProxy

from shared.provenance.ports import PROJECTED, Target

ITEMS_DECIDE: Final = -1
"""Default time to live of a container in which only items with a member ``ttl`` expire."""

_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class ContainerDefinition:
    """Definition of a Cosmos DB container.

    Attributes:
        name: name of the container.
        partition_key_path: path of the partition key (version 2).
        indexed_paths: paths of the members that queries use in filters; ids are always indexed.
        unique_key_paths: paths of the unique keys.
        default_ttl: seconds after its last write when an item expires; or :data:`ITEMS_DECIDE`; None if items never
            expire.
    """

    name: str
    partition_key_path: str
    indexed_paths: tuple[str, ...] = ()
    unique_key_paths: tuple[str, ...] = ()
    default_ttl: int | None = None

    @property
    def partition_member(self) -> str:
        """Name of the member of an item that contains the partition key."""
        return self.partition_key_path.removeprefix("/")

    def indexing_policy(self) -> dict[str, Any]:
        """Return the indexing policy: only ``indexed_paths`` are indexed. Without any index, items would not expire."""
        return {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": path} for path in self.indexed_paths],
            "excludedPaths": [{"path": "/*"}],
        }

    def find_faults(self, properties: Mapping[str, Any]) -> list[str]:
        """Describe the differences that make an existing container unusable; empty if it is usable."""
        faults = []
        if properties.get("partitionKey", {}).get("paths") != [self.partition_key_path]:
            faults.append(f"its partition key must be {self.partition_key_path}")
        unique = properties.get("uniqueKeyPolicy") or {}
        paths = [key.get("paths") for key in unique.get("uniqueKeys", [])]
        faults += [f"it must have the unique key {path}" for path in self.unique_key_paths if [path] not in paths]
        if (properties.get("defaultTtl") or None) != self.default_ttl:
            faults.append(_EXPIRY.get(self.default_ttl, f"its items must expire after {self.default_ttl} seconds"))
        return faults


_EXPIRY: Final[Mapping[int | None, str]] = {
    None: "its items must not expire",
    ITEMS_DECIDE: "its items must expire by their own ttl",
}

CHAIN_PATHS: Final = ("/chain/?", "/append/?", "/tip/timestamp/?", *(f"/p/{name}/?" for name in PROJECTED))
CHAINS: Final = tuple(
    ContainerDefinition(target.value, "/chain", CHAIN_PATHS, unique_key_paths=("/append",)) for target in Target
)
CATALOG: Final = ContainerDefinition("catalog", "/scope", ("/scope/?",))
CREDENTIALS: Final = ContainerDefinition("credentials", "/scope", ("/scope/?", "/parent/?"), default_ttl=ITEMS_DECIDE)
CONNECTIONS: Final = ContainerDefinition("connections", "/id")
REQUESTS: Final = ContainerDefinition("requests", "/id", default_ttl=25 * _HOUR)
RATE_LIMITS: Final = ContainerDefinition("rateLimits", "/id", default_ttl=180)
DOWNLOADS: Final = ContainerDefinition("downloads", "/id", ("/owner/?", "/expiresAt/?"))
BACKGROUND: Final = ContainerDefinition("background", "/id")

CONTAINERS: Final = (*CHAINS, CATALOG, CREDENTIALS, CONNECTIONS, REQUESTS, RATE_LIMITS, DOWNLOADS, BACKGROUND)
DEFINITIONS: Final[Mapping[str, ContainerDefinition]] = {definition.name: definition for definition in CONTAINERS}


async def create_containers(database: DatabaseProxy) -> None:
    """Create all containers of the service in a database.

    This requires the account's key, because Entra tokens cannot create containers.
    """
    for definition in CONTAINERS:
        unique: Any = {"uniqueKeys": [{"paths": [path]} for path in definition.unique_key_paths]}
        await database.create_container(
            definition.name,
            PartitionKey(definition.partition_key_path),
            indexing_policy=definition.indexing_policy(),
            default_ttl=definition.default_ttl,
            unique_key_policy=unique if definition.unique_key_paths else None,
        )
