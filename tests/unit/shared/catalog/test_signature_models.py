"""Tests of the policy for electronic signatures in the workspace document."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.catalog.document import load_document
from shared.catalog.fields import DECLARED
from shared.catalog.items import to_definition
from shared.catalog.signature_models import SignaturePolicy
from tests.unit.shared.catalog.documents import PLANT

NAMES = [f"m{index}" for index in range(20)]


def parse_policy(**members: Any) -> SignaturePolicy:
    """Parse a policy as a request body."""
    return SignaturePolicy.model_validate(members, context=DECLARED)


def test_no_decision_needs_a_signature_by_default() -> None:
    """Without a policy, no decision needs a signature."""
    assert to_definition(SignaturePolicy()) == {
        "amendments": "off",
        "queries": "off",
        "maxAgeSeconds": 300,
        "meanings": ["approval", "rejection", "review"],
    }


def test_an_unquoted_off_in_a_policy_is_a_text() -> None:
    """In YAML, an unquoted `off` in a policy is read as the text `off` instead of a boolean."""
    text = PLANT.replace("policies: {", "policies: {signatures: {amendments: off, queries: required}, ")
    policy = load_document(text, "plant.yaml").policies.signatures
    assert (policy.amendments, policy.queries) == ("off", "required")
    assert list(policy.kinds_that_require_signature) == ["queries"]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ([], ("approval", "rejection")),
        (["review"], ("review", "approval", "rejection")),
        (["rejection", "review"], ("rejection", "review", "approval")),
        (NAMES, (*NAMES, "approval", "rejection")),
        ([*NAMES, "approval", "rejection"], (*NAMES, "approval", "rejection")),
    ],
)
def test_missing_signature_meanings_are_added(sent: list[str], stored: tuple[str, ...]) -> None:
    """The meanings `approval` and `rejection` are added to a list that lacks them."""
    assert parse_policy(meanings=sent).meanings == stored
    assert parse_policy(meanings=list(stored)).meanings == stored


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"amendments": "on"}, "'off' or 'required'"),
        ({"queries": False}, "'off' or 'required'"),
        ({"maxAgeSeconds": -1}, "greater than or equal to 0"),
        ({"maxAgeSeconds": 3601}, "less than or equal to 3600"),
        ({"meanings": [*NAMES, "m20"]}, "at most 20 items"),
        ({"meanings": ["approval", "rejection", *NAMES[:19]]}, "at most 20 items"),
        ({"meanings": [""]}, "at least 1 character"),
        ({"meanings": ["m" * 65]}, "at most 64 characters"),
        ({"meanings": [" review"]}, "must not begin or end with a space"),
        ({"amendment": "off"}, "Extra inputs are not permitted"),
    ],
)
def test_invalid_signature_policies_are_rejected(members: dict[str, Any], message: str) -> None:
    """A signature policy with an invalid value or an unknown field is rejected."""
    with pytest.raises(ValidationError, match=message):
        parse_policy(**members)
