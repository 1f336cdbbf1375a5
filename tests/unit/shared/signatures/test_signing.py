"""Tests of the checks of signatures and of the lock-out after rejected attempts."""

from typing import Any

import pytest

from shared.auth.principals import CredentialKind
from shared.errors import Kind, WorkspaceError
from shared.signatures.sign_ins import build_sign_in_name
from tests.unit.shared.signatures.environment import CHAIN, Environment


@pytest.mark.parametrize(
    ("signature", "changes", "code"),
    [
        ({"meaning": "approval"}, {}, ""),
        ({"meaning": "review", "statement": None}, {}, ""),
        (None, {"age": 400, "personal": False}, "SIGNATURE_REQUIRED"),
        ({"meaning": "x"}, {"age": 400, "personal": False}, "SIGNATURE_MEANING_INVALID"),
        ({"meaning": "approval"}, {"age": 400, "personal": False}, "REAUTHENTICATION_REQUIRED"),
        ({"meaning": "approval"}, {"sign_in": "", "age": 301}, "REAUTHENTICATION_REQUIRED"),
        ({"meaning": "approval"}, {"age": -121}, "REAUTHENTICATION_REQUIRED"),
        ({"meaning": "approval"}, {"max_age": 0, "age": 61}, "REAUTHENTICATION_REQUIRED"),
        ({"meaning": "approval"}, {"personal": False}, "SIGNATURE_NOT_PERSONAL"),
        ({"meaning": "approval"}, {"client_id": "tool"}, "DELEGATED_TOKEN"),
        ({"meaning": "approval"}, {"client_id": "tool", "via": CredentialKind.API_KEY}, ""),
    ],
)
async def test_form_sign_in_and_person_are_checked_in_order(
    environment: Environment, signature: Any, changes: dict[str, Any], code: str
) -> None:
    """The form of a signature is checked first, then the age of the sign-in, then whether the caller is a person."""
    assert await environment.sign(signature, **changes) == code


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"personal": False}, "SIGNATURE_NOT_PERSONAL"), ({"client_id": "tool"}, "DELEGATED_TOKEN")],
)
@pytest.mark.parametrize("age", [10, 400])
async def test_attempts_of_others_do_not_lock_a_member(
    environment: Environment, changes: dict[str, Any], code: str, age: int
) -> None:
    """A rejection of a delegated token, or of a key that another member created, is not an attempt of the member."""
    expected = code if age == 10 else "REAUTHENTICATION_REQUIRED"
    for _ in range(10):
        assert await environment.sign(age=age, **changes) == expected
    assert await environment.sign() == ""


async def test_rejections_of_used_sign_ins_are_signing_attempts(environment: Environment) -> None:
    """A rejection because the sign-in was used before counts as an attempt, even if it is a token's first."""
    assert await environment.sign(max_age=0) == ""
    for _ in range(5):
        assert await environment.sign(max_age=0) == "SIGNATURE_TOKEN_USED"
    assert await environment.sign(max_age=0, sign_in="sign-in-2") == "SIGNATURE_LOCKED"


async def test_a_rejection_for_a_sign_in_used_meanwhile_counts(environment: Environment) -> None:
    """If another decision uses the sign-in between check and append, the rejection counts as an attempt."""
    name = build_sign_in_name("ann", "sign-in-1", environment.at)

    async def take_over_sign_in() -> None:
        await environment.sign_ins.mark_sign_in_used(name, "other", CHAIN)

    assert await environment.sign(max_age=0, meanwhile=take_over_sign_in) == "SIGNATURE_TOKEN_USED"
    for _ in range(4):
        assert await environment.sign(max_age=0) == "SIGNATURE_TOKEN_USED"
    assert await environment.sign(max_age=0, sign_in="sign-in-2") == "SIGNATURE_LOCKED"


async def test_rejections_for_other_reasons_are_no_signing_attempts(environment: Environment) -> None:
    """If a decision is rejected for another reason than its signature, no attempt counts, and the sign-in is unused."""

    async def reject_decision() -> None:
        raise WorkspaceError(Kind.CONFLICT, "AMENDMENT_NOT_PENDING", "Another person has decided.")

    for _ in range(6):
        assert await environment.sign(max_age=0, meanwhile=reject_decision) == "AMENDMENT_NOT_PENDING"
    assert await environment.sign(max_age=0) == ""


async def test_a_rejected_repeat_does_not_free_the_sign_in_of_a_stored_decision(environment: Environment) -> None:
    """If the first attempt has stored the decision that a repeat may not store again, its sign-in counts as used."""

    async def reject_after_late_append() -> None:
        environment.appended.add("a")
        raise WorkspaceError(Kind.CONFLICT, "CATALOG_CHANGED", "Another member has edited the query.")

    code = await environment.sign(max_age=0, append_id="a", meanwhile=reject_after_late_append)
    assert code == "CATALOG_CHANGED"
    assert await environment.sign(max_age=0) == "SIGNATURE_TOKEN_USED"
