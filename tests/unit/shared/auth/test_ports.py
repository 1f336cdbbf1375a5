"""Tests that credentials end with the removal or cutoff of their member."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.auth.ports import ApiKey, CredentialCutoff, Team
from shared.auth.token_ids import build_token_id
from shared.runtime import SYSTEM_RUNTIME

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


def build_key(revoked_at: datetime | None = None) -> ApiKey:
    """Return a key of a member, created at ``AT``."""
    return ApiKey("AAAAAAAA", b"", b"", "ann", "k", None, AT, None, revoked_at=revoked_at)


@pytest.mark.parametrize(
    ("removed_at", "revoked_at", "end"),
    [
        (None, None, None),
        (None, AT + HOUR, AT + HOUR),
        (AT - HOUR, None, None),
        (AT, None, AT),
        (AT + 2 * HOUR, AT + HOUR, AT + HOUR),
        (AT + HOUR, AT + 2 * HOUR, AT + HOUR),
    ],
)
def test_a_key_ends_with_the_first_of_revocation_and_removal(
    removed_at: datetime | None, revoked_at: datetime | None, end: datetime | None
) -> None:
    """An API key ends when it is revoked or its member is removed; later keys of the same member id are valid."""
    team = Team("plant-a", {}, audited=True, cutoffs={"ann": CredentialCutoff(keys=removed_at)})
    assert team.find_key_end_time(build_key(revoked_at)) == end


@pytest.mark.parametrize(("issued_at", "has_ended"), [(AT - HOUR, True), (AT, True), (AT + HOUR, False)])
def test_tokens_from_before_the_cutoff_have_ended(issued_at: datetime, *, has_ended: bool) -> None:
    """Tokens issued before the cutoff of their member have ended; tokens of other members have not."""
    team = Team("plant-a", {}, audited=True, cutoffs={"ann": CredentialCutoff(tokens=AT)})
    token_id = build_token_id(SYSTEM_RUNTIME, issued_at)
    assert team.has_token_ended("ann", token_id) is has_ended
    assert not team.has_token_ended("bob", token_id)


def test_tokens_without_a_time_of_issue_have_ended() -> None:
    """A token whose id contains no time of issue has ended if its member has a cutoff."""
    team = Team("plant-a", {}, audited=True, cutoffs={"ann": CredentialCutoff(tokens=AT)})
    assert team.has_token_ended("ann", "an older id")
    assert not team.has_token_ended("bob", "an older id")
