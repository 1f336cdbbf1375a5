"""Tests of webhook events about amendments."""

import json
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from shared.provenance.chain_log import ChainLog
from shared.provenance.decisions import parse_content_if_verified
from shared.provenance.ports import ChainKey, ChainRecord, Target
from shared.provenance.records import build_record_draft
from shared.runtime import LARGE
from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import EndpointList, WebhookEndpoint
from shared.webhooks.sources import amendments
from shared.webhooks.sources.amendments import (
    AmendmentEvents,
    build_amendment_event,
    build_decision_event,
    find_earliest_subscription_time,
)
from tests.unit.shared.webhooks.environment import WebhookServices
from tests.virtual_time import START

PENDING, DECIDED = WebhookEventType.AMENDMENT_PENDING, WebhookEventType.AMENDMENT_DECIDED
CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line-2")
AMENDMENT = {
    "RecordID": "000000000001",
    "EntityType": "Batch",
    "EntityID": "B-1",
    "ReasonCategory": "typo",
    "AmendedBy": "ann",
    "AmendedAt": "2026-03-01T12:00:00.000000Z",
    "Status": "pending",
}


def build_endpoint(
    name: str, created_after_hours: int, *, enabled: bool = True, kind: WebhookEventType = PENDING
) -> WebhookEndpoint:
    """Return an endpoint that was created the given number of hours after the start of the test."""
    return WebhookEndpoint(
        id=name,
        url="https://a.example/",
        event_types=(kind,),
        created_at=START,
        created_by="ann",
        enabled=enabled,
        subscribed_at={kind: START + timedelta(hours=created_after_hours)},
    )


@pytest.mark.parametrize(
    ("endpoints", "hours"),
    [
        ([], None),
        ([build_endpoint("a", 1, enabled=False)], None),
        ([build_endpoint("a", 1, kind=WebhookEventType.WEBHOOK_TEST)], None),
        ([build_endpoint("a", 3), build_endpoint("b", 2, kind=DECIDED), build_endpoint("c", 1, enabled=False)], 2),
    ],
)
def test_records_are_read_from_the_first_subscription(endpoints: list[WebhookEndpoint], hours: int | None) -> None:
    """Amendments are read from the first subscription to them on; without a subscription, none are read."""
    listed = EndpointList(endpoints={each.id: each for each in endpoints})
    expected = None if hours is None else START + timedelta(hours=hours)
    assert find_earliest_subscription_time(listed, (PENDING, DECIDED)) == expected


@pytest.mark.parametrize(("status", "kind"), [("pending", PENDING), ("approved", DECIDED)])
def test_an_amendment_is_pending_or_decided_at_once(status: str, kind: WebhookEventType) -> None:
    """The event of a new amendment is ``pending``, or ``decided`` if the amendment needs no approval."""
    event = build_amendment_event("line-1", {**AMENDMENT, "Status": status})
    assert event is not None
    assert (event.type, event.key, event.at) == (kind, f"{kind}/000000000001/line-1", START)
    assert (event.data["amendedBy"], event.data["decidedBy"], event.data["status"]) == ("ann", None, status)


@pytest.mark.parametrize(
    ("decision", "decided_by"),
    [
        ({"Status": "approved", "ApprovedBy": "bob", "ApprovedAt": "2026-03-01T12:00:00Z"}, "bob"),
        ({"Status": "rejected", "RejectedBy": "eve", "RejectedAt": "2026-03-01T12:00:00Z"}, "eve"),
    ],
)
def test_a_decision_describes_its_amendment(decision: dict[str, Any], decided_by: str) -> None:
    """The event of a decision contains the amendment's RecordID; the event's key contains the decision's RecordID."""
    event = build_decision_event(
        "line-1", AMENDMENT, {**decision, "RecordID": "000000000002", "AmendmentID": "000000000001"}
    )
    assert event is not None
    assert event.key == "amendment.decided/000000000002/line-1"
    assert (event.data["recordId"], event.data["entityId"], event.data["amendedBy"]) == ("000000000001", "B-1", "ann")
    assert (event.data["decidedBy"], event.data["status"]) == (decided_by, decision["Status"])


@pytest.mark.parametrize("at", [None, "yesterday"])
def test_a_record_with_a_damaged_time_has_no_event(at: str | None) -> None:
    """An amendment with a damaged time has no event, but the other amendments have one."""
    assert build_amendment_event("s", {**AMENDMENT, "AmendedAt": at}) is None


@pytest.fixture
def chains(webhook_services: WebhookServices, tmp_path: Path) -> SqliteChainStore:
    """Provide an empty store of audit chains, which the fixture ``log`` closes."""
    return SqliteChainStore(tmp_path / "chains.sqlite", runtime=webhook_services.runtime)


@pytest.fixture
async def log(webhook_services: WebhookServices, chains: SqliteChainStore) -> AsyncIterator[ChainLog]:
    """Provide the log that appends records to the audit chains."""

    async def load_workspace() -> str:
        return "plant-1"

    opened = ChainLog(chains, load_workspace, runtime=webhook_services.runtime)
    yield opened
    await opened.close()


@pytest.fixture
def source(webhook_services: WebhookServices, chains: SqliteChainStore) -> AmendmentEvents:
    """Provide the source of events about the amendments in the audit chains."""
    return AmendmentEvents(
        chains,
        webhook_services.store,
        webhook_services.registry,
        webhook_services.outbox,
        runtime=webhook_services.runtime,
    )


async def append_amendment(log: ChainLog, **properties: Any) -> None:
    """Append a pending amendment to the audit chain of the scope ``line-2``."""
    members = {name: value for name, value in AMENDMENT.items() if name not in {"RecordID", "AmendedAt"}}
    await log.append(CHAIN, build_record_draft({**members, **properties}, "AmendedAt"))


@pytest.mark.parametrize("forward", [0, 1500], ids=["back", "back and forward"])
async def test_amendments_are_announced_after_the_clocks_were_set_back(
    webhook_services: WebhookServices, log: ChainLog, source: AmendmentEvents, forward: float
) -> None:
    """If clocks were set back, an amendment in a new scope still causes an event."""
    endpoint = await webhook_services.create_endpoint(PENDING)
    webhook_services.time.advance(1800)
    await source.publish_new_events()
    webhook_services.time.advance(-1500)
    await append_amendment(log)
    webhook_services.time.advance(forward)
    await source.publish_new_events()
    assert len(await webhook_services.list_all(endpoint)) == 1


async def test_large_amendments_are_parsed_in_worker_threads(
    webhook_services: WebhookServices, log: ChainLog, source: AmendmentEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker thread parses a page of large amendments, and a large amendment that a small record decides."""
    threads: list[bool] = []

    def parse(record: ChainRecord) -> dict[str, Any] | None:
        threads.append(threading.current_thread() is not threading.main_thread())
        return parse_content_if_verified(record)

    monkeypatch.setattr(amendments, "parse_content_if_verified", parse)
    endpoint = await webhook_services.create_endpoint(PENDING, DECIDED)
    await append_amendment(log, OriginalRecord={"text": "x" * LARGE}, AmendedRecord={})
    await source.publish_new_events()
    assert threads == [True]
    webhook_services.time.advance(1)
    decision = {"AmendmentID": AMENDMENT["RecordID"], "Status": "approved", "ApprovedBy": "bob"}
    await log.append(CHAIN, build_record_draft(decision, "ApprovedAt"))
    await source.publish_new_events()
    assert threads == [True, False, True]
    decided, pending = (json.loads(each.body) for each in await webhook_services.list_all(endpoint))
    assert (pending["type"], decided["type"], decided["data"]["amendedBy"]) == (PENDING, DECIDED, "ann")
