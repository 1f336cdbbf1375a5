"""Tests of the guards against types that only DuckDB knows."""

import duckdb
import pytest

from emulators.kusto.extensions.type_guards import (
    DYNAMICS,
    TEXTS,
    add_guard,
    join_with_and,
    join_with_or,
    render_error,
    render_number_test,
    render_type_test,
)
from emulators.kusto.library_errors import error_from_duckdb


def _evaluate_sql(sql: str) -> object:
    row = duckdb.execute(f"SELECT {sql}").fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("1.5", True), ("2::TINYINT", True), ("'a'", False)])
def test_numbers_are_recognised(value: str, expected: object) -> None:
    """Whole numbers, decimals and doubles of every size are numbers; texts are not."""
    assert _evaluate_sql(render_number_test(value)) is expected


def test_a_type_test_accepts_any_of_its_types() -> None:
    """A test for several types is true if the expression has one of these types."""
    assert _evaluate_sql(render_type_test("'a'", (*TEXTS, *DYNAMICS))) is True
    assert _evaluate_sql(render_type_test("'a'::JSON", TEXTS)) is False


def test_a_long_expression_has_no_test() -> None:
    """A type test is omitted if its expression is too long to be repeated; a guard without a test adds no SQL."""
    long = "+".join(["1"] * 200)
    assert render_type_test(long, TEXTS) == ""
    assert render_number_test(long) == ""
    assert add_guard("", "error('x')", "1") == "1"


def test_a_guard_raises_its_error_for_the_type_only() -> None:
    """If the type test of a guard is true, the caller gets the guard's error with its code and message."""
    failure = render_error("SEM0001", "it's a text")
    guarded = [add_guard(render_type_test(value, TEXTS), failure, value) for value in ("1", "'a'")]
    assert _evaluate_sql(guarded[0]) == 1
    with pytest.raises(duckdb.InvalidInputException) as caught:
        _evaluate_sql(guarded[1])
    error = error_from_duckdb(caught.value)
    assert (error.inner, error.sentence) == ("SEM0001", "it's a text")


def test_joined_tests_skip_missing_tests() -> None:
    """An OR of type tests omits missing tests; an AND is missing if one of its tests is missing."""
    assert join_with_or("a", "", "b") == "(a) OR (b)"
    assert join_with_and("a", "b") == "a AND b"
    assert join_with_and("a", "") == ""
