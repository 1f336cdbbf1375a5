"""Write infra/bicep/cosmos-containers.json from the app's definitions of Cosmos DB containers.

Run ``python scripts/cosmos_containers.py``. The Bicep templates then create the containers that the app expects.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from shared.backends.azure.cosmos_containers import CONTAINERS, ContainerDefinition  # noqa: E402  the path comes first

TARGET = ROOT / "infra" / "bicep" / "cosmos-containers.json"


def build_container_definitions() -> list[dict[str, Any]]:
    """Return the definitions of all Cosmos DB containers of the app in the format of Azure Resource Manager."""
    return [_container_definition_to_json(definition) for definition in CONTAINERS]


def _container_definition_to_json(definition: ContainerDefinition) -> dict[str, Any]:
    unique = [{"paths": [path]} for path in definition.unique_key_paths]
    return {
        "id": definition.name,
        "partitionKey": {"paths": [definition.partition_key_path], "kind": "Hash", "version": 2},
        "indexingPolicy": definition.build_indexing_policy(),
        **({"uniqueKeyPolicy": {"uniqueKeys": unique}} if unique else {}),
        **({} if definition.default_ttl is None else {"defaultTtl": definition.default_ttl}),
    }


def build_containers_file_text() -> str:
    """Build the JSON text of the file cosmos-containers.json, with the definitions of all containers."""
    return json.dumps(build_container_definitions(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(build_containers_file_text(), encoding="utf-8")
