"""Tests of the JSON format of impulses (stored messages)."""

import json
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.impulses import decode_impulse, encode_impulse, parse_impulse_texts, to_impulse_texts
from shared.telemetry.json_text import serialise_lossless_json
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


def test_an_impulse_has_the_documented_properties() -> None:
    """A serialised impulse has exactly the documented properties."""
    assert orjson.loads(encode_impulse(EXAMPLE)) == {
        "ID": "m-1",
        "Timestamp": "2026-01-05T08:00:00.250000Z",
        "Source": "DataConnection",
        "Subject": "rig-1",
        "Headers": {"line": "3"},
        "Metadata": {"ConnectionLookup": "pump-rig", "SurfaceLookups": ["cooling", "packaging"]},
        "Payload": {"Pressure": 1.5},
    }


TRICKY = st.sampled_from([']},"Payload":', ',"Headers":', '"', "\\", "Payload", "\n"])
IMPULSES = st.builds(
    Impulse,
    message_id=TEXT | TRICKY,
    timestamp=st.datetimes(timezones=st.just(UTC)),
    connection=TEXT | TRICKY,
    surfaces=st.lists(TEXT | TRICKY).map(tuple),
    device_id=TEXT | TRICKY,
    headers=st.dictionaries(TEXT | TRICKY, TEXT | TRICKY),
    payload=st.dictionaries(
        TEXT | TRICKY, st.integers() | TEXT | TRICKY | st.floats(allow_nan=False, allow_infinity=False)
    ),
)


@given(IMPULSES)
def test_an_impulse_is_decoded_unchanged(impulse: Impulse) -> None:
    """An impulse that is encoded and decoded is unchanged, for any year and number."""
    assert decode_impulse(encode_impulse(impulse)) == impulse


@given(IMPULSES)
def test_a_known_text_of_the_payload_is_copied(impulse: Impulse) -> None:
    """If the JSON text of a payload is already known, it is copied into the impulse, with the same result."""
    assert encode_impulse(impulse, serialise_lossless_json(impulse.payload)) == encode_impulse(impulse)


def test_the_depth_of_a_known_text_is_checked() -> None:
    """A payload with too many levels is rejected, also if its JSON text is known."""
    deep: list[object] = []
    for _ in range(1_023):
        deep = [deep]
    payload = {"a": deep}
    text = b'{"a":' + b"[" * 1_024 + b"]" * 1_024 + b"}"
    with pytest.raises(ValueError):  # noqa: PT011  words of the parser
        encode_impulse(EXAMPLE._replace(payload=payload), text)


@given(IMPULSES)
def test_texts_are_copied_from_an_impulse(impulse: Impulse) -> None:
    """The JSON texts that are copied from an encoded impulse equal those of the decoded impulse."""
    assert parse_impulse_texts(encode_impulse(impulse)) == to_impulse_texts(impulse)


@given(IMPULSES, st.permutations(["ID", "Timestamp", "Source", "Subject", "Headers", "Metadata", "Payload"]))
def test_texts_encoded_by_another_program_are_decoded(impulse: Impulse, order: list[str]) -> None:
    """The texts of an impulse are the same if another program has encoded it, with blanks or reordered properties."""
    members = orjson.loads(encode_impulse(impulse))
    text = json.dumps({name: members[name] for name in order}, indent=1).encode()
    assert parse_impulse_texts(text) == to_impulse_texts(decode_impulse(text))


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
def test_invalid_impulse_properties_are_reported(change: dict[str, object], named: str) -> None:
    """An object that is not an impulse is rejected with the name of an invalid property."""
    wrong = orjson.loads(encode_impulse(EXAMPLE)) | change
    with pytest.raises(ValueError, match=f"^{named}: "):
        decode_impulse(orjson.dumps(wrong))
    with pytest.raises(ValueError, match=f"^{named}: "):
        parse_impulse_texts(orjson.dumps(wrong))


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"{"])
def test_a_text_that_is_no_object_is_rejected(text: bytes) -> None:
    """A text that is not a JSON object raises a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011  two parsers' words
        decode_impulse(text)
    with pytest.raises(ValueError):  # noqa: PT011  as above
        parse_impulse_texts(text)
