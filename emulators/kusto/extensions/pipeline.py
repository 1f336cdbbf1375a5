"""Base class of the query operators that the extensions add, and its support in the translator library."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.sql import Sql
from emulators.kusto.extensions.tree import ParseNode

type ExpressionReplacer = Callable[[ir.Expr], ir.Expr]
type OperatorParser = Callable[[ParseNode], ir.Operator | list[ir.Operator] | None]
"""Function that converts a parse tree node to query operators; None if it does not convert the node."""


class PipelineOperator(ir.Operator):
    """Base class of the query operators that extensions add; an operator renders itself as SQL.

    Subclasses must be frozen dataclasses, because the translator library traverses the fields of dataclasses.
    """

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Return one SELECT for the operator.

        Args:
            input_sql: name of the subquery, or SQL text, that yields the input rows.
            input_columns: names of the columns of the input.
        """
        raise NotImplementedError

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Return one SELECT for the operator, whose input is the subquery ``input_sql`` with unknown columns.

        Raises:
            QueryError: the operator requires the columns of its input.
        """
        del input_sql
        raise unsupported_error(
            "operators after an operator whose output columns depend on the data, such as bag_unpack",
            "declare the output columns of the earlier operator, for instance bag_unpack(d) : (name:string)",
        )

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns of the operator for an input with these columns."""
        return input_columns

    def replace_expressions(self, substitute: ExpressionReplacer) -> "PipelineOperator":
        """Return a copy with ``substitute`` applied to each expression; ``self`` if the operator has no expression."""
        del substitute
        return self


macros: tuple[str, ...] = ()
_OPERATOR_PARSERS: dict[str, OperatorParser] = {}
_KNOWN: contextvars.ContextVar[dict[str, list[str]] | None] = contextvars.ContextVar("known_tables", default=None)
"""Columns of each table while the library infers the columns of an operator."""


_NO_TABLES: Mapping[str, Sequence[str]] = {}
_TABLES: contextvars.ContextVar[Mapping[str, Sequence[str]]] = contextvars.ContextVar("tables", default=_NO_TABLES)


@contextlib.contextmanager
def bind_table_columns(columns_by_table: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Context manager: provide the columns of all tables while a query is parsed."""
    token = _TABLES.set(columns_by_table)
    try:
        yield
    finally:
        _TABLES.reset(token)


def map_tables_to_columns() -> Mapping[str, Sequence[str]]:
    """Return the columns of each table in the database of the query that is being translated, by name of the table.

    Tables that the query itself declares are not included.
    """
    return _TABLES.get()


def get_table_names() -> list[str]:
    """Return the names of all tables in the query's database, in alphabetical order."""
    return sorted(_TABLES.get())


def find_columns_of_readable_tables() -> dict[str, list[str]] | None:
    """Return the columns of each table that the current query operator can read; None if the tables are unknown.

    The current operator is the one that the translator library is processing: the library infers its output columns or
    renders its SQL.
    """
    known: dict[str, list[str]] | None = _KNOWN.get() or writer.nested_schema()
    return known


def replace_query_expressions(query: ir.Query, substitute: ExpressionReplacer) -> ir.Query:
    """Return a copy of a nested query with ``substitute`` applied to each expression."""
    replaced = substitute(ir.ToScalar(query))
    return replaced.query if isinstance(replaced, ir.ToScalar) else query


def add_operator(grammar_rule: str, parse_operator: OperatorParser) -> None:
    """Register a function that converts parse tree nodes of a grammar rule to query operators.

    If the function returns None, the translator library converts the node itself.
    """
    _OPERATOR_PARSERS[grammar_rule] = parse_operator


def unwrap_operator_node(node: ParseNode) -> ParseNode:
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


def install_into_translator() -> None:
    """Make all stages of the translator library (parsing, column inference, SQL) accept `PipelineOperator`."""
    replace_attribute(lower, "_lower_operator", _patch_conversion_of_extension_operators)
    replace_attribute(lower, "_substitute_operator", _patch_substitution_in_extension_operators)
    replace_attribute(translate, "render_operator", _patch_rendering_of_extension_operators)
    replace_attribute(schema, "_operator_columns_unchecked", _patch_columns_of_extension_operators)


def _patch_conversion_of_extension_operators(library_function: OperatorParser) -> OperatorParser:
    def convert_operator(node: ParseNode) -> ir.Operator | list[ir.Operator] | None:
        inner = unwrap_operator_node(node)
        parse_operator = _OPERATOR_PARSERS.get(reader.cls(inner))
        parsed = None if parse_operator is None else parse_operator(inner)
        return library_function(node) if parsed is None else parsed

    return convert_operator


def _patch_substitution_in_extension_operators(
    library_function: Callable[..., ir.Operator],
) -> Callable[..., ir.Operator]:
    """Patch the translator library to replace ``let`` names in a `PipelineOperator` by their values."""

    def substitute_scalars(op: ir.Operator, scalars: dict[str, ir.Expr]) -> ir.Operator:
        if isinstance(op, PipelineOperator):
            return op.replace_expressions(lambda expr: reader.substitute(expr, scalars))
        return library_function(op, scalars)

    return substitute_scalars


def _patch_rendering_of_extension_operators(library_function: Callable[..., Sql]) -> Callable[..., Sql]:
    def render_operator(op: ir.Operator, input_sql: Sql, input_columns: list[str] | None = None) -> Sql:
        if isinstance(op, PipelineOperator):
            return (
                op.render_with_unknown_input_columns(input_sql)
                if input_columns is None
                else op.render(input_sql, input_columns)
            )
        return library_function(op, input_sql, input_columns)

    return render_operator


def _patch_columns_of_extension_operators(library_function: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Patch the translator library to infer the output columns of a `PipelineOperator`."""

    def infer_operator_columns(
        op: ir.Operator, input_columns: list[str], known_tables: dict[str, list[str]] | None
    ) -> list[str]:
        if not isinstance(op, PipelineOperator):
            return library_function(op, input_columns, known_tables)
        token = _KNOWN.set(known_tables)
        try:
            return op.infer_output_columns(input_columns)
        finally:
            _KNOWN.reset(token)

    return infer_operator_columns
