"""Cells of the engine as JSON values."""

import pytest

from shared.errors import WorkspaceError
from shared.warm_queries.ports import Column
from shared.warm_queries.results import MAX_DEPTH, row_objects

COLUMNS = (Column("d", "dynamic"),)


def nested(levels: int) -> object:
    """Return arrays within each other."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("cell", ["[" * 200 + "1" + "]" * 200, nested(200)], ids=["text", "value"])
def test_a_dynamic_value_may_have_many_levels(cell: object) -> None:
    """A value of the greatest depth is returned whole."""
    assert row_objects(COLUMNS, [[cell]]) == [{"d": nested(MAX_DEPTH)}]


@pytest.mark.parametrize(
    "cell",
    ["[" * 201 + "]" * 201, '{"a":' * 400 + "1" + "}" * 400, "[" * 20_000 + "]" * 20_000, nested(201)],
    ids=["one-more", "objects", "very-deep", "value"],
)
def test_a_deeper_dynamic_value_is_the_querys_fault(cell: object) -> None:
    """A value of more levels is refused, however deep it is."""
    with pytest.raises(WorkspaceError, match="deeper than 200 levels") as refused:
        row_objects(COLUMNS, [[cell]])
    assert refused.value.code == "QUERY_INVALID"


def test_brackets_in_texts_are_no_levels() -> None:
    """A text with many brackets is no deep value."""
    assert row_objects(COLUMNS, [['"' + "[" * 500 + '"']]) == [{"d": "[" * 500}]
