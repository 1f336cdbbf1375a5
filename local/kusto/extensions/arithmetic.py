"""Arithmetic of timespans that SQL has no operators for: divided by a number, the rest of a division, a typed null.

Which operand types there are follows the operators' signatures in Kusto's published language definition.
"""

from collections.abc import Callable

from duckdb_kql import ir, translate

from local.kusto.extensions.library import replace, writer
from local.kusto.extensions.sql import render

macros: tuple[str, ...] = (
    # Overloads: DuckDB picks by the type of the divisor, which a translation may not know.
    (
        "CREATE OR REPLACE MACRO kql_span_divided(a, b INTERVAL) AS epoch_us(a) / epoch_us(b), "
        "(a, b BIGINT) AS to_microseconds(epoch_us(a) // b), (a, b INTEGER) AS to_microseconds(epoch_us(a) // b), "
        "(a, b DOUBLE) AS to_microseconds(CAST(trunc(epoch_us(a) / b) AS BIGINT))"
    ),
    (
        "CREATE OR REPLACE MACRO kql_span_rest(a, b) AS to_microseconds((epoch_us(a) % epoch_us(b) + "
        "abs(epoch_us(b))) % abs(epoch_us(b)))"
    ),
    "CREATE OR REPLACE MACRO kql_span_times(a, n) AS to_microseconds(CAST(trunc(epoch_us(a) * n) AS BIGINT))",
)


def install() -> None:
    """Write the operators so, and ``dynamic(null)`` as a dynamic."""
    replace(translate, "render_expr", _rendering)
    replace(translate, "_TYPED_NULLS", lambda nulls: nulls | {"dynamic"})


def _rendering(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def render_expr(node: ir.Expr) -> str:
        macro = _macro(node) if isinstance(node, ir.BinaryOp) else None
        if macro is None or not isinstance(node, ir.BinaryOp):
            return default(node)
        left, right = node.left, node.right
        if macro == "kql_span_times" and not _is_span(left):
            left, right = right, left
        return f"{macro}({render(left)}, {render(right)})"

    return render_expr


def _macro(node: ir.BinaryOp) -> str | None:
    left, right = _is_span(node.left), _is_span(node.right)
    if node.op == "/" and left:
        return "kql_span_divided"
    if node.op == "%" and left and right:
        return "kql_span_rest"
    fractional = writer.is_real_expr(node.left) or writer.is_real_expr(node.right)
    return "kql_span_times" if node.op == "*" and left is not right and fractional else None


def _is_span(expr: ir.Expr) -> bool:
    return bool(writer.is_timespan_expr(expr))
