"""Tests of the YAML parser."""

import pytest

from shared.catalog import yaml_document
from shared.catalog.document_nodes import MAX_DEPTH
from shared.catalog.problems import DocumentError
from shared.catalog.yaml_document import parse_yaml


def parse_error(text: str) -> str:
    """Return the problem of an invalid text with its position."""
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
def test_scalars_follow_yaml_1_2(text: str, kind: str) -> None:
    """By YAML 1.2, the text ``no`` is not a boolean, and a date is a text."""
    assert parse_yaml(text, "w.yaml").tag == kind


def test_each_value_has_its_place() -> None:
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
def test_a_problem_has_its_place(text: str, problem: str) -> None:
    """Each problem has the line and column of its position."""
    assert parse_error(text).startswith(problem)


@pytest.mark.parametrize(
    ("limit", "value", "text", "problem"),
    [
        ("MAX_CHARACTERS", 3, "abcd", "longer than 3 characters"),
        ("MAX_NODES", 3, "[1, 2, 3]", "more than 3 values"),
        ("MAX_ALIASES", 1, "[&x 1, *x, *x]", "more than 1 aliases"),
        ("MAX_NODES", 12, "- &a [1, 2, 3]\n- &b [*a, *a]\n- [*b, *b]\n", "aliases make"),
    ],
)
def test_a_text_beyond_a_limit_is_rejected(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, text: str, problem: str
) -> None:
    """A text beyond a limit is rejected, because a few aliases can expand to a huge document."""
    monkeypatch.setattr(yaml_document, limit, value)
    assert problem in parse_error(text)
