"""Base class of the query operators that the extensions add, and its support in the translator library."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, replace_attribute, writer

type Substitute = Callable[[ir.Expr], ir.Expr]
type Lowering = Callable[[Any], ir.Operator | list[ir.Operator] | None]


class PipelineOperator(ir.Operator):
    """Base class of the query operators that extensions add; an operator renders itself as SQL.

    Subclasses must be frozen dataclasses, because the translator library traverses the fields of dataclasses.
    """

    def render(self, input_sql: str, input_columns: list[str]) -> str:
        """Return one SELECT for the operator.

        Args:
            input_sql: name of the subquery, or SQL text, that yields the input rows.
            input_columns: names of the columns of the input.
        """
        raise NotImplementedError

    def render_with_unknown_columns(self, input_sql: str) -> str:
        """Return one SELECT for the operator, whose input is the subquery ``input_sql`` with unknown columns.

        Raises:
            QueryError: the operator requires the columns of its input.
        """
        del input_sql
        raise unsupported_error(
            "operators after an operator whose output columns depend on the data, such as bag_unpack",
            "declare the output columns of the earlier operator, for instance bag_unpack(d) : (name:string)",
        )

    def infer_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns of the operator for an input with these columns."""
        return input_columns

    def replace_expressions(self, substitute: Substitute) -> "PipelineOperator":
        """Return a copy with ``substitute`` applied to each expression; ``self`` if the operator has no expression."""
        del substitute
        return self


macros: tuple[str, ...] = ()
_LOWERINGS: dict[str, Lowering] = {}
_KNOWN: contextvars.ContextVar[dict[str, list[str]] | None] = contextvars.ContextVar("known_tables", default=None)
"""Columns of each table while the library infers the columns of an operator."""


_NO_TABLES: Mapping[str, Sequence[str]] = {}
_TABLES: contextvars.ContextVar[Mapping[str, Sequence[str]]] = contextvars.ContextVar("tables", default=_NO_TABLES)


@contextlib.contextmanager
def bind_table_columns(tables: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Context manager: provide the columns of all tables while a query is parsed."""
    token = _TABLES.set(tables)
    try:
        yield
    finally:
        _TABLES.reset(token)


def get_table_columns() -> Mapping[str, Sequence[str]]:
    """Return the columns of each table in the database of the query that is being translated, by name of the table.

    Tables that the query itself declares are not included.
    """
    return _TABLES.get()


def get_table_names() -> list[str]:
    """Return the names of all tables in alphabetical order."""
    return sorted(_TABLES.get())


def find_columns_of_readable_tables() -> dict[str, list[str]] | None:
    """Return the columns of each table that the current operator can read; None if the tables are unknown.

    The current operator is the one whose columns the translator library infers, or whose SQL the library renders.
    """
    known: dict[str, list[str]] | None = _KNOWN.get() or writer.nested_schema()
    return known


def replace_query_expressions(query: ir.Query, substitute: Substitute) -> ir.Query:
    """Return a copy of a nested query with ``substitute`` applied to each expression."""
    replaced = substitute(ir.ToScalar(query))
    return replaced.query if isinstance(replaced, ir.ToScalar) else query


def add_operator(grammar_rule: str, lowering: Lowering) -> None:
    """Register a function that converts parse tree nodes of a grammar rule to query operators.

    If the function returns None, the translator library converts the node itself.
    """
    _LOWERINGS[grammar_rule] = lowering


def unwrap_operator_node(node: Any) -> Any:
    """Return the parse tree node of a query operator.

    Args:
        node: node that follows a ``|``; it is the operator's node, or contains that node.
    """
    while reader.cls(node) in ("PipedOperator", "AfterPipeOperator"):
        rules = reader.rule_children(node)
        if not rules:
            break
        node = rules[0]
    return reader.collapse(node)


def install_extension() -> None:
    """Make all stages of the translator library (parsing, column inference, SQL) accept `PipelineOperator`."""
    replace_attribute(lower, "_lower_operator", _patch_convert_operator)
    replace_attribute(lower, "_substitute_operator", _patch_substitute_scalars)
    replace_attribute(translate, "render_operator", _patch_render_operator)
    replace_attribute(schema, "_operator_columns_unchecked", _patch_infer_operator_columns)


def _patch_convert_operator(library_function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert_operator(node: Any) -> Any:
        inner = unwrap_operator_node(node)
        lowering = _LOWERINGS.get(reader.cls(inner))
        lowered = None if lowering is None else lowering(inner)
        return library_function(node) if lowered is None else lowered

    return convert_operator


def _patch_substitute_scalars(library_function: Callable[..., ir.Operator]) -> Callable[..., ir.Operator]:
    def substitute_scalars(op: ir.Operator, scalars: dict[str, ir.Expr]) -> ir.Operator:
        if isinstance(op, PipelineOperator):
            return op.replace_expressions(lambda expr: reader.substitute(expr, scalars))
        return library_function(op, scalars)

    return substitute_scalars


def _patch_render_operator(library_function: Callable[..., str]) -> Callable[..., str]:
    def render_operator(op: ir.Operator, input_sql: str, input_columns: list[str] | None = None) -> str:
        if isinstance(op, PipelineOperator):
            return (
                op.render_with_unknown_columns(input_sql)
                if input_columns is None
                else op.render(input_sql, input_columns)
            )
        return library_function(op, input_sql, input_columns)

    return render_operator


def _patch_infer_operator_columns(library_function: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def infer_operator_columns(
        op: ir.Operator, input_columns: list[str], known_tables: dict[str, list[str]] | None
    ) -> list[str]:
        if not isinstance(op, PipelineOperator):
            return library_function(op, input_columns, known_tables)
        token = _KNOWN.set(known_tables)
        try:
            return op.infer_columns(input_columns)
        finally:
            _KNOWN.reset(token)

    return infer_operator_columns
