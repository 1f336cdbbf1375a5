"""Tests of counting rejected attempts to sign."""

from datetime import timedelta

import pytest

from shared.errors import WorkspaceError
from shared.signatures.attempts import (
    MAX_ATTEMPTS,
    WINDOW,
    LockOut,
    MemberAttempts,
    add_refused_attempt_if_not_locked_out,
    add_stale_sign_in_refusal_if_not_locked_out,
    check_not_locked_out,
    remove_reported_lock_out_if_present,
)
from tests.unit.shared.signatures.environment import START

NONE = MemberAttempts("ann")
MINUTE = timedelta(minutes=1)


def build_rejected_attempts(count: int) -> MemberAttempts:
    """Return the given number of a member's rejected attempts to sign, one per minute."""
    attempts = NONE
    for number in range(count):
        attempts = add_refused_attempt_if_not_locked_out(attempts, START + number * MINUTE, f"e{number}") or attempts
    return attempts


def test_a_lock_out_is_stored_with_its_event() -> None:
    """A lock-out is stored together with its event; earlier attempts are removed and do not count again."""
    locked = build_rejected_attempts(MAX_ATTEMPTS)
    at = START + (MAX_ATTEMPTS - 1) * MINUTE
    assert locked.pending == (LockOut(f"e{MAX_ATTEMPTS - 1}", at, MAX_ATTEMPTS, START),)
    assert (locked.times, locked.locked_until) == ((), at + WINDOW)
    assert build_rejected_attempts(MAX_ATTEMPTS - 1).pending == ()


def test_attempts_during_a_lock_out_do_not_extend_it() -> None:
    """Attempts during a lock-out do not extend it, or a program that repeats them could lock a member out forever."""
    locked = build_rejected_attempts(MAX_ATTEMPTS)
    assert add_refused_attempt_if_not_locked_out(locked, START + 10 * MINUTE, "x") is None


def test_attempts_before_a_clock_setback_count_for_15_minutes() -> None:
    """If the clock is set back, earlier attempts count for 15 minutes from the next attempt."""
    first = START - timedelta(hours=1)
    attempts = build_rejected_attempts(MAX_ATTEMPTS - 2)
    for at in (first, first + WINDOW):
        attempts = add_refused_attempt_if_not_locked_out(attempts, at, "x") or attempts
    assert (attempts.times, attempts.locked_until) == ((first + WINDOW,), None)


@pytest.mark.parametrize(("minutes", "retry_after"), [(4, 900), (18.99, 1), (19, None)])
def test_a_locked_member_learns_when_to_sign_again(minutes: float, retry_after: int | None) -> None:
    """The error of a locked member states the seconds until the end of the lock-out, rounded up."""
    locked, at = build_rejected_attempts(MAX_ATTEMPTS), START + minutes * MINUTE
    if retry_after is None:
        check_not_locked_out(locked, at)
        return
    with pytest.raises(WorkspaceError) as raised:
        check_not_locked_out(locked, at)
    assert (raised.value.code, raised.value.members["retryAfter"]) == ("SIGNATURE_LOCKED", retry_after)


def test_the_first_rejection_of_an_old_sign_in_does_not_count() -> None:
    """The first rejection of a token for an old sign-in is no failed attempt, because members cannot know the age."""
    challenged = add_stale_sign_in_refusal_if_not_locked_out(NONE, "t0", START, "e")
    assert challenged is not None
    assert (challenged.times, challenged.challenged) == ((), ("t0",))
    again = add_stale_sign_in_refusal_if_not_locked_out(challenged, "t0", START, "e")
    assert again is not None
    assert again.times == (START,)
    for number in range(1, 60):
        challenged = add_stale_sign_in_refusal_if_not_locked_out(challenged, f"t{number}", START, "e") or challenged
    assert (len(challenged.challenged), challenged.challenged[-1]) == (50, "t59")


def test_a_reported_lock_out_event_is_removed_once() -> None:
    """Removing a reported lock-out event a second time changes nothing."""
    locked = build_rejected_attempts(MAX_ATTEMPTS)
    reported = remove_reported_lock_out_if_present(locked, locked.pending[0].append_id)
    assert reported is not None
    assert reported.pending == ()
    assert remove_reported_lock_out_if_present(reported, "e4") is None


def test_stored_signing_attempts_are_read_unchanged() -> None:
    """Attempts that are stored and read again are equal, before and after a lock-out."""
    for attempts in (
        NONE,
        build_rejected_attempts(2),
        build_rejected_attempts(MAX_ATTEMPTS),
        add_stale_sign_in_refusal_if_not_locked_out(NONE, "t", START, "e") or NONE,
    ):
        assert MemberAttempts.from_json(attempts.to_json()) == attempts


def test_a_lock_out_of_an_earlier_version_is_audited() -> None:
    """An unreported lock-out without the property ``audited``, which earlier versions stored, is audited."""
    stored = build_rejected_attempts(MAX_ATTEMPTS).to_json()
    del stored["pending"][0]["audited"]
    assert MemberAttempts.from_json(stored).pending[0].is_audited
