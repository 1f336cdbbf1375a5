"""Base class of the query operators that the extensions add, and its support in each stage of the library."""

from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, replace

type Substitute = Callable[[ir.Expr], ir.Expr]
type Lowering = Callable[[Any], ir.Operator | list[ir.Operator] | None]


class PipelineOperator(ir.Operator):
    """Query operator that renders itself as SQL.

    Subclasses must be frozen dataclasses, because the traversals of the library visit the fields of dataclasses.
    """

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as one SELECT over the input ``prev``, which has the columns ``cols``."""
        raise NotImplementedError

    def render_without_columns(self, prev: str) -> str:
        """Render the operator as one SELECT over the input ``prev``, whose columns only DuckDB can determine.

        Raises:
            QueryError: the SQL of the operator depends on the columns of its input.
        """
        del prev
        raise unsupported_error("this operator after an operator whose columns depend on the data")

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the output columns of the operator for an input with the columns ``cols``."""
        return cols

    def replace_expressions(self, substitute: Substitute) -> "PipelineOperator":
        """Return a copy of the operator in which ``substitute`` has replaced each expression."""
        del substitute
        return self


macros: tuple[str, ...] = ()
_LOWERINGS: dict[str, Lowering] = {}


def add_operator(grammar_rule: str, lowering: Lowering) -> None:
    """Register the function that converts parse tree nodes of a grammar rule to query operators.

    If the function returns None for a node, the library converts this node.
    """
    _LOWERINGS[grammar_rule] = lowering


def find_operator_node(node: Any) -> Any:
    """Return the parse tree node of the operator inside a node that follows a pipe."""
    while reader.cls(node) in ("PipedOperator", "AfterPipeOperator"):
        rules = reader.rule_children(node)
        if not rules:
            break
        node = rules[0]
    return reader.collapse(node)


def install() -> None:
    """Add support for `PipelineOperator` to every stage of the translator library."""
    replace(lower, "_lower_operator", _wrap_lower_operator)
    replace(lower, "_substitute_operator", _wrap_substitute_operator)
    replace(translate, "render_operator", _wrap_render_operator)
    replace(schema, "_operator_columns_unchecked", _wrap_operator_columns)


def _wrap_lower_operator(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lower_operator(node: Any) -> Any:
        inner = find_operator_node(node)
        lowering = _LOWERINGS.get(reader.cls(inner))
        lowered = None if lowering is None else lowering(inner)
        return default(node) if lowered is None else lowered

    return lower_operator


def _wrap_substitute_operator(default: Callable[..., ir.Operator]) -> Callable[..., ir.Operator]:
    def substitute_operator(op: ir.Operator, scalars: dict[str, ir.Expr]) -> ir.Operator:
        if isinstance(op, PipelineOperator):
            return op.replace_expressions(lambda expr: reader.substitute(expr, scalars))
        return default(op, scalars)

    return substitute_operator


def _wrap_render_operator(default: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, prev: str, cols: list[str] | None = None) -> str:
        if isinstance(op, PipelineOperator):
            return op.render_without_columns(prev) if cols is None else op.render(prev, cols)
        return default(op, prev, cols)

    return render_operator


def _wrap_operator_columns(default: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def operator_columns(op: ir.Operator, cols: list[str], known: dict[str, list[str]] | None) -> list[str]:
        if isinstance(op, PipelineOperator):
            return op.infer_columns(cols)
        return default(op, cols, known)

    return operator_columns
