"""Tests of the parser of Cosmos SQL expressions."""

from typing import Any

import pytest

from emulators.cosmos.sql_expressions import ExpressionReader, SqlRow, tokenize
from emulators.cosmos.sql_values import UNDEFINED
from emulators.cosmos.wire import CosmosError

DOCUMENT = {"a": 1, "b": {"c": [10, {"d": "x"}]}, "t": True, "f": False, "n": None}


def _evaluate_expression(text: str, **parameters: Any) -> Any:
    reader = ExpressionReader(text, {f"@{name}": value for name, value in parameters.items()})
    expression = reader.parse_expression()
    assert reader.next_token.kind == "end", text
    return expression(SqlRow(DOCUMENT))


def test_query_tokens_have_their_position() -> None:
    """Each token has its kind, text and position in the query; the last token is ``end``."""
    tokens = tokenize(" c.a >= 'x' ")
    assert [(token.kind, token.text) for token in tokens] == [
        ("name", "c"),
        ("symbol", "."),
        ("name", "a"),
        ("symbol", ">="),
        ("string", "'x'"),
        ("end", ""),
    ]
    assert [(token.start, token.end) for token in tokens[:4]] == [(1, 2), (2, 3), (3, 4), (5, 7)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c.t OR c.f AND c.f", True),
        ("(c.t OR c.f) AND c.f", False),
        ("NOT c.f AND c.t", True),
        ("NOT c.t OR c.t", True),
        ("c.a = 1 AND NOT c.a = 2", True),
    ],
)
def test_not_has_priority_over_and_and_and_over_or(text: str, expected: object) -> None:
    """NOT has priority over AND, and AND over OR; parentheses change this."""
    assert _evaluate_expression(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c.b.c[0]", 10),
        ('c["b"]["c"][1].d', "x"),
        ("c.b.c[2]", UNDEFINED),
        ("c.a.x", UNDEFINED),
        ("c.missing", UNDEFINED),
        ("c", DOCUMENT),
    ],
)
def test_sql_paths_select_nested_values(text: str, expected: object) -> None:
    """A path selects nested properties and array elements; a path to a missing property is undefined."""
    assert _evaluate_expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c.a BETWEEN 1 AND 1", True),
        ("c.a BETWEEN 2 AND 3", False),
        ("c.a NOT BETWEEN 2 AND 3", True),
        ("c.a IN (3, 1)", True),
        ("c.a NOT IN (3, 1)", False),
        ("c.missing IN (1)", UNDEFINED),
        ("c.missing BETWEEN 1 AND 2", UNDEFINED),
    ],
)
def test_between_includes_its_bounds_and_in_compares_with_a_list(text: str, expected: object) -> None:
    """BETWEEN includes its bounds, IN compares with each element of a list; NOT negates both."""
    assert _evaluate_expression(text) is expected


def test_query_objects_and_arrays_omit_undefined_values() -> None:
    """If a query builds an object or array, undefined properties and elements are left out."""
    assert _evaluate_expression('{"x": c.a, y: c.missing}') == {"x": 1}
    assert _evaluate_expression("[c.a, c.missing, -2, null]") == [1, -2, None]


def test_sql_literals_ignore_letter_case() -> None:
    """SQL literals may have any letter case; for equal values, <=, >= and = are true, and <, > and != are false."""
    assert _evaluate_expression("[TRUE, false, Null, undefined, 'x', 1.5]") == [True, False, None, "x", 1.5]
    assert _evaluate_expression("[c.a < 1, c.a <= 1, c.a > 1, c.a >= 1, c.a != 1, c.a <> 1]") == [
        False,
        True,
        False,
        True,
        False,
        False,
    ]


def test_not_of_a_value_that_is_not_boolean_is_undefined() -> None:
    """NOT of a value that is not boolean is undefined."""
    assert _evaluate_expression("NOT c.a") is UNDEFINED
    assert _evaluate_expression("NOT c.t") is False


def test_query_parameters_have_the_values_of_the_request() -> None:
    """A query parameter is replaced with its value; a parameter without a value is rejected."""
    assert _evaluate_expression("@x", x=[1]) == [1]
    with pytest.raises(CosmosError, match="The parameter '@y' is not in the list"):
        _evaluate_expression("@y", x=1)


def test_aggregate_calls_are_collected_in_order() -> None:
    """Calls of aggregates are collected with their arguments; each call has a separate total."""
    reader = ExpressionReader("[SUM(c.a), COUNT(1)]", {})
    expression = reader.parse_expression()
    assert [(name, argument(SqlRow({"a": 5}))) for name, argument in reader.aggregates] == [("SUM", 5), ("COUNT", 1)]
    assert expression(SqlRow(None, (7, 8))) == [7, 8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c.a =", "near ''"),
        ("c.a IN ()", "Syntax error"),
        ("d.a", "Identifier 'd' could not be resolved"),
        ("c[1.5]", r"near '1.5\]'"),
        ("- c.a", "near 'c.a'"),
        ("c.a # 1", "near ' # 1'"),
        ("WHERE", "near 'WHERE'"),
        ("LENGTH()", "'LENGTH' with 0 arguments"),
        ("NOPE(1)", "'NOPE' with 1 arguments"),
    ],
)
def test_invalid_sql_expressions_are_rejected(text: str, message: str) -> None:
    """Invalid syntax, unknown names and unknown functions get 400 with a quote of the text."""
    with pytest.raises(CosmosError, match=message) as caught:
        _evaluate_expression(text)
    assert caught.value.status == 400
