"""SQL of KQL window functions and sessions; a nested SQL subquery adds each result as a column."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from duckdb_kql import ir, translate

from emulators.kusto.extensions.library import writer
from emulators.kusto.extensions.sql import NamePrefix, Sql
from emulators.kusto.extensions.tree import IrNode

RUNNING = "OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
"""Window of all rows up to the current one."""

_VOLATILE: Final = ("random()", "gen_random_uuid()")
"""SQL functions that return another value at each call."""

type SubqueryDepth = int
"""Nesting level of the subquery that adds a column; 0 for input columns."""
type ColumnName = str
"""Name of a generated column, which needs no quotes in SQL."""


class PlannedColumn(NamedTuple):
    """Column that a `WindowPlan` adds: its name, and the nesting level of the subquery that adds it."""

    name: ColumnName
    depth: SubqueryDepth


class RestartColumn(NamedTuple):
    """Column that is true in rows where a window function must start again.

    Attributes:
        name: name of the column; None if the function never starts again.
        depth: depth (nesting level of the subquery) of the column; without a column, the depth of the columns that the
            window function reads.
    """

    name: ColumnName | None
    depth: SubqueryDepth


class SessionArguments(NamedTuple):
    """Arguments of ``row_window_session()`` as SQL.

    Attributes:
        value: datetime that determines the session of a row.
        longest: maximum length of a session.
        gap: maximum time between two consecutive rows of a session.
    """

    value: Sql
    longest: Sql
    gap: Sql


type ColumnAdder = Callable[["WindowPlan", ir.FunctionCall, int], PlannedColumn]
"""Function that adds the columns of a window function call to a plan.

The function receives the plan, the call, and the depth (nesting level) of the columns that the arguments read. It
returns the column with the result.
"""


type RowNumbersQuery = Callable[[Sql], Sql]
"""Function that renders an SQL query over named rows, which returns the numbers of some of these rows."""


class WindowPlan:
    """Plan of nested SQL subqueries; each adds columns that are computed from the columns of the subqueries inside it.

    The depth of a column is the nesting level of the subquery that adds the column; input columns have depth 0.

    Args:
        input_sql: name of the subquery with the input rows.
        input_columns: names of the input columns.
        partition: groups of rows; window functions are computed for each group separately.
        functions: functions that add the columns of a window function call to the plan, by KQL name.

    Attributes:
        row: name of the column with the number of the row.
        group: name of the column with the number of the group; None if there is only one group.
    """

    def __init__(
        self,
        input_sql: Sql,
        input_columns: Sequence[str],
        partition: "RowPartition",
        functions: Mapping[str, ColumnAdder],
    ) -> None:
        self._functions = functions
        self._prefix = choose_unused_prefix(input_columns)
        self._levels: list[list[str]] = []
        self._marked: dict[int, list[tuple[str, RowNumbersQuery]]] = {}
        self._known: dict[int, tuple[Any, int]] = {}
        self._columns: dict[tuple[int, str], str] = {}
        self._count = 0
        self._sorts = False
        self.row = self._create_column_name()
        self._rows = render_numbered_rows(input_sql, self.row, partition, f"{self._prefix}r")
        self.group: str | None = None
        if partition.columns:
            keys = (translate.quote_ident(each) for each in partition.columns)
            start = " OR ".join(f"{key} IS DISTINCT FROM lag({key}) OVER ()" for key in keys)
            begins = self.add_column(f"({start})", 1)
            self.group = self.add_column(f"count(*) FILTER (WHERE {begins}) {RUNNING}", 2)

    def render_rows_with_added_columns(self) -> Sql:
        """Return SQL that yields the input rows with all added columns, in their original order."""
        sql = self._rows
        for depth, level in enumerate(self._levels, 1):
            added = f", {', '.join(level)}" if level else ""
            sql = f"(SELECT *{added} FROM {sql})"  # noqa: S608  generated names, rendered expressions
            for name, write in self._marked.get(depth, ()):
                sql = self._render_row_flag_column(sql, name, write)
        return f"(SELECT * FROM {sql} ORDER BY {self.row})" if self._sorts else sql  # noqa: S608

    def add_column(self, sql: Sql, depth: SubqueryDepth) -> ColumnName:
        """Add a column that is computed from columns of lower depth; return the name of the column.

        If the subquery already has a column with the same SQL, that column is used.
        """
        found = self._columns.get((depth, sql))
        if found is not None and not any(name in sql for name in _VOLATILE):
            return found
        while len(self._levels) < depth:
            self._levels.append([])
        name = self._columns[depth, sql] = self._create_column_name()
        self._levels[depth - 1].append(f"{sql} AS {name}")
        return name

    def add_row_flag_column(self, render_row_numbers: RowNumbersQuery, depth: SubqueryDepth) -> ColumnName:
        """Add a column that is true in the rows whose numbers a separate query returns; return the column's name."""
        while len(self._levels) < depth:
            self._levels.append([])
        name = self._create_column_name()
        self._marked.setdefault(depth, []).append((name, render_row_numbers))
        return name

    def _render_row_flag_column(self, sql: Sql, column_name: ColumnName, render_row_numbers: RowNumbersQuery) -> Sql:
        rows = f"{column_name}m"
        return (
            f"(WITH {rows} AS MATERIALIZED (SELECT * FROM {sql}) "  # noqa: S608  generated names
            f"SELECT *, {self.row} IN ({render_row_numbers(rows)}) AS {column_name} FROM {rows} ORDER BY {self.row})"
        )

    def restore_row_order_at_end(self) -> None:
        """Make the SQL sort the rows again at the end, because a window function does not preserve their order."""
        self._sorts = True

    @property
    def depth_of_group_number_column(self) -> SubqueryDepth:
        """Nesting level of the subquery that adds the column ``group``; 0 if there is only one group."""
        return 0 if self.group is None else 2

    def add_restart_column(self, restart: Sql | None, depth: SubqueryDepth) -> RestartColumn:
        """Add a column that is true in rows where a window function must start again, and return it.

        ``restart`` is the SQL of the argument ``restart`` of the window function.
        """
        depth = max(depth, self.depth_of_group_number_column)
        starts = [f"coalesce({restart}, false)"] if restart else []
        starts += [f"{self.group} IS DISTINCT FROM lag({self.group}) OVER ()"] if self.group else []
        if not starts:
            return RestartColumn(None, depth)
        return RestartColumn(self.add_column(f"({' OR '.join(starts)})", depth + 1), depth + 1)

    def add_start_row_column(self, restart: Sql | None, depth: SubqueryDepth) -> PlannedColumn:
        """Add a column with the number of the row where a window function last started, and return it.

        If the function starts only once, no column is added. The constant 1 takes the place of the column's name.
        """
        begins, depth = self.add_restart_column(restart, depth)
        if begins is None:
            return PlannedColumn("1", depth)
        sql = f"coalesce(max(CASE WHEN {begins} THEN {self.row} END) {RUNNING}, 1)"
        return PlannedColumn(self.add_column(sql, depth + 1), depth + 1)

    def replace_window_functions(self, node: IrNode) -> IrNode:
        """Return a copy of a query operator in which columns of this plan replace the window functions."""
        return self._replace_window_calls_and_get_depth(node)[0]

    def _replace_window_calls_and_get_depth(self, node: IrNode) -> tuple[IrNode, SubqueryDepth]:
        if id(node) not in self._known:
            self._known[id(node)] = self._replace_new_window_calls_and_get_depth(node)
        return self._known[id(node)]

    def _replace_new_window_calls_and_get_depth(self, node: IrNode) -> tuple[IrNode, SubqueryDepth]:
        if isinstance(node, tuple):
            items = [self._replace_window_calls_and_get_depth(each) for each in node]
            return tuple(item for item, _ in items), max((depth for _, depth in items), default=0)
        if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
            return node, 0
        parts = {
            field.name: self._replace_window_calls_and_get_depth(getattr(node, field.name))
            for field in dataclasses.fields(node)
        }
        depth = max((each for _, each in parts.values()), default=0)
        again: Any = dataclasses.replace(node, **{name: part for name, (part, _) in parts.items()}) if depth else node
        function = self._functions.get(again.name.lower()) if isinstance(again, ir.FunctionCall) else None
        if function is None:
            return again, depth
        column, depth = function(self, again, depth)
        return ir.RenderedAggregate(column), depth

    def _create_column_name(self) -> ColumnName:
        self._count += 1
        return f"{self._prefix}{self._count}"


def choose_unused_prefix(input_columns: Sequence[str]) -> NamePrefix:
    """Return a prefix for generated names with which no column name starts."""
    prefix = "_w"
    while any(name.casefold().startswith(prefix) for name in input_columns):
        prefix = f"_{prefix}"
    return prefix


@dataclasses.dataclass(frozen=True)
class RowPartition:
    """Groups of rows for which window functions are computed separately.

    Attributes:
        columns: names of the columns that identify a group; empty for a single group.
        contiguous: True if the rows of each group are adjacent.
    """

    columns: tuple[str, ...] = ()
    contiguous: bool = False


WHOLE = RowPartition()
"""All rows in one group."""


def render_numbered_rows(
    input_sql: Sql, row_column: ColumnName, partition: RowPartition, scratch_column: ColumnName
) -> Sql:
    """Return SQL that yields the rows group after group, and adds the column ``row_column`` with the row numbers.

    The numbers begin with 1 and continue from one group to the next. Within a group, the order of the rows does not
    change. ``scratch_column`` is an unused name for a column that exists only inside the SQL.
    """
    if not partition.columns or partition.contiguous:
        return f"(SELECT *, row_number() OVER () AS {row_column} FROM {input_sql})"  # noqa: S608  generated names
    keys = writer.quoted(list(partition.columns))
    once = f"(SELECT *, row_number() OVER () AS {scratch_column} FROM {input_sql})"  # noqa: S608
    grouped = f"(SELECT * FROM {once} ORDER BY {keys}, {scratch_column})"  # noqa: S608
    return f"(SELECT * EXCLUDE ({scratch_column}), row_number() OVER () AS {row_column} FROM {grouped})"  # noqa: S608


def add_session_start_column(
    plan: WindowPlan, arguments: SessionArguments, begin_condition: ColumnName | None, depth: SubqueryDepth
) -> PlannedColumn:
    """Add a column with the start of the session to which a row belongs, as in ``row_window_session()``.

    A session starts at a row if one of these conditions is met:

    - The value is the first value, or follows a null.
    - The value is ``gap`` or more after the previous value.
    - ``begin_condition`` is true.
    - The value is ``longest`` or more after the start of the current session.

    The first three conditions divide the rows into "runs". Inside a run, only the last condition can start further
    sessions, and only if the run has a value ``longest`` or more after its first value. A recursive query finds these
    later starts, because each start determines the next start. In a run with ascending values, the query advances by
    spans of the length ``longest``; in any other run it advances by rows. Each iteration processes one span of every
    run.

    Args:
        plan: plan to which the columns are added.
        arguments: SQL of the arguments.
        begin_condition: name of a column that is true in rows where a session must start; None for no such column.
        depth: depth of the columns that the arguments read.
    """
    value, longest, gap = arguments
    at = plan.add_column(f"epoch_us({value})", depth + 1)
    before = f"lag({at}) OVER ()"
    breaks = f"coalesce({at} >= {before} + epoch_us({gap}), true)" + (
        f" OR {begin_condition}" if begin_condition else ""
    )
    broken = plan.add_column(f"({breaks})", depth + 2)
    falls = plan.add_column(f"coalesce({at} < {before}, false)", depth + 2)
    run = plan.add_column(f"count(*) FILTER (WHERE {broken}) {RUNNING}", depth + 3)
    origin = plan.add_column(f"last_value(CASE WHEN {broken} THEN {at} END IGNORE NULLS) {RUNNING}", depth + 3)
    unsorted = plan.add_column(f"(NOT {broken} AND {falls})", depth + 3)
    length = f"epoch_us({longest})"
    exceeded = plan.add_column(f"({at} - {origin} >= {length})", depth + 4)

    def render_later_starts(rows: Sql) -> Sql:
        return _render_later_session_starts(
            rows, _SessionColumns(plan.row, at, run, origin, unsorted, exceeded), length
        )

    later = plan.add_row_flag_column(render_later_starts, depth + 4)
    last = f"last_value(CASE WHEN {later} OR {broken} THEN {at} END IGNORE NULLS) {RUNNING}"
    sql = f"CASE WHEN {at} IS NOT NULL THEN make_timestamp({last}) END"
    return PlannedColumn(plan.add_column(sql, depth + 5), depth + 5)


class _SessionColumns(NamedTuple):
    """Names of the columns from which SQL computes the later starts of sessions (see `add_session_start_column`).

    A run is a group of consecutive rows in which only the maximum session length can start a further session.

    Attributes:
        row: column with the number of the row.
        at: column with the datetime of the row, in microseconds since 1970.
        run: column with the number of the run.
        origin: column with the first datetime of the run, in microseconds since 1970.
        unsorted: column that is true if the datetime is earlier than the previous datetime of the run.
        exceeded: column that is true if the datetime is at least the maximum session length after ``origin``.
    """

    row: ColumnName
    at: ColumnName
    run: ColumnName
    origin: ColumnName
    unsorted: ColumnName
    exceeded: ColumnName


def _render_later_session_starts(rows: Sql, columns: _SessionColumns, longest: Sql) -> Sql:
    row, at, run, origin, unsorted, exceeded = columns
    long = f"{run} IN (SELECT {run} FROM {rows} WHERE {exceeded})"  # noqa: S608  generated names
    falling = f"{run} IN (SELECT {run} FROM {rows} WHERE {unsorted})"  # noqa: S608
    span = f"CASE WHEN {falling} THEN {row} ELSE ({at} - {origin}) // greatest({longest}, 1) END"
    return (
        f"WITH RECURSIVE spans AS MATERIALIZED (SELECT g, b, rows, "  # noqa: S608  generated names
        f"lead(b) OVER (PARTITION BY g ORDER BY b) AS n, b = min(b) OVER (PARTITION BY g) AS f FROM "
        f"(SELECT {run} AS g, {span} AS b, list({{'t': {at}, 'r': {row}}}) AS rows FROM {rows} "
        f"WHERE {at} IS NOT NULL AND {long} GROUP BY ALL)), "
        f"chain AS (SELECT g, n, list_min(rows).t + {longest} AS x, list_min(rows) AS s FROM spans WHERE f UNION ALL "
        f"SELECT g, n, CASE WHEN s IS NULL THEN x ELSE s.t + {longest} END, s FROM (SELECT p.g, p.n, c.x, "
        f"list_min(list_filter(p.rows, lambda q: q.t >= c.x)) AS s FROM chain c "
        f"JOIN spans p ON p.g = c.g AND p.b = c.n)) SELECT s.r FROM chain WHERE s IS NOT NULL"
    )
