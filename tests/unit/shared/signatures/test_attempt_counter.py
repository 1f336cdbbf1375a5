"""Tests of the lock-out after too many rejected attempts to sign."""

from datetime import timedelta

import pytest

from shared.errors import WorkspaceError
from tests.unit.shared.signatures.environment import START, Environment

MINUTE = timedelta(minutes=1)


async def test_the_fifth_attempt_locks_the_member_out(environment: Environment) -> None:
    """The fifth rejected attempt within 15 minutes locks the member out, and this is reported once."""
    for number in range(6):
        environment.at = START + number * MINUTE
        assert await environment.sign(age=400) == "REAUTHENTICATION_REQUIRED"
    assert await environment.sign(None) == "SIGNATURE_LOCKED"
    [(member, event)] = environment.announced
    assert (member, event.attempts, event.since, event.at) == ("ann", 5, START + MINUTE, START + 5 * MINUTE)
    assert environment.audited == {
        event.append_id: {
            "UserID": "ann",
            "ActionType": "Signature.Suspicious",
            "EntityType": "Member",
            "EntityID": "ann",
            "AfterState": {"userId": "ann", "attempts": 5, "since": "2026-11-23T12:01:00.000000Z"},
        }
    }
    assert await environment.sign(member_id="bob") == ""
    environment.at += 15 * MINUTE
    assert await environment.sign() == ""


async def test_rejected_attempts_count_for_15_minutes(environment: Environment) -> None:
    """Rejected attempts count for 15 minutes."""
    for number in range(10):
        environment.at = START + 4 * number * MINUTE
        assert await environment.sign(age=400) == "REAUTHENTICATION_REQUIRED"
    assert await environment.sign() == ""


async def test_a_lock_out_ends_15_minutes_after_a_clock_setback(environment: Environment) -> None:
    """After the clock was set back, a lock-out ends 15 minutes after the member's next attempt to sign."""
    for _ in range(6):
        await environment.sign(age=400)
    environment.at -= 50 * MINUTE
    for minutes, code in ((0, "SIGNATURE_LOCKED"), (14, "SIGNATURE_LOCKED"), (1, "")):
        environment.at += minutes * MINUTE
        assert await environment.sign() == code


async def test_the_first_rejection_of_a_token_is_no_attempt(environment: Environment) -> None:
    """If a token is rejected because its sign-in is too old, its first rejection is not counted as a failed attempt."""
    for number in range(10):
        assert await environment.sign(age=400, credential_id=f"token-{number}") == "REAUTHENTICATION_REQUIRED"
    assert await environment.sign() == ""


async def test_an_interrupted_report_of_a_lock_out_is_repeated(environment: Environment) -> None:
    """If a lock-out cannot be announced or audited, both are repeated until both have succeeded."""
    environment.can_announce = False
    for _ in range(6):
        assert await environment.sign(age=400) == "REAUTHENTICATION_REQUIRED"
    assert (len(environment.audited), environment.announced) == (1, [])
    environment.can_announce = True
    await environment.attempts.report_unreported_lock_outs()
    await environment.attempts.report_unreported_lock_outs()
    assert (len(environment.audited), len(environment.announced)) == (1, 1)


async def test_an_announcement_does_not_wait_for_the_audit_log(environment: Environment) -> None:
    """While the audit log accepts no record, the lock-outs of all members are announced, and audited later."""
    environment.can_announce = environment.is_available = False
    for member in ("ann", "bob"):
        for _ in range(6):
            await environment.sign(age=400, member_id=member)
    environment.can_announce = True
    with pytest.raises(WorkspaceError):
        await environment.attempts.report_unreported_lock_outs()
    assert ({member for member, _ in environment.announced}, environment.audited) == ({"ann", "bob"}, {})
    environment.is_available = True
    await environment.attempts.report_unreported_lock_outs()
    assert len(environment.audited) == 2


@pytest.mark.parametrize("has_provenance", [True, False])
async def test_the_workspace_at_the_lock_out_decides_whether_it_is_audited(
    environment: Environment, *, has_provenance: bool
) -> None:
    """A lock-out is audited if the workspace had provenance at this time, even if it is reported after a change."""
    environment.has_provenance = has_provenance
    environment.can_announce = environment.is_available = False
    for _ in range(6):
        await environment.sign(age=400)
    environment.has_provenance = not has_provenance
    environment.can_announce = environment.is_available = True
    await environment.attempts.report_unreported_lock_outs()
    assert (len(environment.announced), len(environment.audited)) == (1, int(has_provenance))
