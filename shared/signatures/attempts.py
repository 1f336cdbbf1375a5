"""Refused attempts of a member to sign, and the lock-out after too many attempts."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final, Self

from shared.background.ports import cap_stored_time
from shared.errors import Kind, WorkspaceError
from shared.timestamps import format_rfc3339, parse_rfc3339

MAX_ATTEMPTS: Final = 5
WINDOW: Final = timedelta(minutes=15)
"""Time within which refused attempts count together, and length of the lock-out."""

_REMEMBERED_TOKENS: Final = 50
"""Number of tokens for each member whose first refusal, for a sign-in that was not recent, is remembered."""


@dataclass(frozen=True, slots=True)
class LockOut:
    """Lock-out of a member that is not yet reported to the audit log and to webhooks.

    Attributes:
        append_id: id with which the audit event is appended.
        at: time of the lock-out.
        attempts: number of refused attempts that caused the lock-out.
        since: time of the first of these attempts.
        is_audited: whether the workspace had provenance (audit chains) at the time of the lock-out; True if an earlier
            version of the service stored it.
    """

    append_id: str
    at: datetime
    attempts: int
    since: datetime
    is_audited: bool = True

    def to_json(self) -> dict[str, Any]:
        """Convert the lock-out to JSON values, as the store contains them."""
        times = {"at": format_rfc3339(self.at), "since": format_rfc3339(self.since)}
        return {"appendId": self.append_id, "attempts": self.attempts, **times, "audited": self.is_audited}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Parse a lock-out (a member cannot sign for some time) from the JSON values in the store."""
        at, since = parse_rfc3339(value["at"]), parse_rfc3339(value["since"])
        return cls(value["appendId"], at, value["attempts"], since, value.get("audited", True))


@dataclass(frozen=True, slots=True)
class MemberAttempts:
    """Refused attempts of one member to sign.

    Attributes:
        member: id of the member.
        times: times of the recent attempts that count.
        challenged: ids of tokens that were refused once because their sign-in was not recent; each further refusal of
            these tokens counts as an attempt.
        locked_until: end of the lock-out; None if the member was never locked out.
        pending: lock-outs that are not yet reported.
    """

    member: str
    times: tuple[datetime, ...] = ()
    challenged: tuple[str, ...] = ()
    locked_until: datetime | None = None
    pending: tuple[LockOut, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Convert the refused attempts to JSON values, as the store contains them."""
        return {
            "member": self.member,
            "times": [format_rfc3339(at) for at in self.times],
            "challenged": list(self.challenged),
            "lockedUntil": None if self.locked_until is None else format_rfc3339(self.locked_until),
            "pending": [one.to_json() for one in self.pending],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Parse a member's refused attempts to sign from the JSON values in the store."""
        locked_until = value["lockedUntil"]
        return cls(
            value["member"],
            tuple(map(parse_rfc3339, value["times"])),
            tuple(value["challenged"]),
            None if locked_until is None else parse_rfc3339(locked_until),
            tuple(map(LockOut.from_json, value["pending"])),
        )


def check_not_locked_out(attempts: MemberAttempts, at: datetime) -> None:
    """Check that a member is not locked out at the current time ``at``.

    Raises:
        WorkspaceError: THROTTLED ``SIGNATURE_LOCKED`` with ``retryAfter``, if the member is locked out.
    """
    if attempts.locked_until is not None and at < attempts.locked_until:
        seconds = ceil((attempts.locked_until - at).total_seconds())
        detail = f"Too many signatures of this member were refused; sign again in {seconds} seconds."
        raise WorkspaceError(Kind.THROTTLED, "SIGNATURE_LOCKED", detail, retryAfter=seconds)


def shorten_lock_out_after_clock_setback(attempts: MemberAttempts, at: datetime) -> MemberAttempts | None:
    """Return the attempts with a lock-out that ends at most 15 minutes after the current time ``at``.

    A lock-out can end later only if the clock was set back since then. Differences of clocks up to ``CLOCK_TOLERANCE``
    are ignored. Return None if the lock-out does not change.
    """
    if attempts.locked_until is None:
        return None
    locked_until = cap_stored_time(attempts.locked_until, at + WINDOW)
    return None if locked_until == attempts.locked_until else replace(attempts, locked_until=locked_until)


def add_stale_sign_in_refusal_if_not_locked_out(
    attempts: MemberAttempts, token_id: str, at: datetime, append_id: str, *, is_audited: bool = True
) -> MemberAttempts | None:
    """Record that a token was refused because its sign-in is not recent.

    The first refusal of a token is noted, but does not count towards the lock-out.

    Args:
        attempts: earlier attempts of the member.
        token_id: id of the token.
        at: time of the attempt.
        append_id: id of the audit event that reports the lock-out if this attempt causes one.
        is_audited: whether the workspace has provenance (audit chains).

    Returns:
        The attempts with this refusal; None if nothing changes, because the member is locked out already.
    """
    if token_id in attempts.challenged:
        return add_refused_attempt_if_not_locked_out(attempts, at, append_id, is_audited=is_audited)
    return replace(attempts, challenged=(*attempts.challenged[1 - _REMEMBERED_TOKENS :], token_id))


def add_refused_attempt_if_not_locked_out(
    attempts: MemberAttempts, at: datetime, append_id: str, *, is_audited: bool = True
) -> MemberAttempts | None:
    """Record a refused attempt to sign; the fifth within 15 minutes locks the member out for 15 minutes.

    Args:
        attempts: earlier attempts of the member.
        at: time of the attempt.
        append_id: id of the audit event that reports the lock-out if this attempt causes one.
        is_audited: whether the workspace has provenance (audit chains).

    Returns:
        The attempts including this one; None if nothing changes, because the member is locked out already.
    """
    if attempts.locked_until is not None and at < attempts.locked_until:
        return None
    # A time in the future was stored before the clock was set back.
    times = (*(min(time, at) for time in attempts.times if time > at - WINDOW), at)
    if len(times) < MAX_ATTEMPTS:
        return replace(attempts, times=times)
    event = LockOut(append_id, at, len(times), min(times), is_audited)
    return replace(attempts, times=(), locked_until=at + WINDOW, pending=(*attempts.pending, event))


def remove_reported_lock_out_if_present(attempts: MemberAttempts, append_id: str) -> MemberAttempts | None:
    """Return the attempts without a reported lock-out in the list ``pending``; None if the list does not contain it.

    ``append_id`` is the id of the audit event about the lock-out.
    """
    pending = tuple(one for one in attempts.pending if one.append_id != append_id)
    return None if pending == attempts.pending else replace(attempts, pending=pending)
