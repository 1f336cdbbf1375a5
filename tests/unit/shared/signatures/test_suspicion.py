"""Tests of counting refused attempts to sign, and of the lock-out after too many of them."""

from datetime import timedelta

from tests.unit.shared.signatures.environment import START, Environment

MINUTE = timedelta(minutes=1)


async def test_the_fifth_attempt_locks(environment: Environment) -> None:
    """A token's first challenge does not count; the fifth refusal within 15 minutes locks, and is reported once."""
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


async def test_old_attempts_do_not_count(environment: Environment) -> None:
    """Refused attempts count for 15 minutes only."""
    for number in range(10):
        environment.at = START + 4 * number * MINUTE
        assert await environment.sign(age=400) == "REAUTHENTICATION_REQUIRED"
    assert await environment.sign() == ""


async def test_first_challenges_of_tokens(environment: Environment) -> None:
    """The first challenge of each token does not count."""
    for number in range(10):
        assert await environment.sign(age=400, credential_id=f"token-{number}") == "REAUTHENTICATION_REQUIRED"
    assert await environment.sign() == ""


async def test_interrupted_reports(environment: Environment) -> None:
    """A lock-out whose report failed is reported later, once."""
    environment.is_available = False
    for _ in range(6):
        assert await environment.sign(age=400) == "REAUTHENTICATION_REQUIRED"
    assert (environment.audited, environment.announced) == ({}, [])
    environment.is_available = True
    await environment.attempts.report()
    await environment.attempts.report()
    assert (len(environment.audited), len(environment.announced)) == (1, 1)
