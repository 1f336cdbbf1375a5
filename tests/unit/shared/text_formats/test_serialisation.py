"""Tests of the serialisation of JSON values, and of serialising large values in slices."""

import json
import tracemalloc
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.telemetry.json_text import parse_lossless_json, serialise_lossless_json
from shared.text_formats import serialisation
from shared.text_formats.serialisation import (
    estimate_json_size,
    iterate_json_parts_of_rows,
    join_parts_up_to,
    serialise_json,
    serialise_json_in_parts,
    to_json_text,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
SIZES = st.sampled_from([0, 1, 2, 5, 1_000])


@given(VALUES)
def test_telemetry_values_are_serialised_exactly(value: object) -> None:
    """Each telemetry value that ingestion can store is serialised unchanged, also integers of any size."""
    try:
        stored = parse_lossless_json(serialise_lossless_json(value))
    except ValueError:
        return
    assert json.loads(serialise_json({"Payload": stored})) == {"Payload": stored}


def test_a_datetime_is_serialised_with_a_huge_integer() -> None:
    """The slower serialiser for huge integers also serialises datetimes."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert json.loads(serialise_json({"at": at, "n": 2**80})) == {"at": "2026-01-01T00:00:00.000000Z", "n": 2**80}


@pytest.mark.parametrize("values", [0, 10_000], ids=["large", "small"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_become_null(
    number: float, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN and infinities become null, next to a huge integer, too, because JSON has no such numbers."""
    monkeypatch.setattr(serialisation, "_MAX_VALUES_PER_CALL", values)
    value = {"a": [number, 2**80, {"b": number}], "c": "NaN"}
    expected = {"a": [None, 2**80, {"b": None}], "c": "NaN"}
    assert json.loads(serialise_json(value)) == expected
    assert json.loads(to_json_text(value)) == expected
    assert json.loads(b"[%b]" % b"".join(iterate_json_parts_of_rows([value], 1_000_000))) == [expected]


@given(
    st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=6),
    SIZES,
    st.sampled_from([0, 1_000_000]),
)
def test_rows_serialised_in_slices_have_the_same_values(rows: list[object], values: int, text_size: int) -> None:
    """The parts of a result's rows are together the JSON text of all rows, for slices of any size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialisation, "_MAX_VALUES_PER_CALL", values)
        patch.setattr(serialisation, "_ROWS_PER_CALL", values + 1)
        text = b"[%b]" % b"".join(iterate_json_parts_of_rows(rows, text_size))
    assert json.loads(text) == rows


@given(VALUES, SIZES)
@example([-(2**63) - 1, 2**-24], 0)
def test_parts_of_a_value_are_its_json_text(value: object, values: int) -> None:
    """A value that is serialised in parts gets the same text as in one call.

    With a huge integer only the values are the same, because its serialiser writes exponents in another way.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialisation, "_MAX_VALUES_PER_CALL", values)
        patch.setattr(serialisation, "_CHARACTERS_PER_CALL", values + 1)
        text = b"".join(serialise_json_in_parts(value))
    whole = serialise_json(value)
    assert json.loads(text) == json.loads(whole)
    try:
        orjson.dumps(value)
    except TypeError:
        return
    assert text == whole


def test_no_part_is_requested_after_the_limit() -> None:
    """Parts of a JSON text are joined up to a size; after the part that exceeds it, no part is created."""
    parts = iter([b"ab", b"cd", b"e", b"f"])
    assert join_parts_up_to(parts, 4) is None
    assert list(parts) == [b"f"]
    assert join_parts_up_to([b"ab", b"cd"], 4) == b"abcd"


def test_the_estimated_size_of_a_value_counts_texts_and_names() -> None:
    """The estimated size of a JSON value counts all texts and names, up to a maximum."""
    assert estimate_json_size([1, None], 1_000) == 12
    assert estimate_json_size([{"ab": "cde"}], 1_000) == 17
    assert estimate_json_size([{"ab": ["x" * 1_000, "y"]}] * 10, 1_000) < 2_000
    for value in ([None] * 1_000, dict.fromkeys(map(str, range(1_000)))):
        assert 40 < estimate_json_size(value, 40) < 80


@given(VALUES, SIZES)
def test_text_of_a_value_does_not_depend_on_its_size(value: object, values: int) -> None:
    """A large value, whose parts are written one by one, gets the text that a small value of this form has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialisation, "_MAX_VALUES_PER_CALL", values)
        assert to_json_text(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    "cell",
    [
        list(range(100_000)),
        ["a text of some length"] * 50_000,
        '"' * 1_000_000,
        {"a": [{"b": list(range(60_000))}, {str(number): number for number in range(60_000)}]},
    ],
    ids=["numbers", "texts", "long-text", "nested"],
)
def test_a_large_cell_is_serialised_in_several_calls(cell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call serialises more values than allowed, because other threads wait for the end of each call."""
    lengths: list[int] = []
    serialise = serialise_json

    def record_length(value: object) -> bytes:
        text = serialise(value)
        lengths.append(len(text))
        return text

    monkeypatch.setattr(serialisation, "serialise_json", record_length)
    rows = [{"Cell": 1}, {"Cell": cell}, {"Cell": 2}]
    text = b"[%b]" % b"".join(iterate_json_parts_of_rows(rows, len(json.dumps(rows))))
    assert json.loads(text) == rows
    assert max(lengths) <= 330_000


@pytest.mark.parametrize(
    "cell",
    [list(range(60_000)), [2**70] * 20_000, {str(number) * 1_000: number for number in range(1_000)}],
    ids=["numbers", "long-integers", "long-names"],
)
def test_a_large_cell_among_many_short_rows_is_serialised_alone(cell: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a call depends on the rows in it, not on the average of all rows."""
    counts: list[int] = []
    serialise = serialise_json

    def record_count(value: object) -> bytes:
        counts.append(serialisation._count_values_up_to_call_limit(value))
        return serialise(value)

    monkeypatch.setattr(serialisation, "serialise_json", record_count)
    rows = [*({"N": number} for number in range(9_000)), {"Cell": cell}]
    text = b"[%b]" % b"".join(iterate_json_parts_of_rows(rows, len(json.dumps(rows))))
    assert json.loads(text) == rows
    assert max(counts) <= serialisation._MAX_VALUES_PER_CALL + 10


def test_the_text_of_a_large_value_takes_little_memory() -> None:
    """The conversion of a large value to text takes memory for a few copies of the text, not for each value."""
    value = list(range(50_000))
    tracemalloc.start()
    text = to_json_text(value)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(text)


def test_rows_without_large_cells_are_serialised_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short rows are serialised 250 at a time, because counting their values would take longer."""
    monkeypatch.setattr(serialisation, "_count_values_up_to_call_limit", pytest.fail)
    rows = [{"N": number} for number in range(1_000)]
    parts = [part for part in iterate_json_parts_of_rows(rows, 10_000) if part != b","]
    assert [len(json.loads(b"[%b]" % part)) for part in parts] == [250] * 4
