"""Tests of the positions of values in a document."""

from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.document_nodes import LineIndex, Node, free_syntax_trees


@given(st.lists(st.integers(0, 90_000), max_size=4), st.integers(0, 200_000))
def test_line_and_column_count_from_1(lengths: list[int], offset: int) -> None:
    """Lines and columns are counted from 1, in short and long texts."""
    text = "\n".join("x" * length for length in lengths)
    offset = min(offset, len(text))
    before = text[:offset]
    assert LineIndex(text).get_line_and_column(offset) == (before.count("\n") + 1, offset - before.rfind("\n"))


def test_released_trees_are_empty() -> None:
    """The release of a tree removes the children of all its nodes, also of a node that contains itself."""
    leaf = Node("str", 1, 1, "a")
    inner = Node("seq", 1, 1, items=[leaf])
    root = Node("map", 1, 1, entries=[(leaf, inner)])
    inner.items = [leaf, root]
    waiting = [root]
    free_syntax_trees(waiting)
    assert (waiting, root.entries, inner.items) == ([], [], [])
