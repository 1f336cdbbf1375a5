"""Tests of converting engine cells to JSON values."""

from typing import Any

import pytest

from shared.errors import WorkspaceError
from shared.warm_queries.ports import Column
from shared.warm_queries.results import MAX_DEPTH, to_column_values, to_row_objects

COLUMNS = (Column("d", "dynamic"),)


def build_nested_list(levels: int) -> object:
    """Return nested arrays."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("cell", ["[" * 200 + "1" + "]" * 200, build_nested_list(200)], ids=["text", "value"])
def test_dynamic_value_of_maximum_depth_is_returned(cell: object) -> None:
    """A dynamic value of the maximum depth is returned completely."""
    assert to_row_objects(COLUMNS, [[cell]]) == [{"d": build_nested_list(MAX_DEPTH)}]


@pytest.mark.parametrize(
    "cell",
    ["[" * 201 + "]" * 201, '{"a":' * 400 + "1" + "}" * 400, "[" * 20_000 + "]" * 20_000, build_nested_list(201)],
    ids=["one-more", "objects", "very-deep", "value"],
)
def test_deeper_dynamic_value_is_invalid(cell: object) -> None:
    """A dynamic value beyond the maximum depth is rejected with QUERY_INVALID."""
    with pytest.raises(WorkspaceError, match="deeper than 200 levels") as refused:
        to_row_objects(COLUMNS, [[cell]])
    assert refused.value.code == "QUERY_INVALID"


def test_brackets_in_text_do_not_count_as_levels() -> None:
    """Brackets in texts do not count towards the depth of a dynamic value."""
    assert to_row_objects(COLUMNS, [['["' + "[" * 500 + '"]']]) == [{"d": ["[" * 500]}]


@pytest.mark.parametrize(
    "cell",
    [
        *("4E12", "1.10", "007", "9007199254740993", "true", "null", "NaN", "Infinity", "-Infinity", " 5 ", '"x"', ""),
        *(" [1]", "[1", "{a}", "[NaN]", '{"a":Infinity}', "[1e999]", "[123456789012345678901, -Infinity]"),
        *('["\\ud800"]', '{"a":"\\uDFFF"}', "[valve 1] open", "{}x"),
    ],
)
def test_text_in_a_dynamic_column_stays_a_text(cell: str) -> None:
    """A text that is no JSON object or array is returned unchanged, also if it reads like another JSON value."""
    assert to_row_objects(COLUMNS, [[cell]]) == [{"d": cell}]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('{"a":[1,"1.10"]}', {"a": [1, "1.10"]}),
        ("[]", []),
        ("[123456789012345678901]", [123456789012345678901]),
        ('["\\ud83d\\ude00"]', ["\U0001f600"]),
    ],
)
def test_json_text_of_an_object_or_array_is_that_value(cell: str, value: object) -> None:
    """A text that is a JSON object or array is read as one, because Data Explorer can send these values as text."""
    assert to_row_objects(COLUMNS, [[cell]]) == [{"d": value}]


@pytest.mark.parametrize("cell", [5, 1.5, True, False, None, 2**80])
def test_numbers_booleans_and_null_in_a_dynamic_column_are_unchanged(cell: object) -> None:
    """Numbers, booleans and null keep their value and type."""
    [row] = to_row_objects(COLUMNS, [[cell]])
    assert row["d"] is cell


def test_result_cells_are_converted_by_their_type() -> None:
    """Times get six digits, numbers that are not finite become null, and values by column equal those by row."""
    columns = tuple(Column(kind, kind) for kind in ("datetime", "real", "bool", "dynamic", "string", "long"))
    rows: list[list[Any]] = [
        ["2026-01-05T08:00:00.1234567Z", "NaN", 1, '{"a":[1]}', "x", 2**62],
        ["2026-01-05T08:00:00Z", 1, 0, "plain", "", -1],
        ["2026-01-05T08:00:00.123456Z", 0.5, None, None, "y", None],
        [None, None, True, [1], "z", 0],
    ]
    values = to_column_values(columns, rows)
    assert values == (
        ["2026-01-05T08:00:00.123456Z", "2026-01-05T08:00:00.000000Z", "2026-01-05T08:00:00.123456Z", None],
        [None, 1, 0.5, None],
        [True, False, None, True],
        [{"a": [1]}, "plain", None, [1]],
        ["x", "", "y", "z"],
        [2**62, -1, None, 0],
    )
    names = [column.name for column in columns]
    assert to_row_objects(columns, rows) == [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    assert to_column_values(columns, []) == ([],) * 6
    assert to_row_objects(columns, []) == []
