"""Tests of adding KQL functions to the translator library."""

from collections.abc import Iterator

import pytest
from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS

from emulators.kusto.extensions import registry
from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.sql import render_expression

NAME = "function_of_a_test"
ONE, TEXT = ir.Literal("1", "long"), ir.Literal("a", "string")


@pytest.fixture(autouse=True)
def library_without_test_function() -> Iterator[None]:
    """Remove the function that a test has registered from the library after the test."""
    yield
    SCALAR_FUNCTIONS.pop(NAME, None)
    writer.SPECIAL_FORMS.pop(NAME, None)


def _render_signature(*arguments: ir.Expr) -> str:
    return render_expression(ir.FunctionCall(NAME, arguments))


def test_the_sql_of_a_template_function_contains_its_arguments() -> None:
    """The generated SQL of a template function contains the SQL of the call's arguments."""
    registry.add_template_function(NAME, "f({1}, {0})", 2)
    assert _render_signature(ir.ColumnRef("a"), ir.ColumnRef("b")) == 'f("b", "a")'


def test_a_template_function_replaces_an_earlier_custom_function() -> None:
    """A template function replaces an earlier custom function with the same name."""
    registry.add_custom_function(NAME, [1], lambda _: "custom")
    registry.add_template_function(NAME, "f({0})", 1)
    assert _render_signature(ir.ColumnRef("a")) == 'f("a")'


def test_a_registered_function_checks_its_number_of_arguments() -> None:
    """A call of a registered function with a wrong number of arguments is rejected with the function's name."""
    registry.add_custom_function(NAME, range(1, 3), lambda call: f"f{len(call.args)}")
    assert (_render_signature(ONE), _render_signature(ONE, ONE)) == ("f1", "f2")
    for count in (0, 3):
        with pytest.raises(KqlUnsupportedError, match=f"does not accept {count} arguments"):
            _render_signature(*[ONE] * count)


def test_a_bound_function_evaluates_an_argument_call_once() -> None:
    """A bound function evaluates an argument with a call once, but repeats a literal."""
    registry.add_function_that_reuses_arguments(NAME, [2], lambda a, b: f"{a} + {a} + {b} + {b}")
    sum_of_columns = ir.BinaryOp("+", ir.ColumnRef("a"), ir.ColumnRef("b"))
    sql = _render_signature(sum_of_columns, ir.Literal("1", "long"))
    assert sql.count('"a"') == 1
    assert "_once.a0 + _once.a0" in sql
    assert "a1 :=" not in sql


def test_only_literals_have_a_literal_value() -> None:
    """A literal argument has a value; a column is rejected with the function's name."""
    assert registry.read_literal_value(TEXT, NAME) == "a"
    with pytest.raises(KqlUnsupportedError, match=f"the argument of {NAME} must be a literal"):
        registry.read_literal_value(ir.ColumnRef("a"), NAME)


def test_a_number_as_string_argument_becomes_a_string() -> None:
    """A string argument stays the same; a number argument becomes a string, as with ``tostring``."""
    assert registry.render_text_argument(TEXT) == render_expression(TEXT)
    assert registry.render_text_argument(ONE) == render_expression(ir.FunctionCall("tostring", (ONE,)))
