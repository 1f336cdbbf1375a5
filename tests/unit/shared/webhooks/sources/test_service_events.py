"""Tests of webhook events about downloads, broken chains and refused signatures."""

from typing import Any

import pytest

from shared.downloads.models import DownloadFormat, Job, JobStatus
from shared.provenance.ports import ChainKey, Target
from shared.webhooks.events import WebhookEventType
from shared.webhooks.sources.service_events import build_broken_chain_event, build_download_event, build_lock_out_event
from tests.virtual_time import START


def build_job(**changes: Any) -> Job:
    """Return a completed download."""
    values = {"id": "j1", "owner": "ann", "format": DownloadFormat.CSV, "start": START, "end": START}
    times = {"created_at": START, "expires_at": START, "status": JobStatus.COMPLETED, "connections": ("rig",)}
    return Job(**{**values, **times, **changes})


def test_a_download_concerns_its_connections() -> None:
    """The event of a download is sent to endpoints that subscribe to one of its connections."""
    event = build_download_event(build_job(), START)
    assert (event.key, event.connections) == ("download.completed/j1", frozenset({"rig"}))
    assert event.data == {"downloadId": "j1", "status": "completed", "rows": 0, "bytes": 0}
    assert build_download_event(build_job(connections=()), START).connections is None


@pytest.mark.parametrize(("scope", "shown"), [("line-1", "line-1"), ("", None)])
def test_a_broken_chain_is_reported_once_a_day(scope: str, shown: str | None) -> None:
    """A broken chain has one event for each day and fault, because the event's key contains day, chain and position."""
    chain = ChainKey(Target.DOMAIN_EVENTS, scope)
    event = build_broken_chain_event(chain, "000000000007", "wrong hash", START)
    assert event.key == f"audit-chain.broken/2026-03-01/DomainEvents/000000000007/{scope}"
    assert (event.data["scopeKey"], event.data["brokenAt"]) == (shown, "000000000007")
    assert build_broken_chain_event(chain, "", "no verdict", START).data["brokenAt"] is None


def test_a_lock_out_names_the_member_and_the_attempts() -> None:
    """The event of a lock-out has the member and the number of refused attempts."""
    event = build_lock_out_event("ann", "e1", START, 5, START)
    assert (event.type, event.key) == (WebhookEventType.SIGNATURE_SUSPICIOUS, "signature.suspicious/e1")
    assert event.data == {"userId": "ann", "attempts": 5, "since": "2026-03-01T12:00:00.000000Z"}
