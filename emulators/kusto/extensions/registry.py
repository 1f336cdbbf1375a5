"""Adding scalar functions to the translator."""

from collections.abc import Callable, Collection

from duckdb_kql import ir, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS, FunctionSpec

from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.sql import once, render

type Form = Callable[[ir.FunctionCall], str]
ANY_NUMBER = range(1, 65)
"""Argument counts of a variadic function, as Kusto limits them."""


def template(name: str, sql: str, *arities: int) -> None:
    """Add a function whose SQL is a template that names each argument (``{0}``) at most once."""
    writer.SPECIAL_FORMS.pop(name, None)
    SCALAR_FUNCTIONS[name] = FunctionSpec(name, "template", sql, arities)


def body(name: str, arities: Collection[int], write: Callable[..., str]) -> None:
    """Add a function whose SQL is written over arguments that it may name repeatedly."""

    def written(call: ir.FunctionCall) -> str:
        constants = {index for index, arg in enumerate(call.args) if isinstance(arg, ir.Literal | ir.Parameter)}
        return once([argument(name, index, arg) for index, arg in enumerate(call.args)], write, constants)

    form(name, arities, written)


def form(name: str, arities: Collection[int], write: Form) -> None:
    """Add a function whose SQL depends on more than its rendered arguments."""

    def checked(call: ir.FunctionCall) -> str:
        if len(call.args) not in arities:
            raise KqlUnsupportedError(f"function:{name}", hint=f"{name}() does not take {len(call.args)} arguments")
        return write(call)

    # The library looks a name up here when it decides whether a call is a function at all.
    SCALAR_FUNCTIONS[name] = FunctionSpec(name, "template", "")
    writer.SPECIAL_FORMS[name] = checked


def argument(name: str, position: int, expr: ir.Expr) -> str:
    """Return an argument's SQL, as a text where the function reads one."""
    return str(writer.render_arg(name, position, expr))


def text_argument(expr: ir.Expr) -> str:
    """Return an argument's SQL as a text: what is none stands as ``tostring()`` writes it."""
    if writer.is_string_expr(expr):
        return render(expr)
    return str(translate.render_kql_tostring(expr))


def constant(expr: ir.Expr, what: str) -> ir.LiteralValue:
    """Return the value of a literal argument.

    Raises:
        KqlUnsupportedError: it is no literal.
    """
    if not isinstance(expr, ir.Literal):
        raise KqlUnsupportedError(what, hint="the argument must be a literal")
    return expr.value
