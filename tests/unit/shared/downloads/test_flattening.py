"""Tests of flattening payloads into columns."""

from collections.abc import Iterator, Sequence

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.downloads import flattening
from shared.downloads.flattening import (
    Flattener,
    find_leaf_paths_one_by_one,
    find_parent_object_paths,
    try_extract_values_one_by_one,
)
from shared.errors import WorkspaceError

PAYLOADS = [
    {"a": 1, "b": {"c": "x", "d": {"e": None}}},
    {"a": "text", "b": {"c": [1, {"k": 2}], "d": {}}},
    {"b": {"c": True}},
]
PATHS = [("a",), ("b", "c"), ("b", "d"), ("b", "d", "e")]


def build_json_array(payloads: Sequence[object]) -> pa.Array:
    """Return payloads as an Arrow array of JSON texts."""
    return pa.array([orjson.dumps(each).decode() for each in payloads], pa.string())


@pytest.fixture
def flattener() -> Iterator[Flattener]:
    """Return a flattener of payloads that uses a DuckDB engine."""
    with Flattener() as opened:
        yield opened


@pytest.mark.parametrize("payloads", [PAYLOADS, [{}], [{"": {"*": 1, '"': 2, "$.x": 3, "a.b": 4, "\\": 5}}]])
def test_the_engine_finds_the_leaves_that_a_parser_finds(flattener: Flattener, payloads: list[object]) -> None:
    """The engine and a JSON parser find the same leaves, also for empty objects, arrays, null and any keys."""
    texts = build_json_array(payloads)
    assert flattener.find_leaf_paths(texts) == find_leaf_paths_one_by_one(texts)
    if payloads is PAYLOADS:
        assert sorted(find_leaf_paths_one_by_one(texts)) == PATHS


@pytest.mark.parametrize("payloads", [PAYLOADS, [{"*": "x", "n": {"?": 1}}, {"n": {"?": "{"}}]])
def test_the_engine_reads_the_values_that_a_parser_reads(flattener: Flattener, payloads: list[object]) -> None:
    """The engine returns texts without quotes, other values as JSON text, and null for null or missing values."""
    texts = build_json_array(payloads)
    paths = sorted(find_leaf_paths_one_by_one(texts))
    values = flattener.try_extract_values(texts, paths)
    expected = try_extract_values_one_by_one(texts, paths)
    assert values is not None
    assert expected is not None
    assert values.to_pylist() == expected.to_pylist()


def test_values_of_the_example_payload_become_texts() -> None:
    """The values of an example payload become the documented texts."""
    values = try_extract_values_one_by_one(build_json_array(PAYLOADS), PATHS)
    assert values is not None
    assert values.to_pylist() == [
        ["1", "x", None, None],
        ["text", '[1,{"k":2}]', "{}", None],
        [None, "true", None, None],
    ]


@pytest.mark.parametrize("unknown", [{"z": 1}, {"b": {"z": 1}}, {"a": {"z": 1}}, {"b": 1}])
def test_a_payload_leaf_without_a_column_is_reported(flattener: Flattener, unknown: object) -> None:
    """If a payload has a leaf without a column, the leaf is reported, so that the part is converted again."""
    texts, paths = build_json_array([*PAYLOADS, unknown]), [("a",), ("b", "c"), ("b", "d", "e"), ("b", "d")]
    assert flattener.try_extract_values(texts, paths) is None
    assert try_extract_values_one_by_one(texts, paths) is None


COMPLETE = {"a": 1, "b": {"c": "x"}}


@pytest.mark.parametrize("unknown", [{"z": None}, {"z": {}}, {"b": {"c": "x", "z": 1}}, {"b": {"c": {"z": 1}}}])
def test_a_leaf_without_a_column_is_reported_beside_complete_payloads(flattener: Flattener, unknown: object) -> None:
    """A leaf without a column is also reported if all known leaves of the payload have values."""
    texts = build_json_array([COMPLETE, {**COMPLETE, **unknown}, COMPLETE])  # type: ignore[dict-item]
    assert flattener.try_extract_values(texts, [("a",), ("b", "c")]) is None


@pytest.mark.parametrize("value", [[{"z": 1}], 'a key "z": 1', '\\":', {}])
def test_values_that_look_like_other_keys_are_no_leaves(flattener: Flattener, value: object) -> None:
    """Keys within arrays, and strings that look like keys, are no leaves, so they need no column."""
    texts = build_json_array([COMPLETE, {**COMPLETE, "a": value}])
    values = flattener.try_extract_values(texts, [("a",), ("b", "c")])
    assert values is not None
    assert values.to_pylist()[1][0] == (value if isinstance(value, str) else orjson.dumps(value).decode())


_KEYS = st.sampled_from(["a", "b", "", "*", '"', ":", "\\"])
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text('":{}\\a', max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=3), min_size=1, max_size=4), st.integers(1, 4))
def test_engine_and_parser_agree_on_any_payloads(payloads: list[object], known: int) -> None:
    """The engine reads the same values as the parser, and reports the same leaves without a column."""
    texts = build_json_array(payloads)
    paths = sorted(find_leaf_paths_one_by_one(texts.slice(0, known)))
    with Flattener() as flattener:
        values = flattener.try_extract_values(texts, paths)
    expected = try_extract_values_one_by_one(texts, paths)
    assert (values and values.to_pylist()) == (expected and expected.to_pylist())


def test_more_columns_than_the_limit_are_rejected(flattener: Flattener, monkeypatch: pytest.MonkeyPatch) -> None:
    """More columns than the limit are rejected, because other programs could not open the file."""
    monkeypatch.setattr(flattening, "MAX_LEAVES", 3)
    for find in (flattener.find_leaf_paths, find_leaf_paths_one_by_one):
        with pytest.raises(WorkspaceError) as raised:
            find(build_json_array(PAYLOADS))
        assert raised.value.code == "DOWNLOAD_TOO_WIDE"


def test_parents_are_all_objects_that_contain_a_path() -> None:
    """The parents of a path are all objects that contain it, including the root."""
    assert find_parent_object_paths([("a",), ("b", "d", "e")]) == {(), ("b",), ("b", "d")}
