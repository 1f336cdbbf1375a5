"""Tests of requests, and of the serialisation of JSON replies."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.http.messages import Request, serialise_json
from shared.telemetry.json_text import parse, serialise

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_telemetry_values_are_serialised_exactly(value: Any) -> None:
    """Each telemetry value that ingestion can store is serialised unchanged, also integers of any size."""
    try:
        stored = parse(serialise(value))
    except ValueError:
        return
    assert json.loads(serialise_json({"Payload": stored})) == {"Payload": stored}


def test_a_datetime_is_serialised_with_a_huge_integer() -> None:
    """The slower serialiser for huge integers also serialises datetimes."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert json.loads(serialise_json({"at": at, "n": 2**80})) == {"at": "2026-01-01T00:00:00.000000Z", "n": 2**80}


def test_the_query_string_is_parsed_once() -> None:
    """The query string of a request is parsed once, however often its parameters are read."""
    request = Request("GET", "/", "a=1&a=2&b=", {}, b"")
    assert request.query_pairs == (("a", "1"), ("a", "2"), ("b", ""))
    assert request.query_pairs is request.query_pairs


def test_the_error_about_a_query_string_that_is_not_utf_8_states_the_rule() -> None:
    """The error about percent-encoded bytes that are not UTF-8 states the rule in the API's wording."""
    with pytest.raises(ValueError, match="percent-encoded characters must be UTF-8"):
        assert Request("GET", "/", "a=%FF", {}, b"").query_pairs
