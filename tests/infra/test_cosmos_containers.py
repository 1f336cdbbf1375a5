"""Tests of the containers that the templates create in Cosmos DB."""

import re
from pathlib import Path

from scripts.cosmos_containers import build_container_definitions
from shared.backends.azure.cosmos_containers import CHAINS, CONTAINERS, REQUESTS
from shared.provenance.ports import PROJECTED

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "cosmos.md").read_text(encoding="utf-8")


def test_each_container_has_one_partition_key() -> None:
    """Container names are unique, each container has one partition key, and omitted properties have the defaults."""
    containers = build_container_definitions()
    assert len({each["id"] for each in containers}) == len(containers)
    assert {len(each["partitionKey"]["paths"]) for each in containers} == {1}
    assert all(each.get("defaultTtl", 1) != 0 for each in containers)


def test_idempotency_keys_stay_for_24_hours() -> None:
    """Cosmos DB deletes no Idempotency-Key within 24 hours, in which a repeated request gets the first reply."""
    [container] = [each for each in build_container_definitions() if each["id"] == REQUESTS.name]
    assert container["defaultTtl"] >= 24 * 3600


def test_the_page_has_the_index_of_each_container() -> None:
    """docs/explanation/cosmos.md has each container of the workspace's state with partition key and indexed paths."""
    rows = re.findall(r"^\| `(\w+)` \| `(/\w+)`[^|]* \| ([^|]*) \|", PAGE, re.MULTILINE)
    told = {(name, key, tuple(re.findall(r"`(/[^`]+)`", paths))) for name, key, paths in rows}
    defined = {(each.name, each.partition_key_path, each.indexed_paths) for each in CONTAINERS if each not in CHAINS}
    assert told == defined


def test_the_page_has_the_index_of_the_audit_chains() -> None:
    """docs/explanation/cosmos.md has all indexed paths and filter fields of the containers of audit chains."""
    [included, named] = re.findall(
        r"^- index policy: consistent; includes (.*?) for (.*?);", PAGE, re.MULTILINE | re.DOTALL
    )[0]
    fields = tuple(re.findall(r"`(\w+)`", named))
    assert fields == PROJECTED
    paths = [path for path in re.findall(r"`(/[^`]+)`", included) if path != "/p/NAME/?"]
    assert (*paths, *(f"/p/{name}/?" for name in fields)) == CHAINS[0].indexed_paths
