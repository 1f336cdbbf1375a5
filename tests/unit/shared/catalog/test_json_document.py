"""Tests of the JSON document parser, compared with the standard library, and of its positions and limits."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.document_nodes import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES, LocatedValues
from shared.catalog.json_document import parse_json_document
from shared.catalog.problems import DocumentError

_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=12,
)


def read(text: str) -> Any:
    """Return the values of a JSON text."""
    values = LocatedValues(parse_json_document(text, "w.json"), "w.json", text)
    read_values = values.read()
    assert values.problems == []
    return read_values


@given(_VALUE, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_values_equal_those_of_the_standard_library(value: Any, indent: Any, escaped: bool) -> None:  # noqa: FBT001  drawn
    """The parser returns the same values for any JSON text as the standard library."""
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert json.dumps(read(text)) == json.dumps(json.loads(text))


@given(st.text(alphabet='{}[]",:0123456789.eE-+truefalsn \n\\u', max_size=30))
def test_texts_are_accepted_as_by_the_standard_library(text: str) -> None:
    """The parser accepts no text that the standard library rejects, and each rejection has a position."""
    try:
        parse_json_document(text, "w.json")
    except DocumentError as error:
        [problem] = error.problems
        assert (problem.line, problem.column) >= (1, 1)
    else:
        json.loads(text)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", (1, 1), "is empty"),
        ('{"a": 1}\n x', (2, 2), "text follows"),
        ('{"a" 1}', (1, 6), "colon"),
        ('{"a": 1,}', (1, 9), "name"),
        ("[1\n 2]", (2, 2), "comma"),
        ("[NaN]", (1, 2), "value"),
        ("[01]", (1, 3), "comma"),
        ('["\n"]', (1, 3), "control character"),
        ('["\\ud800"]', (1, 2), "surrogate"),
        ("[" * (MAX_DEPTH + 1), (1, MAX_DEPTH + 1), "nested"),
        ("[" + "1," * MAX_NODES + "1]", (1, 2 * MAX_NODES), "values"),
        ("{" + '"a":1,' * MAX_NODES, None, "values"),
        (" " * (MAX_CHARACTERS + 1), (1, 1), "longer"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_rejected_texts_have_a_position(text: str, position: tuple[int, int] | None, message: str) -> None:
    """A text that is not JSON or exceeds a limit is one problem, with line and column."""
    with pytest.raises(DocumentError) as caught:
        parse_json_document(text, "w.json")
    [problem] = caught.value.problems
    assert message in problem.message.lower()
    assert position is None or (problem.line, problem.column) == position


def test_repeated_names_are_problems() -> None:
    """A name that occurs twice in an object is a problem with the position of the second occurrence."""
    text = '{"a": 1,\n "a": 2}'
    values = LocatedValues(parse_json_document(text, "w.json"), "w.json", text)
    values.read()
    assert [str(problem) for problem in values.problems] == ["w.json:2:2: a: repeats a key of line 1"]
