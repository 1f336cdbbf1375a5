"""Tests of the helpers that build SQL expressions."""

import duckdb
import pytest

from emulators.kusto.extensions.sql import (
    quote_name,
    quote_text,
    render_as_json_list,
    render_as_json_map,
    render_with_arguments_evaluated_once,
)


def _evaluate_sql(sql: str) -> object:
    row = duckdb.execute(f"SELECT {sql}").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("text", ["it's", "", "a\\b", 'say "hi"', "é\n"])
def test_texts_and_names_are_quoted_in_sql(text: str) -> None:
    """A quoted text is an SQL literal with this value, and a quoted name is one identifier."""
    assert _evaluate_sql(quote_text(text)) == text
    named = duckdb.execute(f"SELECT 1 AS {quote_name('x' + text)}")
    assert [column[0] for column in named.description or ()] == ["x" + text]


def test_arguments_that_are_names_or_constants_are_repeated_in_sql() -> None:
    """The SQL repeats an argument that is a name or constant, because binding it to a variable is slower."""
    assert render_with_arguments_evaluated_once(['"a"', "1"], lambda a, b: f"{a} + {b}") == '("a" + 1)'


def test_a_call_in_an_argument_is_evaluated_once() -> None:
    """The SQL evaluates an argument once, unless it is a name or constant."""
    sql = render_with_arguments_evaluated_once(["2 * (3 + 4)", "1"], lambda a, b: f"{a} * {a} + {b}")
    assert sql.count("2 * (3 + 4)") == 1
    assert _evaluate_sql(sql) == 14 * 14 + 1


def test_sql_for_nested_calls_grows_linearly() -> None:
    """The length of SQL for nested calls grows linearly with their depth."""
    sql = "(1 + 1)"
    for _ in range(20):
        sql = render_with_arguments_evaluated_once([sql], lambda a: f"{a} + {a}")
    assert len(sql) < 20 * 100


def test_arguments_that_are_declared_constant_are_repeated_in_sql() -> None:
    """An argument that is declared constant is repeated, even if it is an expression."""
    assert (
        render_with_arguments_evaluated_once(["[1, 2]"], lambda a: f"len({a}) + len({a})", constant_indexes={0})
        == "(len([1, 2]) + len([1, 2]))"
    )
    assert render_with_arguments_evaluated_once(["[1, 2]"], lambda a: f"len({a})").startswith("list_transform")


@pytest.mark.parametrize(("value", "expected"), [("'[1, 2]'", ["1", "2"]), ("'{\"a\": 1}'", None), ("NULL", None)])
def test_only_dynamic_arrays_become_lists(value: str, expected: object) -> None:
    """A dynamic array becomes a list; other dynamic values become null."""
    assert _evaluate_sql(render_as_json_list(f"{value}::JSON")) == expected


@pytest.mark.parametrize(("value", "expected"), [("'{\"a\": 1}'", {"a": "1"}), ("'[1]'", None), ("'5'", None)])
def test_only_property_bags_become_maps(value: str, expected: object) -> None:
    """A property bag becomes a map; other dynamic values become null."""
    assert _evaluate_sql(render_as_json_map(f"{value}::JSON")) == expected
