"""Tests of the rule that one sign-in can be used to sign only one decision."""

from datetime import timedelta

import pytest

from shared.errors import WorkspaceError
from shared.http.problems import build_error_headers
from shared.signatures.sign_ins import LEASE, SignInBusyError, build_sign_in_name
from tests.unit.shared.signatures.environment import CHAIN, START, Environment

SECOND = timedelta(seconds=1)
USED = "sign in again for each signature"
BUSY = "retry in 30 seconds, or sign in again"
INTERRUPTED = "After an interrupted decision"


async def test_a_sign_in_can_be_used_for_one_signature(environment: Environment) -> None:
    """A sign-in that was used to sign a decision cannot sign a different decision, even after its lease has ended."""
    assert await environment.sign(max_age=0) == ""
    environment.at += LEASE + SECOND
    assert await environment.sign(max_age=0) == "SIGNATURE_TOKEN_USED"


async def test_a_used_sign_in_cannot_sign_after_a_policy_change(environment: Environment) -> None:
    """If the policy is changed to one signature per sign-in, a sign-in that was used before cannot be used again."""
    assert await environment.sign() == ""
    assert await environment.sign() == ""
    assert await environment.sign(max_age=0) == "SIGNATURE_TOKEN_USED"


async def test_a_retry_can_use_the_same_sign_in(environment: Environment) -> None:
    """While a decision is being appended, its sign-in can be used for a retry of it, but for no other decision.

    The error for another decision has ``Retry-After``; the error for a used sign-in has none.
    """
    await environment.sign_ins.reserve_sign_in("name", "a", CHAIN)
    await environment.sign_ins.reserve_sign_in("name", "a", CHAIN)
    environment.at += timedelta(seconds=0.5)
    with pytest.raises(SignInBusyError, match=BUSY) as raised:
        await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)
    assert build_error_headers(raised.value) == {"Retry-After": "30"}
    await environment.sign_ins.confirm_and_extend_reservation("name", "a")
    await environment.sign_ins.release_reservation("name", "a")
    await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)
    with pytest.raises(WorkspaceError, match=USED) as used:
        await environment.sign_ins.confirm_and_extend_reservation("name", "a")
    assert build_error_headers(used.value) == {}


async def test_another_decision_after_an_abandoned_one_needs_a_new_sign_in(environment: Environment) -> None:
    """A sign-in whose decision was abandoned signs no other decision: the person must sign in again, without a wait."""
    signer = build_sign_in_name("ann", "sign-in-1", environment.at)
    await environment.sign_ins.reserve_sign_in(signer, "abandoned", CHAIN)
    environment.at += LEASE + SECOND
    for _ in range(2):
        assert await environment.sign(max_age=0, age=31) == "REAUTHENTICATION_REQUIRED"
    assert environment.at - START == LEASE + SECOND
    assert await environment.sign(max_age=0, sign_in="sign-in-2") == ""


async def test_a_late_append_of_an_abandoned_decision_uses_its_sign_in(environment: Environment) -> None:
    """If the decision of an abandoned use is appended after all, its sign-in counts as used."""
    await environment.sign_ins.reserve_sign_in("name", "a", CHAIN)
    environment.at += LEASE + SECOND
    with pytest.raises(WorkspaceError, match=INTERRUPTED):
        await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)
    environment.appended.add("a")
    with pytest.raises(WorkspaceError, match=USED):
        await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)


async def test_a_slow_decision_is_stored_after_another_one_was_refused(environment: Environment) -> None:
    """If another request had to sign in again because a decision is slow, the slow decision can still be appended."""
    await environment.sign_ins.reserve_sign_in("name", "a", CHAIN)
    environment.at += LEASE + SECOND
    with pytest.raises(WorkspaceError, match=INTERRUPTED):
        await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)
    await environment.sign_ins.confirm_and_extend_reservation("name", "a")
    with pytest.raises(SignInBusyError, match=BUSY):
        await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)


@pytest.mark.parametrize(("seconds", "code"), [(20, "SIGNATURE_TOKEN_USED"), (40, "REAUTHENTICATION_REQUIRED")])
async def test_one_of_simultaneous_decisions_is_stored_if_clocks_differ(
    environment: Environment, seconds: int, code: str
) -> None:
    """Of two simultaneous decisions with one sign-in, the first is stored, whatever the clock of the other host is."""
    ahead = Environment(environment.store, environment.at + timedelta(seconds=seconds), appended=environment.appended)

    async def sign_on_other_host() -> None:
        assert await ahead.sign(max_age=0, age=10 + seconds) == code

    assert await environment.sign(max_age=0, age=10, meanwhile=sign_on_other_host) == ""
    assert len(environment.appended) == 1


async def test_an_interrupted_decision_does_not_lock_its_signer_out(environment: Environment) -> None:
    """While the outcome of an interrupted decision is unknown, repeated attempts to sign do not lock the member out."""
    at = environment.at
    signer = build_sign_in_name("ann", "sign-in-1", at - timedelta(seconds=10))
    await environment.sign_ins.reserve_sign_in(signer, "interrupted", CHAIN)
    for _ in range(6):
        assert await environment.sign(max_age=0) == "SIGNATURE_TOKEN_USED"
    environment.at += LEASE
    assert await environment.sign(max_age=0, sign_in="sign-in-2") == ""


async def test_an_appended_decision_counts_as_used_before_its_lease_ends(environment: Environment) -> None:
    """If an interrupted decision was appended, the sign-in counts as used at once."""
    await environment.sign_ins.reserve_sign_in("name", "a", CHAIN)
    environment.appended.add("a")
    with pytest.raises(WorkspaceError, match=USED):
        await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)


async def test_a_process_that_ends_after_the_append_uses_its_sign_in(environment: Environment) -> None:
    """If a process ends after the signed decision is appended, the sign-in cannot be used again."""
    await environment.sign_ins.reserve_sign_in("name", "a", CHAIN)
    environment.appended.add("a")
    environment.at += LEASE + SECOND
    for _ in range(2):
        with pytest.raises(WorkspaceError, match=USED):
            await environment.sign_ins.reserve_sign_in("name", "b", CHAIN)
