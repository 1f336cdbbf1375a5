"""Sources of rows: the operators ``union`` and ``range``, and functions that return a table by its name.

If columns of the same name have different types, the result of ``union`` has a column for each type. Only DuckDB knows
the types of most columns; therefore such a ``union`` needs a discovery query that returns the types of its inputs. A
plain SQL union would convert the values to one common type.

The column of ``range`` has the type of its bounds; each value is the start plus a whole multiple of the step.
"""

import contextlib
import dataclasses
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema, translate
from duckdb_kql.errors import KqlError
from duckdb_kql.types import kusto_type

from emulators.kusto.discovery import DataDependentOperator, Rows, find_discovery_rows
from emulators.kusto.errors import QueryError, semantic_error, unsupported_error
from emulators.kusto.extensions.functions import call_matching_views
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.pipeline import get_table_names
from emulators.kusto.extensions.sql import DuckDbType, KustoType, Sql, quote_name, quote_text, render_expression
from emulators.kusto.extensions.tabular import find_name_given_by_as, find_operator_before, is_first_operator
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column, get_rule_name
from emulators.kusto.extensions.type_checks import render_error

type TypedColumns = Sequence[tuple[str, DuckDbType]]
"""Name and DuckDB type of each column."""
type _SqlAndLabel = tuple[Sql, str]
"""SQL and label of an input of a ``union``; the label is the value of the column that ``withsource`` adds."""
_UNTYPED = '"NULL"'


@dataclasses.dataclass(frozen=True)
class TypedUnion(ir.Union, DataDependentOperator):
    """Query operator ``union``, whose result has one column for each name and type in its inputs.

    Attributes:
        offset: index of the operator's first character in the query text.
        describes: True in the discovery query, which runs first and lists the name and type of each input's columns.
        labels: name that ``as`` gives to each input; None for an input without ``as``.
    """

    offset: int = -1
    describes: bool = False
    labels: tuple[str | None, ...] = ()
    discovers_types = True

    def needs_discovery_query(self, input_query: ir.Query, columns_by_table: Mapping[str, Sequence[str]]) -> bool:
        """Return whether several inputs have a column of the same name whose type only DuckDB knows."""
        known = {name: list(input_columns) for name, input_columns in columns_by_table.items()}
        for name, bound in input_query.lets:
            if isinstance(bound, ir.Query):
                with contextlib.suppress(KqlError, QueryError):
                    known[name] = schema.output_columns(bound, known)
        try:
            inputs = list(_iterate_input_columns(input_query, known))
            for branch in schema.surviving_branches(self, known):
                inputs += _iterate_input_columns(branch, known)
        except (KqlError, QueryError):
            return False  # the translation of the query itself reports the error
        return bool(_list_columns_of_uncertain_type(inputs))

    def build_column_discovery_operator(self) -> ir.Operator:
        """Return the discovery query's operator, which lists the columns of each input with their types."""
        return dataclasses.replace(self, describes=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _ResultColumn:
    """Column in the result of a ``union``.

    Attributes:
        name: name of the column in the result.
        source: name of the column in the inputs.
        kind: Kusto type, if the inputs have columns of this name with different types; else empty.
    """

    name: str
    source: str
    kind: str


def _iterate_input_columns(query: ir.Query, columns_by_table: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield the columns of a query or, if the query is a wildcard, the columns of each matching table."""
    if not query.operators and isinstance(query.source, ir.WildcardTableRef):
        yield from (columns_by_table[name] for name in schema.match_wildcard(query.source, columns_by_table))
    else:
        yield schema.output_columns(query, columns_by_table)


def _list_columns_of_uncertain_type(columns_of_inputs: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns that occur in several inputs of a ``union`` and whose types possibly differ."""
    seen: set[str] = set()
    again: set[str] = set()
    for input_columns in columns_of_inputs:
        again |= seen & set(input_columns)
        seen |= set(input_columns)
    return sorted(name for name in again if infer_type(ir.ColumnRef(name)) is None)


def _plan_result_columns_if_types_differ(
    columns_of_inputs: Sequence[TypedColumns], union_kind: str
) -> list[_ResultColumn] | None:
    """Return the result columns of a ``union`` with their types; None if each name has the same type in all inputs."""
    kinds: dict[str, list[str]] = {}
    for name, type_name in (column for columns in columns_of_inputs for column in columns):
        found = kinds.setdefault(name, [])
        if type_name != _UNTYPED and kusto_type(type_name) not in found:
            found.append(kusto_type(type_name))
    if all(len(found) <= 1 for found in kinds.values()):
        return None
    planned = [
        _ResultColumn(f"{name}_{each}" if len(found) > 1 else name, name, each if len(found) > 1 else "")
        for name, found in kinds.items()
        for each in found or [""]
    ]
    if union_kind == "inner":
        planned = [
            column for column in planned if all(_has_result_column(columns, column) for columns in columns_of_inputs)
        ]
    return _make_result_column_names_distinct(planned)


def _make_result_column_names_distinct(columns: Sequence[_ResultColumn]) -> list[_ResultColumn]:
    taken: list[str] = []
    for column in columns:
        taken.append(schema.disambiguate(column.name, taken))
    return [dataclasses.replace(column, name=name) for column, name in zip(columns, taken, strict=True)]


def _has_result_column(columns: TypedColumns, column: _ResultColumn) -> bool:
    return any(name == column.source and column.kind in ("", kusto_type(type_name)) for name, type_name in columns)


def _find_discovered_columns(op: ir.Union) -> list[TypedColumns] | None:
    """Return each input's columns, as found by the discovery query; None if the discovery query has not run."""
    rows = _find_union_discovery_rows(op)
    return None if rows is None else [[(each["name"], each["type"]) for each in row[1]] for row in rows]


def _patch_unions_for_columns_by_type(library_function: Callable[..., ir.Union]) -> Callable[..., ir.Union]:
    """Patch the parser so that ``union`` becomes a `TypedUnion`."""

    def convert_union(node: ParseNode, child_nodes: list[ParseNode]) -> ir.Union:
        union = library_function(node, child_nodes)
        branches = [
            (branch, label) for branch, label in zip(union.branches, _read_names_given_by_as(child_nodes), strict=True)
        ]
        matched = [
            each
            for branch, label in branches
            for each in _iterate_wildcard_queries_and_labels(branch, label, fuzzy=union.isfuzzy)
        ]
        left = [] if is_first_operator(node) else [find_name_given_by_as(find_operator_before(node))]
        labels = (*left, *(label for _, label in matched))
        found = tuple(branch for branch, _ in matched)
        return TypedUnion(found, union.kind, union.with_source, union.isfuzzy, node.start.start, labels=labels)

    return convert_union


def _read_names_given_by_as(nodes: Sequence[ParseNode]) -> list[str | None]:
    """Return the name that the operator ``as`` gives to each input; None for an input without ``as``."""
    return [find_name_given_by_as(kid) for kid in nodes if get_rule_name(kid) == "UnionOperatorExpression"]


def _iterate_wildcard_queries_and_labels(
    branch: ir.Query, label: str | None, *, fuzzy: bool
) -> Iterator[tuple[ir.Query, str | None]]:
    """Yield the queries for one input of ``union``, which can be a wildcard such as ``Tele*``.

    An input that is not a wildcard yields its query and ``label``. A wildcard yields one query for each matching view,
    and a query of the wildcard itself if it also matches tables; their label is None. A wildcard without any match is
    yielded as well, so that the translator library reports it, except if ``fuzzy`` (``isfuzzy=true``).

    Args:
        branch: query of the input.
        label: name that the operator ``as`` gives to the input; None without ``as``.
        fuzzy: True to ignore a wildcard without any match.
    """
    if branch.operators or not isinstance(branch.source, ir.WildcardTableRef):
        yield branch, label
        return
    views = call_matching_views(branch.source.pattern)
    yield from ((ir.Query(view), None) for view in views)
    tables = [name for name in get_table_names() if fnmatch.fnmatchcase(name, branch.source.pattern)]
    if tables or not (views or fuzzy):
        yield branch, None


def _patch_output_columns_of_unions(library_function: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def infer_union_columns(
        op: ir.Union, left_columns: list[str], known_tables: dict[str, list[str]] | None
    ) -> list[str]:
        if isinstance(op, TypedUnion) and op.describes:
            return ["input", "columns"]
        inputs = _find_discovered_columns(op)
        planned = None if inputs is None else _plan_result_columns_if_types_differ(inputs, op.kind)
        if planned is None:
            return library_function(op, left_columns, known_tables)
        return [*([op.with_source] if op.with_source else []), *(column.name for column in planned)]

    return infer_union_columns


def _render_union(
    op: ir.Union,
    input_sql: Sql,
    left_columns: list[str],
    query: ir.Query,
    known_tables: Any,
    leading: bool,  # noqa: FBT001  the library's interface
) -> Sql:
    names = frozenset(name for name, _ in query.lets)
    qualify = writer.union_qualifies(query, op, leading)
    arms = writer.left_arms(op, input_sql, query, known_tables, leading, names, qualify)
    wildcard = leading and isinstance(query.source, ir.WildcardTableRef)
    input_columns = list(_iterate_input_columns(ir.Query(query.source), known_tables)) if wildcard else [left_columns]
    for index, branch in enumerate(schema.surviving_branches(op, known_tables), start=1):
        input_columns += _iterate_input_columns(branch, known_tables)
        arms += writer.branch_arms(branch, index, known_tables, names, qualify)
    if isinstance(op, TypedUnion) and len(op.labels) == len(arms):
        arms = [(sql, given or label) for (sql, label), given in zip(arms, op.labels, strict=True)]
    if isinstance(op, TypedUnion) and op.describes:
        return "\nUNION ALL ".join(
            map(_render_column_discovery, range(len(arms)), [sql for sql, _ in arms], input_columns)
        )
    inputs = _find_discovered_columns(op)
    planned = None if inputs is None else _plan_result_columns_if_types_differ(inputs, op.kind)
    if inputs is None or planned is None:
        return _render_union_of_equal_types(
            op, arms, input_columns, schema.union_output_columns(op, left_columns, known_tables)
        )
    return _render_union_with_column_per_type(op, arms, inputs, planned)


def _render_column_discovery(input_index: int, sql: Sql, input_columns: Sequence[str]) -> Sql:
    """Render SQL that returns the name and DuckDB type of an input's columns without reading its rows."""
    described = ", ".join(
        f"{{name: {quote_text(name)}, type: typeof(_a.{quote_name(name)})}}" for name in input_columns
    )
    return (
        f'SELECT {input_index} AS "input", to_json([{described}]) AS "columns" '  # noqa: S608  quoted names
        f"FROM (SELECT 1) LEFT JOIN (SELECT * FROM ({sql}) LIMIT 0) AS _a ON true"
    )


def _render_union_with_column_per_type(
    op: ir.Union,
    arms: Sequence[_SqlAndLabel],
    columns_of_inputs: Sequence[TypedColumns],
    result_columns: Sequence[_ResultColumn],
) -> Sql:
    """Render SQL for a ``union`` whose result has one column for each name and type.

    Args:
        op: the operator.
        arms: SQL and label of each input; the label is the value of the column that ``withsource`` adds.
        columns_of_inputs: columns of each input.
        result_columns: columns of the result.
    """
    selects = []
    for (sql, label), columns in zip(arms, columns_of_inputs, strict=True):
        parts = [f"{quote_text(label)} AS {quote_name(op.with_source)}"] if op.with_source else []
        parts += [
            f"{quote_name(column.source)} AS {quote_name(column.name)}"
            for column in result_columns
            if _has_result_column(columns, column)
        ]
        selects.append(f"SELECT {', '.join(parts) or 'NULL AS _none'} FROM ({sql})")  # noqa: S608  quoted names
    names = [*([op.with_source] if op.with_source else []), *(column.name for column in result_columns)]
    body = "\nUNION ALL BY NAME ".join(selects)
    return f"SELECT {', '.join(map(quote_name, names))} FROM ({body})"  # noqa: S608  quoted names


def _render_union_of_equal_types(
    op: ir.Union,
    arms: Sequence[_SqlAndLabel],
    columns_of_inputs: Sequence[Sequence[str]],
    result_columns: Sequence[str],
) -> Sql:
    """Render SQL for a ``union``; the SQL reports an error if columns of the same name have different types.

    Args:
        op: the operator.
        arms: SQL and label of each input; the label is the value of the column that ``withsource`` adds.
        columns_of_inputs: names of the columns of each input.
        result_columns: names of the columns of the result.
    """
    shared = _list_columns_of_uncertain_type(columns_of_inputs) if _find_union_discovery_rows(op) is None else []
    body = "\nUNION ALL BY NAME ".join(
        _render_union_input(op, arm, [name for name in shared if name in names])
        for arm, names in zip(arms, columns_of_inputs, strict=True)
    )
    tests = [f"{quote_name(_get_type_column_name(name))} <> typeof({quote_name(name)})" for name in shared]
    where = f" WHERE CASE WHEN {' OR '.join(tests)} THEN {_TYPES_DIFFER} ELSE true END" if tests else ""
    return f"SELECT {', '.join(map(quote_name, result_columns))} FROM ({body}){where}"  # noqa: S608  quoted names


def _find_union_discovery_rows(op: ir.Union) -> Rows | None:
    return find_discovery_rows(op) if isinstance(op, TypedUnion) else None


_TYPES_DIFFER = render_error(
    "EMB0001",
    "'union' of columns with one name and different types is not supported in this place by the embedded query engine "
    "(rename one of the columns)",
)


def _render_union_input(op: ir.Union, arm: _SqlAndLabel, columns_to_compare: Sequence[str]) -> Sql:
    sql, label = arm
    parts = [f"{quote_text(label)} AS {quote_name(op.with_source)}"] if op.with_source else []
    types = [f"typeof({quote_name(name)}) AS {quote_name(_get_type_column_name(name))}" for name in columns_to_compare]
    return f"SELECT {', '.join([*parts, '*', *types])} FROM ({sql})"  # noqa: S608  quoted names


def _get_type_column_name(column_name: str) -> str:
    """Return the name of the temporary column that contains the type of the column ``column_name``."""
    return f"\N{SYMBOL FOR NULL}{column_name}"


MAX_ROWS = 100_000_000
"""Maximum number of rows of ``range``."""
_REALS = ("DOUBLE", "FLOAT")


def _install_range() -> None:
    """Make the translator library choose the SQL of ``range`` by the types of its bounds."""
    replace_attribute(translate, "render_range", lambda _: _render_range)


def _render_range(source: ir.RangeSource) -> Sql:
    bounds = (source.start, source.stop, source.step)
    kinds = [_infer_range_bound_type(each) for each in bounds]
    values, distance = _render_range_values_and_count(kinds)
    too_many = render_error(
        "EMB0001", f"a range of more than {MAX_ROWS} rows is not supported by the embedded query engine"
    )
    zero_step = render_error("EMB0001", "a range with a step of 0 is not supported by the embedded query engine")
    listed = (
        f"CASE WHEN epoch_us(_c) = 0 THEN {zero_step} "
        if "timespan" in kinds
        else f"CASE WHEN _c = 0 THEN {zero_step} "
    )
    listed += f"WHEN {distance} > {MAX_ROWS} THEN {too_many} ELSE {values} END"
    named = ", ".join(
        f"{_render_range_bound(each, kinds)} AS {name}" for each, name in zip(bounds, ("_a", "_b", "_c"), strict=True)
    )
    return f"SELECT UNNEST({listed}) AS {translate.quote_ident(source.name)} FROM (SELECT {named})"  # noqa: S608


def _infer_range_bound_type(expr: ir.Expr) -> KustoType | None:
    if writer.is_datetime_expr(expr):
        return "datetime"
    if writer.is_timespan_expr(expr):
        return "timespan"
    return "real" if writer.is_real_expr(expr) else infer_type(expr)


def _render_range_bound(expr: ir.Expr, bound_types: list[KustoType | None]) -> Sql:
    sql = render_expression(expr)
    if "real" in bound_types:
        return f"CAST({sql} AS DOUBLE)"
    if {"datetime", "timespan"} & set(bound_types):
        return sql
    untyped = render_error(
        "EMB0001",
        "a range with real bounds whose type is unknown during translation is not supported by the embedded query "
        "engine (write each bound as toreal(...))",
    )
    return (
        f"(SELECT CASE WHEN typeof(v) IN {_REALS} THEN {untyped} ELSE CAST(v AS BIGINT) END FROM (SELECT {sql} AS v))"  # noqa: S608
    )


def _render_range_values_and_count(bound_types: list[KustoType | None]) -> tuple[Sql, Sql]:
    """Return SQL for the values of a ``range``, and SQL for their approximate number, which the caller limits.

    ``bound_types`` contains the types of the start, the end and the step; None for an unknown type.
    """
    start, stop, step = bound_types
    if "real" in (start, stop):
        count = "CAST(floor((_b - _a) / _c + 1e-9) AS BIGINT)"
        steps = f"list_transform(generate_series(0, {count}), lambda _i: _a + _i * _c)"
        return f"list_filter({steps}, lambda _v: CASE WHEN _c > 0 THEN _v <= _b ELSE _v >= _b END)", "(_b - _a) / _c"
    if step == "real":
        raise unsupported_error("range of whole numbers with a real step", "write the bounds as reals")
    distance = "(epoch_us(_b) - epoch_us(_a)) / epoch_us(_c)"
    if "datetime" in (start, stop):
        return "generate_series(_a, _b, _c)", distance
    if "timespan" in bound_types:
        return "kql_timespan_range(_a, _b, _c)", distance
    return "generate_series(_a, _b, _c)", "(CAST(_b AS DOUBLE) - _a) / _c"


macros: tuple[str, ...] = (
    # The type of the bounds is known to DuckDB only, if a bound is the result of a function or of toscalar().
    """CREATE OR REPLACE MACRO kql_timespan_range(a TIMESTAMP, b TIMESTAMP, c INTERVAL) AS generate_series(a, b, c),
        (a INTERVAL, b INTERVAL, c INTERVAL) AS list_transform(generate_series(epoch_us(a), epoch_us(b), epoch_us(c)),
        lambda _i: to_microseconds(_i))""",
)

TABLE_FUNCTIONS = ("table", "materialized_view")
"""Functions that return a table by its name."""

SUPPORTED: tuple[str, ...] = (
    "union (one column per type, as in a_long and a_string)",
    "range (long, real, datetime, timespan)",
    *TABLE_FUNCTIONS,
)
_TABLE_ARGUMENTS = 2
"""Maximum number of arguments: the name, and a scope or an age that have no meaning for a local table."""


def install_into_translator() -> None:
    """Add ``range``, ``union``, ``table()`` and ``materialized_view()`` to the KQL translator library."""
    replace_attribute(lower, "_lower_union", _patch_unions_for_columns_by_type)
    replace_attribute(schema, "union_output_columns", _patch_output_columns_of_unions)
    replace_attribute(translate, "render_union", lambda _: _render_union)
    _install_range()
    replace_attribute(lower, "_lower_source", _patch_sources_for_table_calls)
    replace_attribute(lower, "_is_tabular_value", _patch_is_tabular_for_table_calls)


def _find_table_call(node: ParseNode) -> ParseNode | None:
    """Return the parse tree node of a call to ``table()`` or ``materialized_view()``; None for any other source."""
    inner = reader.unparenthesize(reader.collapse(node))
    if get_rule_name(inner) != "NamedFunctionCallExpression":
        return None
    return inner if inner.getText().startswith(tuple(f"{name}(" for name in TABLE_FUNCTIONS)) else None


def _patch_is_tabular_for_table_calls(library_function: Callable[..., bool]) -> Callable[..., bool]:
    """Make the translator library accept ``table()`` and ``materialized_view()`` as sources of rows."""
    return lambda node, scalars: _find_table_call(node) is not None or library_function(node, scalars)


def _patch_sources_for_table_calls(
    library_function: Callable[[ParseNode], ir.Source],
) -> Callable[[ParseNode], ir.Source]:
    def convert_source(node: ParseNode) -> ir.Source:
        call = _find_table_call(node)
        return library_function(node) if call is None else ir.TableRef(_read_table_name(call))

    return convert_source


def _read_table_name(call_node: ParseNode) -> str:
    function, *arguments = get_child_rules(call_node)
    name, position = function.getText(), get_line_and_column(call_node)
    if not 1 <= len(arguments) <= _TABLE_ARGUMENTS:
        raise semantic_error(f"{name}(): function expects 1 or 2 arguments", inner="SEM0219", position=position)
    value = reader.lower_named(arguments[0]).expr
    scope = reader.FN_STATE.get()
    if isinstance(value, ir.ColumnRef) and scope is not None:
        value = scope.scalars.get(value.name, value)
    if isinstance(value, ir.LetRef):
        value = value.value
    if not isinstance(value, ir.Literal) or not isinstance(value.value, str):
        raise semantic_error(f"{name}(): the name must be a constant string", inner="SEM0219", position=position)
    return value.value
