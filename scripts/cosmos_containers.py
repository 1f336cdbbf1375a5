"""Writes infra/bicep/cosmos-containers.json from the adapters' definitions: ``python scripts/cosmos_containers.py``."""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from shared.backends.azure.cosmos_containers import PARTITION_KEY_PATH, UNIQUE_KEY_PATH, indexing_policy  # noqa: E402
from shared.provenance.ports import Target  # noqa: E402

TARGET = ROOT / "infra" / "bicep" / "cosmos-containers.json"


def containers() -> list[dict[str, Any]]:
    """Return the containers in the form in which Resource Manager takes them."""
    return [_container(target.value) for target in Target]


def _container(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "partitionKey": {"paths": [PARTITION_KEY_PATH], "kind": "Hash", "version": 2},
        "indexingPolicy": indexing_policy(),
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": [UNIQUE_KEY_PATH]}]},
    }


def text() -> str:
    """Return the file's text."""
    return json.dumps(containers(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
