"""Tests of the request bodies of the audit log."""

from typing import Any

import pytest
from pydantic import ValidationError

from shared.provenance.models import AmendmentBody, EventBody, RejectionBody, SignatureBody

EVENT = {"ActionType": "Update", "EntityType": "Batch", "EntityID": "B-1"}
AMENDMENT = {
    "ScopeKey": "s",
    "EntityType": "Batch",
    "EntityID": "B-1",
    "OriginalRecord": {"a": 1},
    "AmendedRecord": {"a": 2},
    "ChangedFields": ["a"],
    "ReasonCategory": "typo",
    "ReasonText": "",
}


def test_an_event_has_only_its_own_properties() -> None:
    """A property with the value null counts as absent; the scope and unknown properties are not part of the event."""
    body = EventBody.model_validate({**EVENT, "NodeID": None, "ScopeKey": "s", "UserID": "mallory", "Extra": 1})
    assert body.to_event() == EVENT
    assert body.scope_key == "s"


@pytest.mark.parametrize("changes", [{"EntityID": ""}, {"EntityID": 7}, {"AfterState": []}, {"ActionType": None}])
def test_event_values_of_a_wrong_type_are_rejected(changes: dict[str, Any]) -> None:
    """A value of a wrong type is rejected and not converted, because records contain the sent values."""
    with pytest.raises(ValidationError):
        EventBody.model_validate({**EVENT, **changes})


def test_each_value_without_canonical_form_is_listed_with_other_errors() -> None:
    """Each number that JSON parsers read differently is listed, even one in an ignored property."""
    sent = {"ActionType": 2**53, "EntityType": "T", "AfterState": {"n": 1, "m": [2**53, 2**53]}, "Extra": 2**53}
    with pytest.raises(ValidationError) as raised:
        EventBody.model_validate(sent)
    listed = [(error["type"], error["loc"]) for error in raised.value.errors()]
    assert listed == [
        ("string_type", ("ActionType",)),
        ("missing", ("EntityID",)),
        ("canonical_form", ("AfterState", "m", 0)),
        ("canonical_form", ("AfterState", "m", 1)),
        ("canonical_form", ("Extra",)),
    ]
    with pytest.raises(ValidationError, match="within"):
        EventBody.model_validate({**EVENT, "Extra": [2**53]})


def test_a_body_has_only_the_documented_names() -> None:
    """The name of a property in the code is an unknown property of the body, and is ignored."""
    assert EventBody.model_validate({**EVENT, "scope_key": "s"}).scope_key is None


@pytest.mark.parametrize("changes", [{"ChangedFields": []}, {"ChangedFields": [""]}, {"OriginalRecord": None}])
def test_an_amendment_requires_records_and_changed_fields(changes: dict[str, Any]) -> None:
    """An amendment must contain the record before, the record after, and at least one changed field."""
    assert AmendmentBody.model_validate(AMENDMENT).changed_fields == ["a"]
    with pytest.raises(ValidationError):
        AmendmentBody.model_validate({**AMENDMENT, **changes})


def test_the_body_of_a_decision_accepts_any_signature_value() -> None:
    """The body model of a decision accepts any value as signature, because a later step checks it."""
    assert RejectionBody.model_validate({"signature": 7}).signature == 7
    with pytest.raises(ValidationError):
        SignatureBody.model_validate({"meaning": "approval", "other": 1})
