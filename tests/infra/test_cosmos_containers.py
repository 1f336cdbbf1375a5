"""Tests of the containers that the templates create in Cosmos DB."""

import re
from pathlib import Path

from scripts.cosmos_containers import build_container_definitions
from shared.backends.azure.cosmos_chain_items import (
    HEAD_ID,
    MAX_BATCH_RECORDS,
    PENDING_ID,
    STATUS_ID,
    HeadCounts,
    SegmentHead,
    build_pending_amendments_item,
    head_to_item,
)
from shared.backends.azure.cosmos_containers import CHAINS, CONTAINERS, REQUESTS
from shared.backends.azure.cosmos_signatures import INDEX_PARTITION
from shared.provenance.ports import PROJECTED, ChainKey, Target, Tip

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "cosmos.md").read_text(encoding="utf-8")


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


def test_the_page_has_the_items_of_the_audit_chains() -> None:
    """docs/explanation/cosmos.md has the ids of all items of an audit chain, and the properties of its index items."""
    rows = dict(re.findall(r"^\| [^|]*\bid `([^`]+)`[^|]* \| ([^|]*) \|$", PAGE, re.MULTILINE))
    assert rows.keys() == {HEAD_ID, PENDING_ID, STATUS_ID}
    chain = ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
    head = head_to_item(chain, SegmentHead(1, Tip(), 0, sealed=False, etag="", counts=HeadCounts("", 0, 0)))
    pending = build_pending_amendments_item(chain, 1, "2026-01-05T08:00:00Z", [1])
    for item_id, item in ((HEAD_ID, head), (PENDING_ID, pending)):
        members = {*item, *item.get("tip", ()), *item.get("counts", ())} - {"id"}
        assert set(re.findall(r"`(\w+)`", rows[item_id])) - {"DomainAmendments"} == members


def test_the_pages_have_the_current_limits_and_partitions() -> None:
    """The documentation has the maximum number of records in a batch and the partition of the index of signatures."""
    sizing = (DOCS / "how-to" / "size-a-deployment.md").read_text(encoding="utf-8")
    assert f"up to {MAX_BATCH_RECORDS} records" in PAGE
    assert f"A full batch of {MAX_BATCH_RECORDS} records" in sizing
    assert f"all signatures in the partition `{INDEX_PARTITION}`" in PAGE
