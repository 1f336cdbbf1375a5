"""Tests of the errors of the OAuth endpoints, and of the audit events about rejected requests."""

from typing import Any

import pytest

from shared.auth.audit import AccessAudit
from shared.errors import Kind, WorkspaceError
from shared.oauth.errors import (
    OAuthErrorCode,
    RefusalRecorder,
    build_invalid_grant_error,
    to_error_description,
    to_oauth_error_code,
)
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
    """Fake audit log in memory, which can be unavailable."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.is_failing = False

    async def record(self, actor: str, action: str, entity_type: str, entity_id: str, **members: Any) -> None:
        """Record an audit event."""
        if self.is_failing:
            raise WorkspaceError(Kind.UNAVAILABLE, "X", "x")
        assert (actor, action, entity_type) == ("oauth", "OAuthClient.Refused", "OAuthClient")
        self.events.append((entity_id, members["after"]))


async def test_a_client_has_one_event_about_rejections_an_hour() -> None:
    """A client has at most one audit event per hour, which counts the rejections since the previous event."""
    time, trail = VirtualTime(), Trail()
    recorder = RefusalRecorder(trail, runtime=time.runtime)
    for error in (OAuthErrorCode.INVALID_GRANT, OAuthErrorCode.INVALID_GRANT, OAuthErrorCode.INVALID_SCOPE):
        await recorder.record("tool", error)
    await recorder.record("other", OAuthErrorCode.INVALID_GRANT)
    time.advance(3600)
    await recorder.record("tool", OAuthErrorCode.INVALID_GRANT)
    assert trail.events == [
        ("tool", {"count": 1, "errors": {"invalid_grant": 1}}),
        ("other", {"count": 1, "errors": {"invalid_grant": 1}}),
        ("tool", {"count": 3, "errors": {"invalid_grant": 2, "invalid_scope": 1}}),
    ]


async def test_rejections_of_unknown_clients_are_counted_together() -> None:
    """Rejected requests of all unknown clients have one common audit event per hour."""
    trail = Trail()
    recorder = RefusalRecorder(trail, runtime=VirtualTime().runtime)
    for _ in range(5):
        await recorder.record("", OAuthErrorCode.INVALID_CLIENT)
    assert [client for client, _ in trail.events] == ["unknown"]


async def test_an_unreachable_audit_log_loses_no_rejection() -> None:
    """If an event about rejections cannot be stored, the next event counts these rejections, too."""
    trail = Trail()
    recorder = RefusalRecorder(trail, runtime=VirtualTime().runtime)
    trail.is_failing = True
    await recorder.record("tool", OAuthErrorCode.INVALID_GRANT)
    trail.is_failing = False
    await recorder.record("tool", OAuthErrorCode.INVALID_GRANT)
    assert trail.events == [("tool", {"count": 2, "errors": {"invalid_grant": 2}})]
