"""Functions that add scalar KQL functions to the translator library.

Their argument ``arities`` contains the accepted numbers of arguments of the KQL function.
"""

from collections.abc import Callable, Collection

from duckdb_kql import ir, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS, FunctionSpec

from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.sql import render_expression, render_with_arguments_evaluated_once

type CallRenderer = Callable[[ir.FunctionCall], str]
"""Function that returns the SQL of a call."""
ANY_NUMBER = range(1, 65)
"""Accepted numbers of arguments of a variadic function, up to the limit of Kusto."""


def add_template_function(name: str, sql: str, *arities: int) -> None:
    """Add a KQL function with an SQL template, which uses each argument (such as ``{0}``) at most once."""
    writer.SPECIAL_FORMS.pop(name, None)
    SCALAR_FUNCTIONS[name] = FunctionSpec(name, "template", sql, arities)


def add_function_that_reuses_arguments(name: str, arities: Collection[int], write_sql: Callable[..., str]) -> None:
    """Add a KQL function whose SQL uses an argument several times; ``write_sql`` gets the SQL of each argument."""

    def render_call(call: ir.FunctionCall) -> str:
        constants = {index for index, arg in enumerate(call.args) if isinstance(arg, ir.Literal | ir.Parameter)}
        return render_with_arguments_evaluated_once(
            [render_argument(name, index, arg) for index, arg in enumerate(call.args)], write_sql, constants
        )

    add_custom_function(name, arities, render_call)


def add_custom_function(name: str, arities: Collection[int], write_sql: CallRenderer) -> None:
    """Add a KQL function whose SQL depends on the kinds of its arguments, such as literals or columns.

    ``write_sql`` gets the whole call and returns its SQL.
    """

    def check_and_render(call: ir.FunctionCall) -> str:
        if len(call.args) not in arities:
            raise KqlUnsupportedError(f"function:{name}", hint=f"{name}() does not accept {len(call.args)} arguments")
        return write_sql(call)

    # The library treats only the names in this table as functions.
    SCALAR_FUNCTIONS[name] = FunctionSpec(name, "template", "")
    writer.SPECIAL_FORMS[name] = check_and_render


def render_argument(name: str, position: int, expr: ir.Expr) -> str:
    """Return SQL for an argument of a function, converted to a string if the function expects a string there.

    Args:
        name: name of the KQL function.
        position: index of the argument, from 0.
        expr: the argument.
    """
    return str(writer.render_arg(name, position, expr))


def render_text_argument(expr: ir.Expr) -> str:
    """Return SQL for an argument as a string; a value of another type is converted as by ``tostring()``."""
    if writer.is_string_expr(expr):
        return render_expression(expr)
    return str(translate.render_kql_tostring(expr))


def read_literal_value(expr: ir.Expr, function: str) -> ir.LiteralValue:
    """Return the value of an argument that must be a literal; ``function`` names the function in the error.

    Raises:
        KqlUnsupportedError: the argument is not a literal.
    """
    if not isinstance(expr, ir.Literal):
        raise KqlUnsupportedError(function, hint=f"the argument of {function} must be a literal")
    return expr.value
