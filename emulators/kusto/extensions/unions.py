"""Query operator ``union``; if columns of the same name have different types, the result has a column for each type.

Only DuckDB knows the types of most columns; therefore such a ``union`` needs a probe query that returns the types of
its inputs. A plain SQL union would convert the values to one common type.
"""

import contextlib
import dataclasses
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema, translate
from duckdb_kql.errors import KqlError
from duckdb_kql.types import kusto_type

from emulators.kusto.discovery import DataDependentOperator, Rows, find_probe_rows
from emulators.kusto.errors import QueryError
from emulators.kusto.extensions.functions import call_views
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.pipeline import get_table_names
from emulators.kusto.extensions.sql import quote_name, quote_text
from emulators.kusto.extensions.tabular import find_as_name, find_operator_before, is_first_operator
from emulators.kusto.extensions.tree import get_rule_name
from emulators.kusto.extensions.type_guards import render_error

SUPPORTED: tuple[str, ...] = ("union (one column per type, as in a_long and a_string)",)

type Columns = Sequence[tuple[str, str]]
"""Name and DuckDB type of each column."""
_UNTYPED = '"NULL"'


@dataclasses.dataclass(frozen=True)
class TypedUnion(ir.Union, DataDependentOperator):
    """Query operator ``union``.

    Attributes:
        offset: index of the operator's first character in the query text.
        describes: True in the probe query, which lists the name and type of each input's columns.
        labels: name that ``as`` gives to each input; None for an input without ``as``.
    """

    offset: int = -1
    describes: bool = False
    labels: tuple[str | None, ...] = ()
    probes_types = True

    def needs_probe(self, before: ir.Query, tables: Mapping[str, Sequence[str]]) -> bool:
        """Return whether several inputs have a column of the same name whose type only DuckDB knows."""
        known = {name: list(cols) for name, cols in tables.items()}
        for name, bound in before.lets:
            if isinstance(bound, ir.Query):
                with contextlib.suppress(KqlError, QueryError):
                    known[name] = schema.output_columns(bound, known)
        try:
            inputs = list(_find_input_columns(before, known))
            for branch in schema.surviving_branches(self, known):
                inputs += _find_input_columns(branch, known)
        except (KqlError, QueryError):
            return False  # the translation of the query itself reports the error
        return bool(_find_common_columns(inputs))

    def build_probe(self) -> ir.Operator:
        """Return the probe query's operator, which lists the columns of each input with their types."""
        return dataclasses.replace(self, describes=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _ResultColumn:
    name: str
    source: str
    kind: str


def _find_input_columns(query: ir.Query, tables: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield the columns of a query or, if the query is a wildcard, the columns of each matching table."""
    if not query.operators and isinstance(query.source, ir.WildcardTableRef):
        yield from (tables[name] for name in schema.match_wildcard(query.source, tables))
    else:
        yield schema.output_columns(query, tables)


def _find_common_columns(inputs: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns that occur in several inputs of a ``union`` and whose types may differ."""
    seen: set[str] = set()
    again: set[str] = set()
    for cols in inputs:
        again |= seen & set(cols)
        seen |= set(cols)
    return sorted(name for name in again if infer_type(ir.ColumnRef(name)) is None)


def _plan_result(inputs: Sequence[Columns], kind: str) -> list[_ResultColumn] | None:
    """Return the result columns of a ``union`` with their types; None if each name has the same type in all inputs."""
    kinds: dict[str, list[str]] = {}
    for name, type_name in (column for columns in inputs for column in columns):
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
    if kind == "inner":
        planned = [column for column in planned if all(_has_column(columns, column) for columns in inputs)]
    return _make_names_distinct(planned)


def _make_names_distinct(columns: Sequence[_ResultColumn]) -> list[_ResultColumn]:
    taken: list[str] = []
    for column in columns:
        taken.append(schema.disambiguate(column.name, taken))
    return [dataclasses.replace(column, name=name) for column, name in zip(columns, taken, strict=True)]


def _has_column(columns: Columns, wanted: _ResultColumn) -> bool:
    return any(name == wanted.source and wanted.kind in ("", kusto_type(type_name)) for name, type_name in columns)


def _read_probe(op: ir.Union) -> list[Columns] | None:
    """Return each input's columns, as found by the probe query; None if the probe query has not run."""
    rows = _find_rows(op)
    return None if rows is None else [[(each["name"], each["type"]) for each in row[1]] for row in rows]


def _patch_lower_union(default: Callable[..., ir.Union]) -> Callable[..., ir.Union]:
    def lower_union(node: Any, kids: list[Any]) -> ir.Union:
        union = default(node, kids)
        branches = [(branch, label) for branch, label in zip(union.branches, _read_labels(kids), strict=True)]
        matched = [each for branch, label in branches for each in _match_views(branch, label, fuzzy=union.isfuzzy)]
        left = [] if is_first_operator(node) else [find_as_name(find_operator_before(node))]
        labels = (*left, *(label for _, label in matched))
        found = tuple(branch for branch, _ in matched)
        return TypedUnion(found, union.kind, union.with_source, union.isfuzzy, node.start.start, labels=labels)

    return lower_union


def _read_labels(kids: Sequence[Any]) -> list[str | None]:
    """Return the name that the operator ``as`` gives to each input; None for an input without ``as``."""
    return [find_as_name(kid) for kid in kids if get_rule_name(kid) == "UnionOperatorExpression"]


def _match_views(branch: ir.Query, label: str | None, *, fuzzy: bool) -> Iterator[tuple[ir.Query, str | None]]:
    """Yield the query of an input; if it is a wildcard, yield a query for each view and table that it matches."""
    if branch.operators or not isinstance(branch.source, ir.WildcardTableRef):
        yield branch, label
        return
    views = call_views(branch.source.pattern)
    yield from ((ir.Query(view), None) for view in views)
    tables = [name for name in get_table_names() if fnmatch.fnmatchcase(name, branch.source.pattern)]
    if tables or not (views or fuzzy):
        yield branch, None


def _patch_union_columns(default: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def union_output_columns(op: ir.Union, left: list[str], known: Any) -> list[str]:
        if isinstance(op, TypedUnion) and op.describes:
            return ["input", "columns"]
        inputs = _read_probe(op)
        planned = None if inputs is None else _plan_result(inputs, op.kind)
        if planned is None:
            return default(op, left, known)
        return [*([op.with_source] if op.with_source else []), *(column.name for column in planned)]

    return union_output_columns


def _render_union(
    op: ir.Union,
    prev: str,
    left_cols: list[str],
    query: ir.Query,
    tables: Any,
    leading: bool,  # noqa: FBT001  the library's interface
) -> str:
    names = frozenset(name for name, _ in query.lets)
    qualify = writer.union_qualifies(query, op, leading)
    arms = writer.left_arms(op, prev, query, tables, leading, names, qualify)
    wildcard = leading and isinstance(query.source, ir.WildcardTableRef)
    cols = list(_find_input_columns(ir.Query(query.source), tables)) if wildcard else [left_cols]
    for index, branch in enumerate(schema.surviving_branches(op, tables), start=1):
        cols += _find_input_columns(branch, tables)
        arms += writer.branch_arms(branch, index, tables, names, qualify)
    if isinstance(op, TypedUnion) and len(op.labels) == len(arms):
        arms = [(sql, given or label) for (sql, label), given in zip(arms, op.labels, strict=True)]
    if isinstance(op, TypedUnion) and op.describes:
        return "\nUNION ALL ".join(map(_render_description, range(len(arms)), [sql for sql, _ in arms], cols))
    inputs = _read_probe(op)
    planned = None if inputs is None else _plan_result(inputs, op.kind)
    if inputs is None or planned is None:
        return _render_equal_types(op, arms, cols, schema.union_output_columns(op, left_cols, tables))
    return _render_types_apart(op, arms, inputs, planned)


def _render_description(index: int, sql: str, cols: Sequence[str]) -> str:
    """Render SQL that returns the name and DuckDB type of an input's columns without reading its rows."""
    described = ", ".join(f"{{name: {quote_text(name)}, type: typeof(_a.{quote_name(name)})}}" for name in cols)
    return (
        f'SELECT {index} AS "input", to_json([{described}]) AS "columns" '  # noqa: S608  quoted names
        f"FROM (SELECT 1) LEFT JOIN (SELECT * FROM ({sql}) LIMIT 0) AS _a ON true"
    )


def _render_types_apart(
    op: ir.Union, arms: Sequence[tuple[str, str]], inputs: Sequence[Columns], planned: Sequence[_ResultColumn]
) -> str:
    """Render SQL for a ``union`` whose result has one column for each name and type."""
    selects = []
    for (sql, label), columns in zip(arms, inputs, strict=True):
        parts = [f"{quote_text(label)} AS {quote_name(op.with_source)}"] if op.with_source else []
        parts += [
            f"{quote_name(column.source)} AS {quote_name(column.name)}"
            for column in planned
            if _has_column(columns, column)
        ]
        selects.append(f"SELECT {', '.join(parts) or 'NULL AS _none'} FROM ({sql})")  # noqa: S608  quoted names
    names = [*([op.with_source] if op.with_source else []), *(column.name for column in planned)]
    body = "\nUNION ALL BY NAME ".join(selects)
    return f"SELECT {', '.join(map(quote_name, names))} FROM ({body})"  # noqa: S608  quoted names


def _render_equal_types(
    op: ir.Union, arms: Sequence[tuple[str, str]], cols: Sequence[Sequence[str]], result: Sequence[str]
) -> str:
    """Render SQL for a ``union`` that reports an error if columns of the same name have different types."""
    shared = _find_common_columns(cols) if _find_rows(op) is None else []
    body = "\nUNION ALL BY NAME ".join(
        _render_input(op, arm, [name for name in shared if name in names])
        for arm, names in zip(arms, cols, strict=True)
    )
    tests = [f"{quote_name(_get_type_column_name(name))} <> typeof({quote_name(name)})" for name in shared]
    where = f" WHERE CASE WHEN {' OR '.join(tests)} THEN {_TYPES_DIFFER} ELSE true END" if tests else ""
    return f"SELECT {', '.join(map(quote_name, result))} FROM ({body}){where}"  # noqa: S608  quoted names


def _find_rows(op: ir.Union) -> Rows | None:
    return find_probe_rows(op) if isinstance(op, TypedUnion) else None


_TYPES_DIFFER = render_error(
    "EMB0001",
    "'union' of columns of one name and different types in this place is not supported by the embedded query engine "
    "(rename one)",
)


def _render_input(op: ir.Union, arm: tuple[str, str], shared: Sequence[str]) -> str:
    sql, label = arm
    parts = [f"{quote_text(label)} AS {quote_name(op.with_source)}"] if op.with_source else []
    types = [f"typeof({quote_name(name)}) AS {quote_name(_get_type_column_name(name))}" for name in shared]
    return f"SELECT {', '.join([*parts, '*', *types])} FROM ({sql})"  # noqa: S608  quoted names


def _get_type_column_name(name: str) -> str:
    return f"\N{SYMBOL FOR NULL}{name}"


macros: tuple[str, ...] = ()


def install() -> None:
    """Replace the SQL and the columns of ``union`` in the translator library."""
    replace_attribute(lower, "_lower_union", _patch_lower_union)
    replace_attribute(schema, "union_output_columns", _patch_union_columns)
    replace_attribute(translate, "render_union", lambda _: _render_union)
