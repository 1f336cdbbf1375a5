"""Checks that reject a KQL query before DuckDB receives its SQL.

The checks reject unknown tables, constructs that the translator library translates incorrectly, expressions whose SQL
would take DuckDB too long to bind, and SQL that is too long.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from antlr4 import Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql import ir, translate
from duckdb_kql._antlr.KqlLexer import KqlLexer

from emulators.kusto.decimals import is_representable_in_duckdb
from emulators.kusto.errors import (
    LineAndColumn,
    QueryError,
    semantic_error,
    syntax_error,
    too_complex_error,
    unsupported_error,
)
from emulators.kusto.string_literals import UnreadableLiteralError, parse_string_literal
from emulators.kusto.timespans import TimespanRangeError, check_timespan_literal

_PERMITTED_SOURCES = (
    ir.TableRef,
    ir.WildcardTableRef,
    ir.DataTable,
    ir.PrintSource,
    ir.RangeSource,
    ir.GraphSource,
)


def check_sources(query: ir.Query, table_names: Collection[str]) -> None:
    """Check that a query reads only the tables ``table_names`` and its own ``let`` statements; case matters.

    Without this check, a table name in a query could make DuckDB read a catalog view, a Python object or a file.

    Raises:
        QueryError: the name of a table is unknown or refers to another database or cluster.
    """
    _SourceCheck(frozenset(table_names)).check_query(query, frozenset())


class _SourceCheck:
    """Traverses a query and checks the names of its tables.

    ``let`` statements can refer to each other, and so share nodes. Each node is visited only once per scope.
    """

    def __init__(self, tables: frozenset[str]) -> None:
        self._tables = tables
        self._seen: set[tuple[int, frozenset[str]]] = set()

    def check_query(self, query: ir.Query, let_names: frozenset[str]) -> None:
        if (id(query), let_names) in self._seen:
            return
        self._seen.add((id(query), let_names))
        for name, bound in query.lets:
            self.check_node(bound, let_names)
            let_names |= {name}
        self.check_source(query.source, let_names)
        self.check_node(query.source, let_names)
        self.check_node(query.operators, let_names)

    def check_source(self, source: ir.Source, let_names: frozenset[str]) -> None:
        if not isinstance(source, _PERMITTED_SOURCES):
            raise unsupported_error(type(source).__name__)
        if isinstance(source, ir.WildcardTableRef) and source.database is not None:
            raise _build_other_database_error(source.pattern)
        if not isinstance(source, ir.TableRef):
            return
        if source.database is not None or source.cluster is not None:
            raise _build_other_database_error(source.name)
        if source.name not in self._tables and source.name not in let_names:
            raise semantic_error(
                f"Failed to resolve table or column expression named '{source.name}'", subject=source.name
            )

    def _is_missing_table(self, source: ir.Source, let_names: frozenset[str]) -> bool:
        """Return whether a source is a table that does not exist; ``union isfuzzy=true`` ignores such inputs."""
        if not isinstance(source, ir.TableRef) or source.database is not None or source.cluster is not None:
            return False
        return source.name not in self._tables and source.name not in let_names

    def check_node(self, node: Any, let_names: frozenset[str]) -> None:
        stack = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, ir.Query):
                self.check_query(current, let_names)
            elif isinstance(current, ir.Union) and current.isfuzzy:
                stack.extend(
                    branch for branch in current.branches if not self._is_missing_table(branch.source, let_names)
                )
            elif isinstance(current, list | tuple):
                stack.extend(current)
            elif dataclasses.is_dataclass(current) and (id(current), let_names) not in self._seen:
                self._seen.add((id(current), let_names))
                stack.extend(_iterate_field_values(current))


def _iterate_field_values(node: Any) -> Iterator[Any]:
    return (getattr(node, field.name) for field in dataclasses.fields(node))


def _build_other_database_error(name: str) -> QueryError:
    return unsupported_error("database() and cluster() references", f"'{name}' belongs to another database or cluster")


MAX_DOUBLINGS = 12
"""Maximum number of times that nesting may double the work of DuckDB's binder."""


def check_nesting_depth(query: ir.Query) -> None:
    """Reject nested expressions for which DuckDB would need too long to bind the SQL.

    DuckDB binds some expressions twice at each level of nesting, and cannot be interrupted meanwhile. A hundred bytes
    of KQL could block a thread for years.

    Raises:
        QueryError: the expressions are nested too deeply.
    """
    doublings: dict[int, int] = {}
    stack: list[Any] = [query]
    while stack:
        node = stack[-1]
        waiting = [each for each in _list_child_nodes(node) if id(each) not in doublings]
        if waiting and id(node) not in doublings:
            doublings[id(node)] = 0  # visited; a reference back to this node finds the value
            stack.extend(waiting)
            continue
        stack.pop()
        doublings[id(node)] = _count_binding_doublings(node) + max(
            (doublings[id(each)] for each in _list_child_nodes(node)), default=0
        )
        if doublings[id(node)] > MAX_DOUBLINGS:
            raise too_complex_error("the query is nested too deeply")


def _count_binding_doublings(node: Any) -> int:
    """Return how many times a node, such as a division, doubles the time that DuckDB takes to bind the nodes inside."""
    match node:
        case ir.InList() | ir.Between():
            return 2
        case ir.BinaryOp(op="/", right=right):
            return 0 if isinstance(right, ir.Literal | ir.ColumnRef | ir.Parameter) else 1
        case ir.FunctionCall(name=name):
            return 1 if name.lower() in ("todecimal", "make_timespan") else 0
    return 0


def _list_child_nodes(node: Any) -> list[Any]:
    values = node if isinstance(node, list | tuple) else [getattr(node, each.name) for each in dataclasses.fields(node)]
    return [each for each in values if isinstance(each, list | tuple) or _is_query_node(each)]


def _is_query_node(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


_SHOWN = 60
_SETTABLE = frozenset({"materialized_view_shuffle_query", "query_bin_auto_size", "query_bin_auto_at"})
"""Request properties that a ``set`` statement may change; the emulator rejects all others.

The translator library would ignore the other properties, even those that lift a restriction.
"""
_MAX_REPETITIONS = 1024
"""Maximum number of repetitions in strrep() in Data Explorer; the translator library has no limit."""


def reject_mistranslated_constructs(query: ir.Query) -> None:
    """Reject constructs that the translator library is known to translate incorrectly.

    Raises:
        QueryError: the query contains such a construct; the message names the construct.
    """
    for node in _iterate_nodes(query):
        if isinstance(node, ir.FunctionCall):
            _check_strrep_multiplier(node.name.lower(), node.args)
        elif isinstance(node, ir.Where) and isinstance(node.predicate, ir.Literal):
            _check_literal_predicate(node.predicate)
        elif isinstance(node, ir.DataTable):
            _check_datatable_decimals(node)


def _check_strrep_multiplier(function_name: str, arguments: Sequence[ir.Expr]) -> None:
    if function_name == "strrep" and len(arguments) > 1 and not _is_permitted_multiplier(arguments[1]):
        raise unsupported_error("strrep() without a literal multiplier of at most 1024")


def _is_permitted_multiplier(expression: ir.Expr) -> bool:
    value = expression.value if isinstance(expression, ir.Literal) else None
    return isinstance(value, int) and value <= _MAX_REPETITIONS


def _check_literal_predicate(predicate: ir.Literal) -> None:
    """Reject a predicate that is a literal of another type than bool.

    For example, ``where a = 1`` is parsed as the literal ``1`` with the name ``a``, not as a comparison.
    """
    if predicate.kind not in ("bool", "null"):
        raise semantic_error(
            f"'where' operator: a predicate of type bool is expected, not {predicate.kind}", inner="SEM0001"
        )


def _check_datatable_decimals(table: ir.DataTable) -> None:
    """Reject a ``datatable`` with a decimal that has more digits than DuckDB can store."""
    kinds = [kind for _, kind in table.columns]
    for index, value in enumerate(table.values):
        if kinds[index % len(kinds)] == "decimal" and isinstance(value, ir.Literal) and isinstance(value.value, float):
            written = Decimal(repr(value.value))
            if not written.is_finite() or not is_representable_in_duckdb(written):
                raise unsupported_error("a datatable with decimals of more than nine digits after the point")


def reject_mistranslated_tokens(tokens: Sequence[Token]) -> None:
    """Reject tokens of a KQL text that the translator library would treat incorrectly.

    Such tokens are ambiguous string literals, timespans that would lose precision, and ``set`` statements, which the
    library ignores.

    Args:
        tokens: the tokens of the text in order, without comments and white space.

    Raises:
        QueryError: the query contains such a construct; the message has its name and position.
    """
    for token in tokens:
        check = _LITERALS.get(token.type)
        if check is not None:
            check(token.text, (token.line, token.column + 1))
    _check_set_statements(tokens)


def _check_set_statements(tokens: Sequence[Token]) -> None:
    begins = True
    for token, following in pairwise(tokens):
        if begins and token.type == KqlLexer.SET and following.text.lower() not in _SETTABLE:
            raise unsupported_error(f"set {following.text[:_SHOWN]}", position=(token.line, token.column + 1))
        begins = token.text == ";"


def _check_string_literal(text: str, position: LineAndColumn) -> None:
    try:
        parse_string_literal(text)
    except UnreadableLiteralError as error:
        raise syntax_error(f"{error} in a string literal", position) from error


def _check_timespan_literal(text: str, position: LineAndColumn) -> None:
    try:
        check_timespan_literal(text)
    except TimespanRangeError as error:
        raise unsupported_error(f"the literal {text[:_SHOWN]}", str(error), position) from error


_LITERALS: Mapping[int, Callable[[str, LineAndColumn], None]] = {
    KqlLexer.STRINGLITERAL: _check_string_literal,
    KqlLexer.TIMESPANLITERAL: _check_timespan_literal,
}


def _iterate_nodes(root: Any) -> Iterator[Any]:
    """Yield each node of a query once; nodes can be shared, so visiting every path could take exponential time."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(getattr(node, field.name) for field in dataclasses.fields(node))


MAX_SQL_CHARACTERS = 1_000_000


def check_sql_length(sql: str) -> None:
    """Check that the SQL of an expression or query is not too long.

    A function's SQL template can contain an argument several times. Therefore nested calls can expand 150 bytes of KQL
    to gigabytes of SQL, and the length must be checked after every expression.

    Raises:
        QueryError: the SQL is too long.
    """
    if len(sql) > MAX_SQL_CHARACTERS:
        raise too_complex_error("the translation of the query to SQL is too long; simplify the query")


def install_sql_length_check() -> None:
    """Patch the translator library in this process to check the length of the SQL after every expression."""
    translate.render_expr = _add_length_check(translate.render_expr)


def _add_length_check(render: Callable[..., str]) -> Callable[..., str]:
    def render_and_check(*args: Any) -> str:
        sql = render(*args)
        check_sql_length(sql)
        return sql

    return render_and_check
