"""Tests of audit events about credentials and their stored form."""

import json

import pytest

from shared.auth.access_events import AccessEvent, parse_stored_event

EVENT = AccessEvent("key-revoked-A", "ann", "ApiKey.Revoked", "ApiKey", "A", {"principal": "ö"}, {"madeWith": None})


def test_a_stored_event_is_parsed_completely() -> None:
    """The stored form of an event contains all of it."""
    assert parse_stored_event(EVENT.to_json_text()) == EVENT
    assert parse_stored_event(EVENT.to_json_text().encode()) == EVENT


@pytest.mark.parametrize(
    "stored",
    [
        None,
        7,
        "",
        b"\xff",
        "[]",
        "[" * 100_000,
        EVENT.to_json_text()[:-5],
        json.dumps({"append_id": "a"}),
        EVENT.to_json_text().replace('"ann"', "7"),
        EVENT.to_json_text().replace('{"madeWith": null}', "[]"),
    ],
)
def test_a_damaged_event_is_not_parsed(stored: object) -> None:
    """A stored event with missing or invalid members is damaged."""
    assert parse_stored_event(stored) is None


def test_the_content_of_an_event_omits_missing_states() -> None:
    """The record of an event contains only the states that the event has."""
    content = AccessEvent("a", "ann", "Token.Issued", "Token", "t", None, {"n": 1}).build_record_content()
    expected = {"ActionType": "Token.Issued", "EntityType": "Token", "EntityID": "t", "AfterState": {"n": 1}}
    assert content == expected
