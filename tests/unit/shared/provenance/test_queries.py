"""Tests of queries and exports: the limits, the number of records read, and forks at the border of a page."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from shared.provenance import queries
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, Filters, Tip
from shared.provenance.queries import (
    DEFAULT_EXPORT_LIMIT,
    DEFAULT_LIMIT,
    MAX_BODY_BYTES,
    MAX_EXPORT_LIMIT,
    MAX_LIMIT,
    AuditQueryResult,
    export_records,
    query_records,
)
from shared.provenance.records import build_event_draft, seal_record
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, WORKSPACE, Ledger, build_event
from tests.unit.shared.provenance.test_verifier import insert_fork_beside


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


@pytest.mark.parametrize(("limit", "scanned"), [(3, 4), (12, 13), (13, 13), (100, 13)])
async def test_a_record_counts_once_as_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, limit: int, scanned: int
) -> None:
    """In a chain of 13 records, each record that is read counts once, also if it is read again with the next page."""
    monkeypatch.setattr(queries, "_PAGE_BYTES", 1)
    await ledger.fill(BATCH, 13 - len(await ledger.records(BATCH)))
    answer = await query_records(ledger.store, BATCH, Filters(), limit=limit)
    assert (len(answer.records), answer.scanned) == (min(limit, 13), scanned)


@pytest.mark.parametrize("records", range(1, 10))
@pytest.mark.parametrize("read", [query_records, export_records])
async def test_a_fork_at_the_border_of_a_page_is_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, records: int, read: Callable[..., Awaitable[AuditQueryResult]]
) -> None:
    """If two records have the same sequence number, queries and exports return and count both with any page size."""
    monkeypatch.setattr(queries, "_PAGE_RECORDS", records)
    await ledger.fill(PLATFORM, 9 - len(await ledger.records(PLATFORM)))
    ledger.tamper(insert_fork_beside)
    answer = await read(ledger.store, PLATFORM, Filters())
    assert sorted(record.sequence for record in answer.records) == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9]
    assert (len({record.hash for record in answer.records}), answer.scanned, answer.has_more) == (10, 10, False)


async def test_a_result_that_ends_within_a_fork_states_that_more_records_follow(ledger: Ledger) -> None:
    """If the limit of a query separates two records with the same sequence number, further records follow."""
    await ledger.fill(PLATFORM, 5 - len(await ledger.records(PLATFORM)))
    ledger.tamper(insert_fork_beside)
    answer = await export_records(ledger.store, PLATFORM, Filters(), limit=5)
    assert ([record.sequence for record in answer.records], answer.has_more) == ([1, 2, 3, 4, 5], True)


def test_the_limits_of_queries_and_exports_are_those_of_the_documentation() -> None:
    """A query returns 100 records by default and at most 1,000; an export returns 10,000 and at most 100,000."""
    assert (DEFAULT_LIMIT, MAX_LIMIT, DEFAULT_EXPORT_LIMIT, MAX_EXPORT_LIMIT) == (100, 1_000, 10_000, 100_000)


@pytest.mark.parametrize(
    ("chain", "limit", "expected"),
    [
        (PLATFORM, 2, (2, True)),
        (PLATFORM, 3, (3, True)),
        (PLATFORM, 4, (3, True)),
        (PLATFORM, 10**30, (3, True)),
        (BATCH, 2, (2, True)),
        (BATCH, 3, (3, False)),
        (BATCH, 4, (3, False)),
        (BATCH, 10**30, (3, False)),
    ],
)
@pytest.mark.parametrize("read", [query_records, export_records])
async def test_a_limit_above_the_maximum_is_reduced_to_the_maximum(
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[..., Awaitable[AuditQueryResult]],
    chain: ChainKey,
    limit: int,
    expected: tuple[int, bool],
) -> None:
    """A query for more records than the maximum, here 3, returns the maximum and states whether more records match."""
    monkeypatch.setattr(queries, "MAX_LIMIT", 3)
    monkeypatch.setattr(queries, "MAX_EXPORT_LIMIT", 3)
    answer = await read(ledger.store, chain, Filters(), limit=limit)
    assert (len(answer.records), answer.has_more) == expected
