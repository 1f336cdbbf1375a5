"""KQL literals of type decimal, their quotients, averages, and their text form.

A decimal has nine digits after the point. A quotient with more digits is rounded, where Data Explorer has 34 digits.
"""

import dataclasses
import decimal
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, translate

from emulators.kusto.decimals import FRACTION_DIGITS, format_decimal, is_representable
from emulators.kusto.errors import syntax_error, unsupported_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.sql import bind_once, render_expression
from emulators.kusto.extensions.tree import get_rule_name, get_source_position
from emulators.kusto.python_functions import PythonFunction

SUPPORTED: tuple[str, ...] = ("decimal() literals with nine digits after the point",)

_TYPE = "DECIMAL(38, 9)"
_CONTEXT = decimal.Context(prec=60)
_STEP = decimal.Decimal(1).scaleb(-FRACTION_DIGITS)
_NUMBERS = ("DOUBLE", "BIGINT", "INTEGER", "HUGEINT")
_BINS = frozenset({"bin", "floor"})
_BIN_ARGUMENTS = 2
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})


def _divide_decimals(dividend: str | None, divisor: str | None) -> str | None:
    """Divide two decimals, rounded to nine digits after the point; None for a null or a division by zero."""
    if dividend is None or divisor is None or not decimal.Decimal(divisor):
        return None
    quotient = _CONTEXT.divide(decimal.Decimal(dividend), decimal.Decimal(divisor))
    return format(quotient.quantize(_STEP, decimal.ROUND_HALF_UP, _CONTEXT), "f")


def _format_decimal_text(text: str | None) -> str | None:
    return None if text is None else format_decimal(decimal.Decimal(text))


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_decimal_divided", _divide_decimals, ("VARCHAR", "VARCHAR"), "VARCHAR"),
    PythonFunction("kql_decimal_text", _format_decimal_text, ("VARCHAR",), "VARCHAR"),
)
macros: tuple[str, ...] = (
    (
        "CREATE OR REPLACE MACRO kql_decimal_quotient(a, b) AS CAST(kql_decimal_divided("
        f"CAST(a AS VARCHAR), CAST(b AS VARCHAR)) AS {_TYPE})"
    ),
    "CREATE OR REPLACE MACRO kql_decimal_bin(v, r) AS CASE WHEN r > 0 THEN v - ((v % r) + r) % r END",
    # The average of no numbers is NaN.
    (
        f"CREATE OR REPLACE MACRO kql_avg(a {_TYPE}) AS kql_decimal_quotient(sum(a), count(a)), "
        + ", ".join(f"(a {kind}) AS coalesce(avg(a), CAST('NaN' AS DOUBLE))" for kind in _NUMBERS)
        + ", (a INTERVAL) AS avg(a), (a TIMESTAMP) AS avg(a)"
    ),
)


def _patch_lower_expr(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_expr(node: Any) -> ir.Expr:
        inner = reader.collapse(node)
        if get_rule_name(inner) != "DecimalLiteralExpression":
            return default(node)
        return _parse_literal(inner)

    return lower_expr


def _parse_literal(node: Any) -> ir.Expr:
    text = node.getText().partition("(")[2].rpartition(")")[0].strip()
    if text.lower() in ("null", ""):
        return ir.FunctionCall("todecimal", (ir.Literal(None, "string"),))
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise syntax_error(f"'{text[:60]}' is not a decimal", get_source_position(node)) from None
    if not value.is_finite() or not is_representable(value):
        raise unsupported_error(
            "decimals of more than nine digits after or 29 before the point", position=get_source_position(node)
        )
    return ir.FunctionCall("todecimal", (ir.Literal(format(value, "f"), "string"),))


def _patch_render_expr(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def render_expr(node: ir.Expr) -> str:
        if isinstance(node, ir.FunctionCall) and node.name in _BINS and infer_decimal(node) == "decimal":
            operands = [f"CAST({render_expression(arg)} AS {_TYPE})" for arg in node.args]
            return f"CAST({bind_once(operands, lambda value, size: f'kql_decimal_bin({value}, {size})')} AS {_TYPE})"
        if not isinstance(node, ir.BinaryOp) or node.op not in _ARITHMETIC:
            return default(node)
        types = infer_decimal(node.left), infer_decimal(node.right)
        if "decimal" not in types:
            return default(node)
        left, right = (
            ir.FunctionCall("todecimal", (operand,)) if kind == "real" else operand
            for operand, kind in zip((node.left, node.right), types, strict=True)
        )
        if node.op == "/":
            return f"kql_decimal_quotient({render_expression(left)}, {render_expression(right)})"
        return f"CAST({default(dataclasses.replace(node, left=left, right=right))} AS {_TYPE})"

    return render_expr


def infer_decimal(expr: ir.Expr) -> str | None:
    """Infer the Kusto type of an expression, which may calculate with decimals; None if it is unknown."""
    if isinstance(expr, ir.LetRef):
        return infer_decimal(expr.value)
    if isinstance(expr, ir.BinaryOp) and expr.op in _ARITHMETIC:
        kinds = infer_decimal(expr.left), infer_decimal(expr.right)
        return "decimal" if "decimal" in kinds else None
    if isinstance(expr, ir.FunctionCall) and expr.name in _BINS and len(expr.args) == _BIN_ARGUMENTS:
        return infer_decimal(expr.args[0])
    return "decimal" if isinstance(expr, ir.FunctionCall) and expr.name == "todecimal" else infer_type(expr)


def _patch_tostring(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def render_tostring(node: ir.Expr) -> str:
        if infer_decimal(node) != "decimal":
            return default(node)
        return f"coalesce(kql_decimal_text(CAST({render_expression(node)} AS VARCHAR)), '')"

    return render_tostring


def install() -> None:
    """Add decimal literals, and arithmetic with them, to the KQL translator library."""
    replace_attribute(lower, "_lower_expr", _patch_lower_expr)
    replace_attribute(translate, "render_expr", _patch_render_expr)
    replace_attribute(translate, "render_kql_tostring", _patch_tostring)
