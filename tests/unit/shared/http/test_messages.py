"""Replies as JSON."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.http.messages import json_bytes
from shared.telemetry.json_text import parse, serialise

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_whatever_telemetry_holds_can_be_given_back(value: Any) -> None:
    """What ingest stores is written in a reply as the value that it is, integers of any size too."""
    try:
        stored = parse(serialise(value))
    except ValueError:
        return
    assert json.loads(json_bytes({"Payload": stored})) == {"Payload": stored}


def test_an_instant_beside_a_huge_integer_is_written() -> None:
    """The slower writer knows instants too."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert json.loads(json_bytes({"at": at, "n": 2**80})) == {"at": "2026-01-01T00:00:00.000000Z", "n": 2**80}
