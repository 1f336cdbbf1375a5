"""Tests of the YAML parser and the JSON parser."""

import json
from collections.abc import Callable
from traceback import walk_tb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog import document_parsers
from shared.catalog.document_nodes import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES, LocatedValues, Node
from shared.catalog.document_parsers import parse_json_document, parse_yaml
from shared.catalog.problems import DocumentError


def find_problem(text: str) -> str:
    """Return the problem of an invalid YAML text, with its position."""
    with pytest.raises(DocumentError) as raised:
        parse_yaml(text, "w.yaml")
    [problem] = raised.value.problems
    return f"{problem.line}:{problem.column} {problem.message}"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("true", "bool"),
        ("no", "str"),
        ("yes", "str"),
        ("012", "int"),
        ("0o17", "int"),
        ("1_000", "str"),
        ("1e3", "float"),
        (".inf", "float"),
        ("2026-01-05", "str"),
        ("1:30", "str"),
        ("~", "null"),
        ("'1'", "str"),
        ("!!str 1", "str"),
        ("! 1", "str"),
    ],
)
def test_yaml_scalars_follow_yaml_1_2(text: str, kind: str) -> None:
    """By YAML 1.2, the text ``no`` is not a boolean, and a date is a text."""
    assert parse_yaml(text, "w.yaml").tag == kind


def test_each_document_value_has_a_position() -> None:
    """Each value has a line and a column, counted from 1 as in editors."""
    root = parse_yaml("a: 1\nb:\n  - x\n  - [y]\n", "w.yaml")
    (_, first), (key, items) = root.entries or []
    assert [(node.line, node.column) for node in (first, key, items, *(items.items or []))] == [
        (1, 4),
        (2, 1),
        (3, 3),
        (3, 5),
        (4, 5),
    ]


def test_an_alias_is_the_value_of_its_anchor() -> None:
    """An alias is parsed as the value of its anchor."""
    root = parse_yaml("a: &x [1]\nb: *x\n", "w.yaml")
    (_, first), (_, second) = root.entries or []
    assert second is first


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1 the document is empty"),
        ("# comment", "1:1 the document is empty"),
        ("a: 1\n---\nb: 2\n", "2:1 expected a single document, but found another document"),
        ("a: *x\n", "1:4 found undefined alias 'x'"),
        ("a: [1\nb: 2\n", "2:2 while parsing a flow sequence, did not find expected ',' or ']'"),
        ("a: \x01", "1:4 control characters are not allowed"),
        ("a: \ud800", "1:4 the text has an unpaired surrogate, which is not a character"),
        ("a: &x [*x]\n", "1:8"),
        ("[" * (MAX_DEPTH + 1), f"1:{MAX_DEPTH + 1} the document is nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_each_document_problem_has_a_position(text: str, problem: str) -> None:
    """Each problem has the line and column of its position."""
    assert find_problem(text).startswith(problem)


@pytest.mark.parametrize(
    ("limit", "value", "text", "problem"),
    [
        ("MAX_CHARACTERS", 3, "abcd", "longer than 3 characters"),
        ("MAX_NODES", 3, "[1, 2, 3]", "more than 3 values"),
        ("MAX_ALIASES", 1, "[&x 1, *x, *x]", "more than 1 aliases"),
        ("MAX_NODES", 12, "- &a [1, 2, 3]\n- &b [*a, *a]\n- [*b, *b]\n", "aliases make"),
    ],
)
def test_a_document_text_beyond_a_limit_is_rejected(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, text: str, problem: str
) -> None:
    """A text beyond a limit is rejected, because a few aliases can expand to a huge document."""
    monkeypatch.setattr(document_parsers, limit, value)
    assert problem in find_problem(text)


_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=12,
)


def parse_json_values(text: str) -> Any:
    """Return the values of a JSON text."""
    values = LocatedValues(parse_json_document(text, "w.json"), "w.json", text)
    read_values = values.to_json_values()
    assert values.problems == []
    return read_values


@given(_VALUE, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_values_equal_those_of_the_standard_library(value: Any, indent: Any, escaped: bool) -> None:  # noqa: FBT001  drawn
    """The parser returns the same values for any JSON text as the standard library."""
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert json.dumps(parse_json_values(text)) == json.dumps(json.loads(text))


@given(st.text(alphabet='{}[]",:0123456789.eE-+truefalsn \n\\u', max_size=30))
def test_json_is_accepted_as_by_the_standard_library(text: str) -> None:
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
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_a_rejected_json_text_has_a_position(text: str, position: tuple[int, int], message: str) -> None:
    """A text that is not JSON or is nested too deeply is reported as one problem with line and column."""
    check_json_error(text, position, message)


@pytest.mark.parametrize(
    ("limit", "value", "accepted", "rejected", "position", "message"),
    [
        ("MAX_NODES", 4, "[1,1,1]", "[1,1,1,1]", (1, 8), "more than 4 values"),
        ("MAX_NODES", 3, '{"a":1,"b":1}', '{"a":1,"b":1,"c":1}', (1, 14), "more than 3 values"),
        ("MAX_CHARACTERS", 4, "   1", "    1", (1, 1), "longer than 4 characters"),
    ],
)
def test_a_json_text_beyond_a_limit_has_a_position(
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    accepted: str,
    rejected: str,
    position: tuple[int, int],
    message: str,
) -> None:
    """A JSON text that reaches a limit is accepted; a larger one is reported as one problem with line and column."""
    monkeypatch.setattr(document_parsers, limit, value)
    parse_json_document(accepted, "w.json")
    check_json_error(rejected, position, message)


def check_json_error(text: str, position: tuple[int, int], message: str) -> None:
    """Check that a JSON text has one problem at the given position, whose message contains the given text."""
    with pytest.raises(DocumentError) as caught:
        parse_json_document(text, "w.json")
    [problem] = caught.value.problems
    assert message in problem.message.lower()
    assert (problem.line, problem.column) == position


def test_documents_have_maximum_sizes() -> None:
    """A document has at most 16 Mi characters, 300,000 values and 40 levels."""
    assert (MAX_CHARACTERS, MAX_NODES, MAX_DEPTH) == (16 * 1024 * 1024, 300_000, 40)


def test_repeated_property_names_are_problems() -> None:
    """A property name that occurs twice in an object is a problem with the position of its second occurrence."""
    text = '{"a": 1,\n "a": 2}'
    values = LocatedValues(parse_json_document(text, "w.json"), "w.json", text)
    values.to_json_values()
    assert [str(problem) for problem in values.problems] == ["w.json:2:2: a: repeats a key of line 1"]


@pytest.mark.parametrize("text", ["[[1, 2], {a: [3, 4}", "[1, 2]\n--- a", "{a: [1, 2], b: *c}"])
def test_an_error_about_yaml_keeps_no_values(text: str) -> None:
    """The values of an invalid text are freed in the parser, and not by the reader of the error."""
    check_no_values_remain(lambda: parse_yaml(text, "w.yaml"))


@pytest.mark.parametrize("text", ['[[1, 2], {"a": [3, 4}', "[1, 2] 3", '{"a": [1, 2], "b": c}'])
def test_an_error_about_json_keeps_no_values(text: str) -> None:
    """The values of an invalid text are freed in the parser, and not by the reader of the error."""
    check_no_values_remain(lambda: parse_json_document(text, "w.json"))


def check_no_values_remain(parse: Callable[[], Node]) -> None:
    """Check that the arrays and mappings in the frames of a parser's error are empty."""
    with pytest.raises(DocumentError) as caught:
        parse()
    error: BaseException | None = caught.value
    remaining: list[Node] = []
    while error is not None:
        for frame, _ in walk_tb(error.__traceback__):
            remaining += [
                each for each in frame.f_locals.values() if isinstance(each, Node) and (each.items or each.entries)
            ]
            assert not frame.f_locals.get("items")
            assert not frame.f_locals.get("entries")
        error = error.__context__
    assert not remaining
