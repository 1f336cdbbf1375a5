"""Write infra/bicep/cosmos-containers.json from the adapters' definitions: ``python scripts/cosmos_containers.py``."""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from shared.backends.azure.cosmos_containers import CONTAINERS, ContainerDefinition  # noqa: E402  the path comes first

TARGET = ROOT / "infra" / "bicep" / "cosmos-containers.json"


def build_containers() -> list[dict[str, Any]]:
    """Return the containers in the format of Resource Manager."""
    return [_build_container(definition) for definition in CONTAINERS]


def _build_container(definition: ContainerDefinition) -> dict[str, Any]:
    unique = [{"paths": [path]} for path in definition.unique_key_paths]
    return {
        "id": definition.name,
        "partitionKey": {"paths": [definition.partition_key_path], "kind": "Hash", "version": 2},
        "indexingPolicy": definition.indexing_policy(),
        **({"uniqueKeyPolicy": {"uniqueKeys": unique}} if unique else {}),
        **({} if definition.default_ttl is None else {"defaultTtl": definition.default_ttl}),
    }


def build_text() -> str:
    """Return the file's text."""
    return json.dumps(build_containers(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(build_text(), encoding="utf-8")
