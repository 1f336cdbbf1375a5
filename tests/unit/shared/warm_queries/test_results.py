"""Tests of the conversion of engine cells to JSON values."""

import pytest

from shared.errors import WorkspaceError
from shared.warm_queries.ports import Column
from shared.warm_queries.results import MAX_DEPTH, to_row_objects

COLUMNS = (Column("d", "dynamic"),)


def nested(levels: int) -> object:
    """Return nested arrays."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("cell", ["[" * 200 + "1" + "]" * 200, nested(200)], ids=["text", "value"])
def test_dynamic_value_of_maximum_depth_is_returned(cell: object) -> None:
    """A value of maximum depth is returned completely."""
    assert to_row_objects(COLUMNS, [[cell]]) == [{"d": nested(MAX_DEPTH)}]


@pytest.mark.parametrize(
    "cell",
    ["[" * 201 + "]" * 201, '{"a":' * 400 + "1" + "}" * 400, "[" * 20_000 + "]" * 20_000, nested(201)],
    ids=["one-more", "objects", "very-deep", "value"],
)
def test_deeper_dynamic_value_is_invalid(cell: object) -> None:
    """A value beyond the maximum depth is rejected with QUERY_INVALID."""
    with pytest.raises(WorkspaceError, match="deeper than 200 levels") as refused:
        to_row_objects(COLUMNS, [[cell]])
    assert refused.value.code == "QUERY_INVALID"


def test_brackets_in_text_do_not_count_as_levels() -> None:
    """Text with many brackets is not a deep value."""
    assert to_row_objects(COLUMNS, [['"' + "[" * 500 + '"']]) == [{"d": "[" * 500}]
