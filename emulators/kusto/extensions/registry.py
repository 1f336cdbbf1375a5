"""Functions that add scalar KQL functions to the translator library.

The parameter ``argument_counts`` of these functions contains the numbers of arguments that the KQL function accepts.
"""

from collections.abc import Callable, Collection

from duckdb_kql import ir, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS, FunctionSpec

from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.sql import Sql, render_expression, render_with_arguments_evaluated_once

type CallRenderer = Callable[[ir.FunctionCall], Sql]
"""Function that returns the SQL of a call."""
ANY_NUMBER = range(1, 65)
"""Accepted numbers of arguments of a variadic function, up to the limit of Kusto."""


def add_template_function(function_name: str, sql_template: Sql, *argument_counts: int) -> None:
    """Add a KQL function that is translated by an SQL template, such as ``"upper({0})"``.

    The template must use each argument at most once.
    """
    writer.SPECIAL_FORMS.pop(function_name, None)
    SCALAR_FUNCTIONS[function_name] = FunctionSpec(function_name, "template", sql_template, argument_counts)


def add_function_that_reuses_arguments(
    function_name: str, argument_counts: Collection[int], render_sql: Callable[..., Sql]
) -> None:
    """Add a KQL function whose SQL uses an argument several times; ``render_sql`` gets the SQL of each argument."""

    def render_call_sql(call: ir.FunctionCall) -> Sql:
        constants = {index for index, arg in enumerate(call.args) if isinstance(arg, ir.Literal | ir.Parameter)}
        return render_with_arguments_evaluated_once(
            [render_argument(function_name, index, arg) for index, arg in enumerate(call.args)], render_sql, constants
        )

    add_custom_function(function_name, argument_counts, render_call_sql)


def add_custom_function(function_name: str, argument_counts: Collection[int], render_call_sql: CallRenderer) -> None:
    """Add a KQL function whose SQL depends on the kinds of its arguments, such as literals or columns.

    ``render_call_sql`` gets the whole call and returns its SQL.
    """

    def check_and_render_call(call: ir.FunctionCall) -> Sql:
        if len(call.args) not in argument_counts:
            raise KqlUnsupportedError(
                f"function:{function_name}", hint=f"{function_name}() does not accept {len(call.args)} arguments"
            )
        return render_call_sql(call)

    # The library treats only the names in this table as functions.
    SCALAR_FUNCTIONS[function_name] = FunctionSpec(function_name, "template", "")
    writer.SPECIAL_FORMS[function_name] = check_and_render_call


def render_argument(function_name: str, argument_index: int, expr: ir.Expr) -> Sql:
    """Return SQL for an argument of a function, converted to a string if the function expects a string there.

    Args:
        function_name: name of the KQL function.
        argument_index: index of the argument, from 0.
        expr: the argument.
    """
    return str(writer.render_arg(function_name, argument_index, expr))


def render_text_argument(expr: ir.Expr) -> Sql:
    """Return SQL for an argument as a string; a value of another type is converted as by ``tostring()``."""
    if writer.is_string_expr(expr):
        return render_expression(expr)
    return str(translate.render_kql_tostring(expr))


def read_literal_value(expr: ir.Expr, function_name: str) -> ir.LiteralValue:
    """Return the value of an argument that must be a literal; ``function_name`` names the function in the error.

    Raises:
        KqlUnsupportedError: the argument is not a literal.
    """
    if not isinstance(expr, ir.Literal):
        raise KqlUnsupportedError(function_name, hint=f"the argument of {function_name} must be a literal")
    return expr.value
