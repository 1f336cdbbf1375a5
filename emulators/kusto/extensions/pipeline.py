"""How a family adds tabular operators: one class per operator, known to every stage of the translator."""

from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader, replace

type Substitute = Callable[[ir.Expr], ir.Expr]
type Lowering = Callable[[Any], ir.Operator | list[ir.Operator] | None]


class PipelineOperator(ir.Operator):
    """An operator that renders itself; subclasses are frozen dataclasses, so that every walk sees their parts."""

    def render(self, prev: str, cols: list[str]) -> str:
        """Return one SELECT over the stage ``prev``, whose columns are ``cols``."""
        raise NotImplementedError

    def render_blindly(self, prev: str) -> str:
        """Return one SELECT over the stage ``prev``, whose columns only DuckDB knows.

        Raises:
            QueryError: the operator needs to know them.
        """
        del prev
        raise unsupported("an operator behind one whose columns depend on the data")

    def columns(self, cols: list[str]) -> list[str]:
        """Return the columns that the operator produces from ``cols``."""
        return cols

    def substituted(self, substitute: Substitute) -> "PipelineOperator":
        """Return the operator with its expressions replaced; one without expressions is itself."""
        del substitute
        return self


macros: tuple[str, ...] = ()
_LOWERINGS: dict[str, Lowering] = {}


def add_operator(grammar_rule: str, lowering: Lowering) -> None:
    """Lower the parse tree nodes of a grammar rule with ``lowering``; where that is None, as the translator does."""
    _LOWERINGS[grammar_rule] = lowering


def operator_node(node: Any) -> Any:
    """Return the operator inside a piped node."""
    while reader.cls(node) in ("PipedOperator", "AfterPipeOperator"):
        rules = reader.rule_children(node)
        if not rules:
            break
        node = rules[0]
    return reader.collapse(node)


def install() -> None:
    """Make every stage of the translator aware of added operators; once in each translator process."""
    replace(lower, "_lower_operator", _lowering)
    replace(lower, "_substitute_operator", _substituting)
    replace(translate, "render_operator", _rendering)
    replace(schema, "_operator_columns_unchecked", _producing)


def _lowering(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lower_operator(node: Any) -> Any:
        inner = operator_node(node)
        lowering = _LOWERINGS.get(reader.cls(inner))
        lowered = None if lowering is None else lowering(inner)
        return default(node) if lowered is None else lowered

    return lower_operator


def _substituting(default: Callable[..., ir.Operator]) -> Callable[..., ir.Operator]:
    def substitute_operator(op: ir.Operator, scalars: dict[str, ir.Expr]) -> ir.Operator:
        if isinstance(op, PipelineOperator):
            return op.substituted(lambda expr: reader.substitute(expr, scalars))
        return default(op, scalars)

    return substitute_operator


def _rendering(default: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, prev: str, cols: list[str] | None = None) -> str:
        if isinstance(op, PipelineOperator):
            return op.render_blindly(prev) if cols is None else op.render(prev, cols)
        return default(op, prev, cols)

    return render_operator


def _producing(default: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def operator_columns(op: ir.Operator, cols: list[str], known: dict[str, list[str]] | None) -> list[str]:
        if isinstance(op, PipelineOperator):
            return op.columns(cols)
        return default(op, cols, known)

    return operator_columns
