"""Test that a chain of a million records can be verified, exported and queried while other requests succeed."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import batched
from pathlib import Path

import httpx
import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from shared.provenance.hash_rule import compute_genesis_hash, format_record_id
from shared.provenance.ports import ChainKey, Target, Tip
from shared.provenance.records import build_event_draft, seal_record
from tests.service.local_service import Service

LENGTH = 1_000_000
BATCH = 5_000
CHAIN = ChainKey(Target.DOMAIN_EVENTS, "long")
WINDOW = {"target": "DomainEvents", "scopeKey": "long"}
DAYS = 10


async def store_records(file: Path, workspace: str) -> None:
    """Store a chain of a million records whose times are spread over ten days."""
    store, tip = SqliteChainStore(file), Tip()
    previous = compute_genesis_hash(workspace, CHAIN.target, CHAIN.scope_key)
    for numbers in batched(range(LENGTH), BATCH, strict=True):
        records = []
        for number in numbers:
            body = {
                "ActionType": ("Create", "Update", "Delete")[number % 3],
                "EntityType": "Batch",
                "EntityID": f"B-{number % 1000}",
                "AfterState": {"ph": 7.25, "number": number},
            }
            instant = f"2026-01-{1 + number * DAYS // LENGTH:02d}T08:00:00.000000Z"
            draft = build_event_draft("rare" if number == LENGTH // 2 else "editor", body)
            records.append(seal_record(draft, number + 1, instant, previous, f"{number:x}"))
            previous = records[-1].hash
        tip = await store.append(CHAIN, records, tip)
    await store.close()


@contextmanager
def probe_health(client: httpx.Client) -> Iterator[Callable[[], int]]:
    """Request /healthz continuously, and fail on an error.

    Yield a function that returns the number of replies so far.
    """
    ends, answers = threading.Event(), []

    def request_health_repeatedly() -> None:
        while not ends.is_set():
            answers.append(client.get("/healthz").status_code)

    asking = threading.Thread(target=request_health_repeatedly)
    asking.start()
    try:
        yield lambda: len(answers)
    finally:
        ends.set()
        asking.join()
    assert set(answers) == {200}


@pytest.mark.soak
def test_a_million_records_are_verified_exported_and_queried(own_service: Service) -> None:
    """For a chain of a million records, all audit routes return correct results while /healthz responds."""
    asyncio.run(store_records(own_service.data_dir / "provenance.sqlite", "plant-t"))
    service = own_service.start()
    auditor, editor = service.create_client("viewer@t"), service.create_client("editor@t")
    auditor.timeout = editor.timeout = httpx.Timeout(240)
    with probe_health(service.create_anonymous_client()) as answers:
        verdict = auditor.post(
            "/oi-api/provenance/events/verify", params={"target": "DomainEvents"}, json={"ScopeKey": "long"}
        ).json()
        during_verify = answers()
        exported = editor.get("/oi-api/provenance/events/export", params=WINDOW | {"limit": "100000"})
        during_export = answers()
        rare = query_records(auditor, userId="rare")
        lastday = query_records(auditor, startDate="2026-01-10T00:00:00Z", actionType="Delete", limit="1000")
        none = query_records(auditor, userId="nobody")
    assert (verdict["ChainValid"], verdict["Empty"], verdict["Reason"]) == (True, False, "1000000 records, all sound")
    assert [record["RecordID"] for record in exported.json()] == [format_record_id(n) for n in range(1, 100_001)]
    assert ([record["RecordID"] for record in rare], none) == ([format_record_id(LENGTH // 2 + 1)], [])
    assert [record["RecordID"] for record in lastday] == [format_record_id(n) for n in range(999_999, 997_001, -3)]
    assert 0 < during_verify < during_export


def query_records(client: httpx.Client, **filters: str) -> list[dict[str, object]]:
    """Return the reply to a query of the chain."""
    reply = client.get("/oi-api/provenance/events/query", params=WINDOW | filters)
    assert reply.status_code == 200, reply.text
    found: list[dict[str, object]] = reply.json()
    return found
