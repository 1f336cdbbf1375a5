"""Tests of the check that a person has signed in recently."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.auth.reauthentication import require_recent_sign_in_time
from shared.auth.sign_ins import NO_SIGN_IN, SignIn
from shared.errors import Kind, WorkspaceError
from shared.http.problems import build_problem_reply

NOW = datetime(2026, 11, 23, 12, 0, 0, 500_000, tzinfo=UTC)


def build_sign_in(age_seconds: float) -> SignIn:
    """Return a sign-in that happened the given number of seconds ago."""
    return SignIn(NOW - timedelta(seconds=age_seconds), ("key",), "sign-in")


@pytest.mark.parametrize(("max_age", "age"), [(300, 0), (300, 300), (300, -120), (0, 60), (0, -120), (3600, 3600)])
def test_a_recent_sign_in_is_accepted(max_age: int, age: float) -> None:
    """A sign-in is accepted up to the maximum age, and up to 120 s in the future, because clocks differ."""
    require_recent_sign_in_time(build_sign_in(age), max_age, NOW)


@pytest.mark.parametrize(("max_age", "age"), [(300, 300.1), (300, -120.1), (0, 60.1), (0, -120.1), (1, 2)])
def test_an_old_sign_in_is_rejected(max_age: int, age: float) -> None:
    """A sign-in over the maximum age, or more than 120 s in the future, is rejected."""
    with pytest.raises(WorkspaceError) as refused:
        require_recent_sign_in_time(build_sign_in(age), max_age, NOW)
    assert (refused.value.kind, refused.value.code) == (Kind.UNAUTHENTICATED, "REAUTHENTICATION_REQUIRED")


@pytest.mark.parametrize("max_age", [0, 300])
def test_the_rejection_has_the_maximum_age(max_age: int) -> None:
    """The rejection of an old sign-in states the maximum age in WWW-Authenticate, as RFC 9470 requires."""
    with pytest.raises(WorkspaceError) as refused:
        require_recent_sign_in_time(NO_SIGN_IN, max_age, NOW)
    reply = build_problem_reply(refused.value, "trace")
    challenge = f'Bearer error="insufficient_user_authentication", max_age={max_age}'
    assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, challenge)
