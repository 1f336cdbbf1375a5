"""Tests of the runner of webhook event sources, and of the events that services publish themselves."""

import asyncio
from typing import Any

import pytest

from shared.downloads.models import DownloadFormat, Job, JobStatus, Part, StoredFile
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Target
from shared.webhooks.events import WebhookEventType
from shared.webhooks.sources.runner import (
    EventSources,
    build_broken_chain_event,
    build_download_event,
    build_lock_out_event,
)
from tests.virtual_time import START


class Source:
    """Fake event source that counts its runs; it can fail or wait for the test.

    Attributes:
        runs: number of runs.
        error: exception that the next runs raise; None if they succeed.
        gate: event for which a run waits; None to end at once.
        started: set when a run begins.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.started = asyncio.Event()

    async def __call__(self) -> None:
        """Run once: count the run, wait for the gate, and fail if the test requires it."""
        self.runs += 1
        self.started.set()
        if self.error is not None:
            raise self.error
        if self.gate is not None:
            await self.gate.wait()


@pytest.mark.parametrize(
    "error",
    [WorkspaceError(Kind.UNAVAILABLE, "STORE_DOWN", "The store does not respond."), ValueError("invalid document")],
)
async def test_a_failure_stops_no_other_source(error: Exception) -> None:
    """If one event source fails with any error, all other sources still run, and the worker is woken afterwards."""
    broken, working, woken = Source(), Source(), list[int]()
    broken.error = error
    await EventSources({"a": broken, "b": working}, lambda: woken.append(working.runs)).run()
    assert (broken.runs, woken) == (1, [1])


@pytest.mark.parametrize(
    ("error", "level", "message"),
    [
        (
            WorkspaceError(Kind.UNAVAILABLE, "STORE_DOWN", "down"),
            "WARNING",
            "events were not published; the next run publishes them: down",
        ),
        (ValueError("invalid document"), "ERROR", "events of a source could not be published"),
    ],
)
async def test_the_log_promises_a_publication_only_after_a_failure_of_the_store(
    caplog: pytest.LogCaptureFixture, error: Exception, level: str, message: str
) -> None:
    """The next run publishes events after a failure of the store; other failures are logged as errors."""
    source = Source()
    source.error = error
    await EventSources({"a": source}, lambda: None).run()
    assert [(each.levelname, each.message) for each in caplog.records] == [(level, message)]


async def test_changes_during_a_run_cause_one_more_run() -> None:
    """Any number of changes during a run cause one more run, without waiting for the timer."""
    source, done = Source(), asyncio.Event()
    source.gate = asyncio.Event()
    sources = EventSources({"a": source}, lambda: done.set() if source.runs > 1 else None)
    sources.run_soon()
    await source.started.wait()
    for _ in range(5):
        sources.run_soon()
    source.gate.set()
    await done.wait()
    await sources.close()
    assert source.runs == 2


async def test_no_run_starts_after_the_close() -> None:
    """Closing the runner stops the current run and prevents further runs."""
    source = Source()
    source.gate = asyncio.Event()
    sources = EventSources({"a": source}, lambda: None)
    sources.run_soon()
    await source.started.wait()
    await sources.close()
    sources.run_soon()
    await asyncio.sleep(0)
    assert source.runs == 1


def build_job(**changes: Any) -> Job:
    """Return a completed download of cold data."""
    values = {"id": "j1", "owner": "ann", "format": DownloadFormat.CSV, "start": START, "end": START}
    times = {"created_at": START, "expires_at": START, "status": JobStatus.COMPLETED, "connections": ("rig",)}
    return Job(**{**values, **times, **changes})


def test_a_download_concerns_its_connections() -> None:
    """The event of a download is sent to endpoints that subscribe to one of its connections."""
    event = build_download_event(build_job(), START)
    assert (event.key, event.connections) == ("download.completed/j1", frozenset({"rig"}))
    assert build_download_event(build_job(connections=()), START).connections is None


def test_the_event_of_a_download_has_the_sums_over_its_files() -> None:
    """The event of a download contains the number of rows and of bytes in all files of the download."""
    files = tuple(StoredFile(blob="b", rows=rows, size=size, sha256="0" * 64) for rows, size in ((2, 50), (4, 150)))
    parts = tuple(Part(connection="rig", start=START, end=START, files=(file,)) for file in files)
    event = build_download_event(build_job(parts=parts), START)
    assert event.data == {"downloadId": "j1", "status": "completed", "rows": 6, "bytes": 200}


@pytest.mark.parametrize(("scope", "shown"), [("line-1", "line-1"), ("", None)])
def test_a_broken_chain_is_reported_once_a_day(scope: str, shown: str | None) -> None:
    """A broken chain causes one event per fault and day, that of the period's start, because the key contains both."""
    chain = ChainKey(Target.DOMAIN_EVENTS, scope)
    event = build_broken_chain_event(chain, "000000000007", "wrong hash", START, "2026-02-28T22:30:00.000000Z")
    assert event.key == f"audit-chain.broken/2026-02-28/DomainEvents/000000000007/{scope}"
    assert (event.at, event.data["scopeKey"], event.data["brokenAt"]) == (START, shown, "000000000007")
    without_location = build_broken_chain_event(chain, "", "no verdict", START, "2026-02-28T22:30:00.000000Z")
    assert without_location.data["brokenAt"] is None


def test_a_lock_out_names_the_member_and_the_attempts() -> None:
    """The event of a lock-out contains the member and the number of rejected attempts."""
    event = build_lock_out_event("ann", "e1", START, 5, START)
    assert (event.type, event.key) == (WebhookEventType.SIGNATURE_SUSPICIOUS, "signature.suspicious/e1")
    assert event.data == {"userId": "ann", "attempts": 5, "since": "2026-03-01T12:00:00.000000Z"}
