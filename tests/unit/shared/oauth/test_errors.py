"""Tests of the errors of the OAuth endpoints, and of the audit events about rejected requests."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shared.auth.audit import AccessAudit
from shared.auth.ports import Team
from shared.backends.embedded.provenance import SqliteAuditLog
from shared.errors import Kind, WorkspaceError
from shared.oauth.errors import (
    OAuthErrorCode,
    RefusalRecorder,
    build_invalid_grant_error,
    to_error_description,
    to_oauth_error_code,
)
from shared.provenance.ports import Target
from tests.virtual_time import VirtualTime


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Kind.INVALID, OAuthErrorCode.INVALID_REQUEST),
        (Kind.TOO_LARGE, OAuthErrorCode.INVALID_REQUEST),
        (Kind.UNAUTHENTICATED, OAuthErrorCode.INVALID_CLIENT),
        (Kind.THROTTLED, OAuthErrorCode.TEMPORARILY_UNAVAILABLE),
        (Kind.INTERNAL, OAuthErrorCode.SERVER_ERROR),
    ],
)
def test_every_error_has_an_oauth_error_code(kind: Kind, code: OAuthErrorCode) -> None:
    """An error that does not come from an OAuth endpoint gets the OAuth error code for its kind."""
    assert to_oauth_error_code(WorkspaceError(kind, "X", "x")) is code


def test_an_oauth_error_keeps_its_code() -> None:
    """An OAuth error is returned with its own code."""
    assert to_oauth_error_code(build_invalid_grant_error("x")) is OAuthErrorCode.INVALID_GRANT


def test_error_descriptions_have_only_allowed_characters() -> None:
    """Descriptions are printable ASCII without quotation marks and backslashes, as RFC 6749 requires."""
    assert to_error_description('a "b" \\ ü\n') == "a 'b' ? ??"


class Trail(AccessAudit):
    """Audit log in SQLite that can be unavailable, and that can store a record without returning it.

    Attributes:
        audited: True if the workspace has provenance.
        is_failing: True if no event can be stored.
        failure_after_append: error that is raised after an event is stored.
        may_append: set unless appends wait.
    """

    def __init__(self, log: SqliteAuditLog) -> None:
        super().__init__(self, log)
        self.log = log
        self.audited = True
        self.is_failing = False
        self.failure_after_append: BaseException | None = None
        self.may_append = asyncio.Event()
        self.may_append.set()

    async def get_team(self) -> Team:
        """Return a team without members."""
        return Team("plant-a", {}, audited=self.audited, cutoffs={})

    async def record_event_if_audited(self, *args: Any, **members: Any) -> Mapping[str, Any] | None:
        """Record an audit event."""
        if self.is_failing:
            raise WorkspaceError(Kind.UNAVAILABLE, "X", "x")
        await self.may_append.wait()
        record = await super().record_event_if_audited(*args, **members)
        if self.failure_after_append is not None:
            raise self.failure_after_append
        return record

    async def list_events(self) -> list[tuple[str, int, dict[str, int]]]:
        """Return the client, the number of refused requests and the numbers by error of each event."""
        records = await self.log.read_all_records(Target.ACCESS_CONTROL)
        assert {(record["UserID"], record["ActionType"], record["EntityType"]) for record in records} <= {
            ("oauth", "OAuthClient.Refused", "OAuthClient")
        }
        states = [(record["EntityID"], record["AfterState"]) for record in records]
        return [(client, state["count"], state["errors"]) for client, state in states]


async def get_workspace_id() -> str:
    """Return the id of the workspace."""
    return "plant-a"


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[Trail]:
    """Provide an empty audit log."""
    log = SqliteAuditLog(tmp_path / "provenance.sqlite", get_workspace_id)
    yield Trail(log)
    await log.close()


async def test_a_client_has_one_event_about_rejections_an_hour(trail: Trail) -> None:
    """A client has at most one audit event per hour, which counts the rejections since the previous event."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    for error in (OAuthErrorCode.INVALID_GRANT, OAuthErrorCode.INVALID_GRANT, OAuthErrorCode.INVALID_SCOPE):
        await recorder.record_refused_request("tool", error)
    await recorder.record_refused_request("other", OAuthErrorCode.INVALID_GRANT)
    time.advance(3600)
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    assert await trail.list_events() == [
        ("tool", 1, {"invalid_grant": 1}),
        ("other", 1, {"invalid_grant": 1}),
        ("tool", 3, {"invalid_grant": 2, "invalid_scope": 1}),
    ]


async def test_several_instances_have_one_event_an_hour_and_lose_no_rejection(trail: Trail) -> None:
    """Several instances append one event of a client per hour; the others count their rejections in a later event."""
    time = VirtualTime()
    first, second = (RefusalRecorder(trail, runtime=time.runtime) for _ in range(2))
    await first.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    await second.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    await second.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    time.advance(3600)
    await second.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    await first.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    time.advance(3600)
    await first.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    assert await trail.list_events() == [
        ("tool", 1, {"invalid_grant": 1}),
        ("tool", 3, {"invalid_grant": 2, "invalid_scope": 1}),
        ("tool", 2, {"invalid_grant": 2}),
    ]


async def test_rejections_of_unknown_clients_are_counted_together(trail: Trail) -> None:
    """Rejected requests of all unknown clients have one common audit event per hour."""
    recorder = RefusalRecorder(trail, runtime=VirtualTime().runtime)
    for _ in range(5):
        await recorder.record_refused_request("", OAuthErrorCode.INVALID_CLIENT)
    assert [client for client, _, _ in await trail.list_events()] == ["unknown"]


async def test_an_unreachable_audit_log_loses_no_rejection(trail: Trail) -> None:
    """If an event about rejections cannot be stored, the next event counts these rejections, too."""
    recorder = RefusalRecorder(trail, runtime=VirtualTime().runtime)
    trail.is_failing = True
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    trail.is_failing = False
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    assert await trail.list_events() == [("tool", 2, {"invalid_grant": 2})]


UNKNOWN_OUTCOMES = [WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_OUTCOME_UNKNOWN", "x"), asyncio.CancelledError()]


@pytest.mark.parametrize("failure", UNKNOWN_OUTCOMES)
async def test_a_stored_event_without_a_reply_counts_each_rejection_once(trail: Trail, failure: BaseException) -> None:
    """If an event is stored but the recorder does not learn it, each rejection is in exactly one event."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    trail.failure_after_append = failure
    with suppress(asyncio.CancelledError):
        await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    trail.failure_after_append = None
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    time.advance(3600)
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    assert await trail.list_events() == [
        ("tool", 1, {"invalid_grant": 1}),
        ("tool", 2, {"invalid_grant": 1, "invalid_scope": 1}),
    ]


@pytest.mark.parametrize("failure", UNKNOWN_OUTCOMES)
async def test_a_stored_event_without_a_reply_counts_each_rejection_once_in_the_next_hour(
    trail: Trail, failure: BaseException
) -> None:
    """If the recorder does not learn before the next hour that an event is stored, no rejection is counted twice."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    trail.failure_after_append = failure
    with suppress(asyncio.CancelledError):
        await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    trail.failure_after_append = None
    time.advance(3600)
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    assert await trail.list_events() == [("tool", 1, {"invalid_grant": 1}), ("tool", 1, {"invalid_scope": 1})]


async def test_an_event_that_was_not_stored_is_stored_once_in_the_next_hour(trail: Trail) -> None:
    """If an event cannot be stored before the next hour, one event counts its rejections and the new one."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    trail.is_failing = True
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    trail.is_failing = False
    time.advance(3600)
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    events = await trail.list_events()
    assert events == [("tool", 2, {"invalid_grant": 1, "invalid_scope": 1}), ("tool", 1, {"invalid_scope": 1})]


async def test_an_append_that_ends_in_the_next_hour_counts_each_rejection_once(trail: Trail) -> None:
    """A rejection during an append that takes until the next hour is counted in a later event."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    trail.may_append.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT))
        await asyncio.sleep(0)
        time.advance(3600)
        tasks.create_task(recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE))
        await asyncio.sleep(0)
        trail.may_append.set()
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    assert await trail.list_events() == [("tool", 1, {"invalid_grant": 1}), ("tool", 2, {"invalid_scope": 2})]


async def test_a_clock_that_is_set_back_loses_no_rejection(trail: Trail) -> None:
    """Rejections after the clock was set back into an hour with an event are counted in a later event."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    for seconds in (0, 3600, -3600, 7200):
        time.advance(seconds)
        await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    assert [count for _, count, _ in await trail.list_events()] == [1, 1, 2]


async def test_rejections_without_provenance_are_not_counted_later(trail: Trail) -> None:
    """Rejections of a workspace without provenance are in no event, also after provenance is switched on."""
    time = VirtualTime()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    trail.audited = False
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_GRANT)
    trail.audited = True
    time.advance(3600)
    await recorder.record_refused_request("tool", OAuthErrorCode.INVALID_SCOPE)
    assert await trail.list_events() == [("tool", 1, {"invalid_scope": 1})]
