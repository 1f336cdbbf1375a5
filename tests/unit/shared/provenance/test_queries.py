"""Tests of the size limit of exports."""

import json
from pathlib import Path

from shared.backends.embedded.provenance import SqliteChainStore
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import Filters, Tip
from shared.provenance.queries import MAX_BODY_BYTES, export_records
from shared.provenance.records import build_event_draft, seal_record
from tests.unit.shared.provenance.chains import BATCH, WORKSPACE, build_event


async def test_an_export_is_limited_in_size(tmp_path: Path) -> None:
    """An export has at most 64 MiB of JSON and states whether more records follow for a further export."""
    store, count = SqliteChainStore(tmp_path / "provenance.sqlite"), 50
    tip, previous = Tip(), compute_genesis_hash(WORKSPACE, BATCH.target, BATCH.scope_key)
    for number in range(1, count + 1):
        made = build_event_draft("editor", build_event(number) | {"Description": "x" * 1_400_000})
        record = seal_record(made, number, "2026-01-05T08:00:00.000000Z", previous, str(number))
        tip, previous = await store.append(BATCH, [record], tip), record.hash
    first = await export_records(store, BATCH, Filters(), limit=count)
    body = first.to_json_array()
    assert first.has_more
    assert MAX_BODY_BYTES - 1_500_000 < len(body) <= MAX_BODY_BYTES
    rest = await export_records(store, BATCH, Filters(from_sequence=len(first.records) + 1), limit=count)
    await store.close()
    numbers = [json.loads(record.canonical)["AfterState"]["n"] for record in (*first.records, *rest.records)]
    assert (numbers, rest.has_more) == (list(range(1, count + 1)), False)
