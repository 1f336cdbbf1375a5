"""Comparisons with NaN as in IEEE 754: NaN is unequal to every value, also to itself, and has no order.

In SQL, NaN equals itself and is greater than every other number. Therefore the translation adds a test to the SQL of a
comparison such as ``a > b``: the greater operand ``a`` must not be NaN. No test is added for an operand that cannot be
NaN. Joins and groups still treat all NaN as one value.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from duckdb_kql import ir, translate

from emulators.kusto.extensions.known_types import can_be_nan
from emulators.kusto.extensions.library import replace_attribute
from emulators.kusto.extensions.sql import Sql, render_expression, render_with_arguments_evaluated_once
from emulators.kusto.extensions.static_types import infer_static_type

_TEST = "kql_not_nan"
_EQUALITIES = frozenset({"==", "!=", "<>"})
_COMPARISONS = _EQUALITIES | {"<", "<=", ">", ">="}
_RIGHT_IS_GREATER = frozenset({"<", "<="})

WHOLE_MACRO = "kql_json_whole"
"""Macro that converts a dynamic value to a whole number."""

macros: tuple[str, ...] = (
    # DuckDB replaces the type test by a constant. It reads a column once for `x > 80 AND x <= 'Infinity'`, but twice
    # for `x > 80 AND NOT isnan(x)`.
    (
        f"CREATE OR REPLACE MACRO {_TEST}(a) AS "
        "CASE WHEN typeof(a) IN ('DOUBLE', 'FLOAT') THEN a <= 'Infinity' ELSE true END"
    ),
)


def _patch_comparisons_for_nan(library_function: Callable[[ir.Expr], Sql]) -> Callable[[ir.Expr], Sql]:
    def render_expr(node: ir.Expr) -> Sql:
        if not isinstance(node, ir.BinaryOp) or node.op not in _COMPARISONS:
            return library_function(node)
        greater, other = (node.right, node.left) if node.op in _RIGHT_IS_GREATER else (node.left, node.right)
        if not _can_be_nan(greater) or (node.op in _EQUALITIES and not _can_be_nan(other)):
            return library_function(node)
        return _render_comparison_with_nan_test(library_function, node)

    return render_expr


def _render_comparison_with_nan_test(library_function: Callable[[ir.Expr], Sql], node: ir.BinaryOp) -> Sql:
    operands = [render_expression(node.left), render_expression(node.right)]
    if not any(_TEST in sql for sql in operands):
        return _add_nan_test_to_comparison(node, library_function(node), operands)

    def render_with_operands(left: Sql, right: Sql) -> Sql:
        bound = dataclasses.replace(node, left=ir.RenderedAggregate(left), right=ir.RenderedAggregate(right))
        return _add_nan_test_to_comparison(node, library_function(bound), [left, right])

    # The macro repeats its argument, so nested comparisons would multiply the size of the bound SQL at each level.
    return render_with_arguments_evaluated_once(operands, render_with_operands)


def _add_nan_test_to_comparison(node: ir.BinaryOp, comparison: Sql, operands: Sequence[Sql]) -> Sql:
    left, right = operands
    greater, other, expr = (right, left, node.left) if node.op in _RIGHT_IS_GREATER else (left, right, node.right)
    if node.op in _EQUALITIES:
        return _join_comparison_and_nan_test(comparison, f"{_TEST}({greater})", negated=node.op != "==")
    # A comparison of NaN with null is null.
    is_constant = isinstance(expr, ir.Literal | ir.Parameter)
    return _join_comparison_and_nan_test(
        comparison, f"{_TEST}({greater})" if is_constant else f"({_TEST}({greater}) OR {other} IS NULL)"
    )


def _join_comparison_and_nan_test(comparison: Sql, test: Sql, *, negated: bool = False) -> Sql:
    """Return SQL for a comparison whose result is false if an operand is NaN, or true if ``negated``.

    ``test`` is SQL that is false if an operand is NaN.
    """
    return f"({comparison} OR NOT {test})" if negated else f"({comparison} AND {test})"


def _can_be_nan(expr: ir.Expr) -> bool:
    """Return whether an operand can be NaN; True if its type is unknown."""
    match expr:
        case ir.LetRef():
            return _can_be_nan(expr.value)
        case ir.UnaryOp(op="-"):
            return _can_be_nan(expr.operand)
        case ir.Literal():
            return isinstance(expr.value, float) and math.isnan(expr.value)
        case ir.RenderedAggregate() if expr.sql.startswith(f"{WHOLE_MACRO}("):
            return False
    return infer_static_type(expr) in ("real", None) and can_be_nan(expr)


def _patch_in_lists_for_nan(library_function: Callable[[ir.InList], Sql]) -> Callable[[ir.InList], Sql]:
    def render_in_list(node: ir.InList) -> Sql:
        sql = library_function(node)
        if not _can_be_nan(node.value) or (node.subquery is None and not any(map(_can_be_nan, node.items))):
            return sql
        return _join_comparison_and_nan_test(sql, f"{_TEST}({render_expression(node.value)})", negated=node.negated)

    return render_in_list


def _patch_between_for_nan(library_function: Callable[[ir.Between], Sql]) -> Callable[[ir.Between], Sql]:
    def render_between(node: ir.Between) -> Sql:
        sql = library_function(node)
        # Only the upper bound needs a test, because NaN is the greatest value of SQL.
        if not _can_be_nan(node.high):
            return sql
        return _join_comparison_and_nan_test(sql, f"{_TEST}({render_expression(node.high)})", negated=node.negated)

    return render_between


def install_into_translator() -> None:
    """Make comparisons of the KQL translator library treat NaN as IEEE 754 does."""
    replace_attribute(translate, "render_expr", _patch_comparisons_for_nan)
    replace_attribute(translate, "render_in_list", _patch_in_lists_for_nan)
    replace_attribute(translate, "render_between", _patch_between_for_nan)
