"""Division by the operands' types, and what SQL has no operators for: parts of timespans, a typed null.

Which operand types there are follows the operators' signatures in Kusto's published language definition.
"""

from collections.abc import Callable

from duckdb_kql import ir, translate

from emulators.kusto.extensions.known_types import kind_of
from emulators.kusto.extensions.library import replace, writer
from emulators.kusto.extensions.nodes import nodes
from emulators.kusto.extensions.raising import raising
from emulators.kusto.extensions.sql import once, render

_NUMBERS = frozenset({"int", "long"})
_WHOLE = ("BIGINT", "HUGEINT")
_DECIMAL = "DECIMAL(38, 9)"
_UNDIVIDED = raising(
    "EMB0001", "'dividing a decimal' is not supported by the embedded query engine (convert it with toreal())"
)
_QUOTIENTS = (
    # A division of integers is null where the divisor is 0, one of reals is infinite or NaN.
    *(f"(a {left}, b {right}) AS a // nullif(b, 0)" for left in _WHOLE for right in _WHOLE),
    "(a DOUBLE, b DOUBLE) AS a / b",
    *(f"(a {_DECIMAL}, b {right}) AS {_UNDIVIDED}" for right in (*_WHOLE, _DECIMAL)),
    *(f"(a {left}, b {_DECIMAL}) AS {_UNDIVIDED}" for left in _WHOLE),
    *(f"(a INTERVAL, b {right}) AS kql_span_divided(a, b)" for right in ("INTERVAL", "BIGINT", "DOUBLE")),
)

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
    f"CREATE OR REPLACE MACRO kql_quotient{', '.join(_QUOTIENTS)}",
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
        operands = [render(left), render(right)]
        if any("kql_" in sql for sql in operands) or any(map(_is_aggregate, (left, right))):
            # DuckDB binds what stands in a macro of several forms twice, so that nested ones double at each level, and
            # an aggregate not at all; the element of a list it binds once.
            return once(operands, lambda a, b: f"{macro}({a}, {b})")
        return f"{macro}({', '.join(operands)})"

    return render_expr


def _macro(node: ir.BinaryOp) -> str | None:
    left, right = _is_span(node.left), _is_span(node.right)
    if node.op == "/" and left:
        return "kql_span_divided"
    if node.op == "/" and not right and not {kind_of(node.left), kind_of(node.right)} <= _NUMBERS:
        return "kql_quotient"
    if node.op == "%" and left and right:
        return "kql_span_rest"
    fractional = writer.is_real_expr(node.left) or writer.is_real_expr(node.right)
    return "kql_span_times" if node.op == "*" and left is not right and fractional else None


def _is_aggregate(root: ir.Expr) -> bool:
    """Return whether an aggregate is somewhere in an expression; a bare name stands for one that is worked out."""
    return any(isinstance(node, ir.RenderedAggregate) and "(" in node.sql for node in nodes(root))


def _is_span(expr: ir.Expr) -> bool:
    return bool(writer.is_timespan_expr(expr))
