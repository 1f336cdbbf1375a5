"""Tests of the wire format of impulses."""

from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.impulses import decode, encode
from shared.telemetry.models import Impulse

TEXT = st.text(st.characters(codec="utf-8"))
EXAMPLE = Impulse(
    message_id="m-1",
    timestamp=datetime(2026, 1, 5, 8, 0, 0, 250000, UTC),
    connection="pump-rig",
    surfaces=("cooling", "packaging"),
    device_id="rig-1",
    headers={"line": "3"},
    payload={"Pressure": 1.5},
)


def test_wire_format() -> None:
    """The wire format has exactly these members."""
    assert orjson.loads(encode(EXAMPLE)) == {
        "ID": "m-1",
        "Timestamp": "2026-01-05T08:00:00.250000Z",
        "Source": "DataConnection",
        "Subject": "rig-1",
        "Headers": {"line": "3"},
        "Metadata": {"ConnectionLookup": "pump-rig", "SurfaceLookups": ["cooling", "packaging"]},
        "Payload": {"Pressure": 1.5},
    }


@given(
    st.builds(
        Impulse,
        message_id=TEXT,
        timestamp=st.datetimes(timezones=st.just(UTC)),
        connection=TEXT,
        surfaces=st.lists(TEXT).map(tuple),
        device_id=TEXT,
        headers=st.dictionaries(TEXT, TEXT),
        payload=st.dictionaries(TEXT, st.integers() | TEXT | st.floats(allow_nan=False, allow_infinity=False)),
    )
)
def test_round_trip(impulse: Impulse) -> None:
    """Encoding and decoding returns an equal impulse for any year and any number."""
    assert decode(encode(impulse)) == impulse


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"ID": 1}, "ID"),
        ({"Timestamp": "yesterday"}, "Timestamp"),
        ({"Source": "Other"}, "Source"),
        ({"Subject": None}, "Subject"),
        ({"Headers": {"a": 1}}, "Headers"),
        ({"Headers": []}, "Headers"),
        ({"Metadata": {}}, "ConnectionLookup"),
        ({"Metadata": {"ConnectionLookup": "a", "SurfaceLookups": [1]}}, "SurfaceLookups"),
        ({"Payload": []}, "Payload"),
    ],
)
def test_invalid_members_are_reported(change: dict[str, object], named: str) -> None:
    """An object that is not an impulse is rejected with the name of the invalid member."""
    wrong = orjson.loads(encode(EXAMPLE)) | change
    with pytest.raises(ValueError, match=f"^{named}: "):
        decode(orjson.dumps(wrong))


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"{"])
def test_not_an_impulse(text: bytes) -> None:
    """Text that is not a JSON object is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011  two parsers' words
        decode(text)
