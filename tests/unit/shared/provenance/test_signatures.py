"""Tests of the stored form of signatures."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.provenance.signatures import DecisionSignature, SigningSession, find_signature_in_content

SIGNATURE = DecisionSignature(
    "ann", "Ann Example", "approval", None, datetime(2026, 1, 5, 8, tzinfo=UTC), ("pwd", "mfa")
)


def test_a_signature_names_person_meaning_and_record() -> None:
    """The record of a decision contains the signer, the meaning, the signed record, and the sign-in."""
    assert SIGNATURE.to_record_properties("ab" * 32) == {
        "UserID": "ann",
        "PrintedName": "Ann Example",
        "Meaning": "approval",
        "Statement": None,
        "AuthTime": "2026-01-05T08:00:00.000000Z",
        "AuthMethods": ["pwd", "mfa"],
        "RecordHash": "ab" * 32,
    }


@pytest.mark.parametrize(
    ("content", "signature"),
    [({}, None), ({"Signature": None}, None), ({"Signature": "x"}, None), ({"Signature": {"a": 1}}, {"a": 1})],
)
def test_only_an_object_is_a_signature(content: dict[str, Any], signature: dict[str, Any] | None) -> None:
    """A record without a signature object has no signature, for example a record of an earlier version."""
    assert find_signature_in_content(content) == signature


async def test_a_sign_in_counts_as_used_only_after_the_append() -> None:
    """A sign-in counts as used only after its decision was appended, so that it can be used again after a failure."""
    session = SigningSession(SIGNATURE)
    await session.confirm()
    assert not session.is_decided
