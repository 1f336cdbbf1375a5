"""Plugins of ``evaluate`` that count events and distinct ids in time windows, such as ``activity_metrics``.

A timeline is a column of datetimes or numbers. Each plugin analyses a range of the timeline, which it divides into
windows; window 0 begins at the start of the range. The start of a window has the type of the timeline. Other modules
define plugins with the same windows as subclasses of `TimelinePlugin`.

A window without events has no row. Distinct counts are exact, whereas Data Explorer only estimates distinct counts.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from duckdb_kql import ir

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import ExpressionReplacer
from emulators.kusto.extensions.plugins import PluginParser, add_plugin, check_column_exists
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import NamePrefix, Sql, quote_name, quote_text, render_expression
from emulators.kusto.extensions.tree import ParseNode, get_line_and_column
from emulators.kusto.extensions.window_plan import choose_unused_prefix

_NOT_ON_A_TIMELINE = ("string", "bool")

macros: tuple[str, ...] = (
    # An instant or a duration in microseconds; other values as a double.
    """CREATE OR REPLACE MACRO kql_axis(value) AS list_transform([value], lambda _v: CASE typeof(_v)
        WHEN 'TIMESTAMP' THEN CAST(epoch_us(CAST(_v AS TIMESTAMP)) AS DOUBLE)
        WHEN 'INTERVAL' THEN CAST(epoch_us(CAST(_v AS INTERVAL)) AS DOUBLE) ELSE TRY_CAST(_v AS DOUBLE) END)[1]""",
    # The number of a window of positive length that contains a position.
    """CREATE OR REPLACE MACRO kql_window(position, begin, size, message) AS list_transform(
        [struct_pack(p := kql_axis(position) - kql_axis(begin), s := kql_axis(size))], lambda _w: CASE
        WHEN _w.s > 0 THEN CAST(floor(_w.p / _w.s) AS BIGINT) ELSE error(message) END)[1]""",
)


@dataclasses.dataclass(frozen=True)
class TimelinePlugin(UnorderedOutputOperator):
    """Base class of plugins with an id column, a timeline column, constants and dimension columns.

    Attributes:
        plugin: name of the plugin.
        columns: the id column and the timeline column.
        constants: arguments after these columns, such as the start of the range and the size of a window.
        dimensions: columns by whose values the results are grouped.
    """

    plugin: str
    columns: tuple[str, ...]
    constants: tuple[ir.Expr, ...]
    dimensions: tuple[str, ...]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "TimelinePlugin":
        """Return a copy of the plugin with ``substitute`` applied to its constants, which are its only expressions."""
        return dataclasses.replace(self, constants=tuple(map(substitute, self.constants)))

    def check_columns_exist(self, input_columns: Sequence[str]) -> None:
        """Check that all columns to which the plugin refers exist.

        Raises:
            QueryError: a column does not exist.
        """
        for name in (*self.columns, *self.dimensions):
            check_column_exists(name, input_columns)

    def render_constants(self) -> list[Sql]:
        """Return the SQL of each constant."""
        return [f"({render_expression(each)})" for each in self.constants]

    def render_window_number(self, begin: Sql, size: Sql) -> Sql:
        """Return SQL for the number of the window that contains a row's value in the timeline column.

        ``begin`` (the start of window 0) and ``size`` are SQL, too.
        """
        message = quote_text(f"kql:SEM0100:evaluate {self.plugin}(): the size of a window must be positive")
        return f"kql_window({quote_name(self.columns[-1])}, {begin}, {size}, {message})"

    def render_dimension_columns(self) -> Sql:
        """Return SQL for the dimension columns, each with a comma before it."""
        return "".join(f", {quote_name(name)}" for name in self.dimensions)


def parse_timeline_plugin_fields(
    plugin_name: str,
    node: ParseNode,
    arguments: Sequence[ParseNode],
    column_count: int,
    allowed_constant_counts: Collection[int],
) -> Mapping[str, Any]:
    """Return the fields of a `TimelinePlugin` from the arguments of a plugin call.

    Args:
        plugin_name: name of the plugin.
        node: parse tree node of the operator, for positions.
        arguments: parse tree nodes of the arguments.
        column_count: number of columns before the constants.
        allowed_constant_counts: accepted numbers of constants. Dimension columns may follow only if the number of
            constants is the largest of these.

    Raises:
        QueryError: the number or the form of the arguments is wrong.
    """
    position = get_line_and_column(node)
    if any(find_argument_name(each) for each in arguments):
        raise semantic_error(f"evaluate {plugin_name}() does not accept named arguments", position=position)
    lowered = [reader.lower_expr(each) for each in arguments]
    most = max(allowed_constant_counts)
    count = most if len(lowered) >= column_count + most else len(lowered) - column_count
    if count not in allowed_constant_counts:
        raise semantic_error(
            f"evaluate {plugin_name}() requires {column_count} columns and "
            f"{' or '.join(map(str, sorted(allowed_constant_counts)))} constants",
            inner="SEM0219",
            position=position,
        )
    names = [*lowered[:column_count], *lowered[column_count + count :]]
    if not all(isinstance(each, ir.ColumnRef) for each in names):
        raise semantic_error(
            f"evaluate {plugin_name}(): the first {column_count} arguments and the dimensions must be columns",
            position=position,
        )
    given = lowered[column_count : column_count + count]
    if any(isinstance(each, ir.Literal) and each.kind in _NOT_ON_A_TIMELINE for each in given):
        raise semantic_error(
            f"evaluate {plugin_name}(): the constants must be numbers, datetimes or timespans", position=position
        )
    found = [each.name for each in names]
    return {
        "plugin": plugin_name,
        "columns": tuple(found[:column_count]),
        "constants": tuple(given),
        "dimensions": tuple(found[column_count:]),
    }


SUPPORTED: tuple[str, ...] = (
    "evaluate sliding_window_counts",
    "evaluate activity_counts_metrics",
    "evaluate activity_metrics",
    "evaluate activity_engagement",
    "evaluate active_users_count",
    "evaluate session_count",
)


class RangeSql(NamedTuple):
    """SQL of the range that a plugin analyses.

    Attributes:
        begin: start of the range.
        end: end of the range.
        constants: other constants of the plugin, such as the size of a window.
    """

    begin: Sql
    end: Sql
    constants: list[Sql]


@dataclasses.dataclass(frozen=True)
class ActivityPlugin(TimelinePlugin):
    """Plugin that returns one row for each time window and combination of dimension values."""

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that yields one row for each window, in the order of time."""
        self.check_columns_exist(input_columns)
        prefix = choose_unused_prefix([*input_columns, *self.infer_output_columns(input_columns)])
        return _PLUGINS[self.plugin].render(self, input_sql, prefix)

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: timeline column, dimensions and results."""
        del input_columns
        return [self.columns[1], *self.dimensions, *_PLUGINS[self.plugin].results]

    def render_range_and_constants(self, input_sql: Sql) -> RangeSql:
        """Return SQL for the range that the plugin analyses, and for the plugin's other constants."""
        constants = self.render_constants()
        if len(constants) == max(_PLUGINS[self.plugin].constants):
            return RangeSql(constants[0], constants[1], constants[2:])
        time, size = quote_name(self.columns[1]), constants[0]
        first = f"kql_axis((SELECT min({time}) FROM {input_sql}))"  # noqa: S608  quoted names
        begin = f"make_timestamp(CAST(floor({first} / kql_axis({size})) * kql_axis({size}) AS BIGINT))"
        return RangeSql(begin, f"(SELECT max({time}) FROM {input_sql})", constants)  # noqa: S608

    def render_event_counts(self, input_sql: Sql, prefix: NamePrefix, begin_and_end: tuple[Sql, Sql], size: Sql) -> Sql:
        """Render SQL that yields the number of events for each window, id and combination of dimension values.

        ``begin_and_end`` are the start and end of the range; events outside of the range are ignored. ``size`` is the
        size of a window. The names of the result columns start with ``prefix``.
        """
        name, time = map(quote_name, self.columns)
        return (
            f"(SELECT {self.render_window_number(begin_and_end[0], size)} AS {prefix}w, {name} AS "  # noqa: S608
            f"{prefix}i{self.render_dimension_columns()}, "
            f"count(*) AS {prefix}n FROM {input_sql} WHERE {time} BETWEEN {begin_and_end[0]} AND "
            f"{begin_and_end[1]} GROUP BY ALL)"
        )

    def render_result_query(self, begin: Sql, size: Sql, prefix: NamePrefix, values: Sequence[Sql], source: Sql) -> Sql:
        """Render SQL that yields the start of each window, its dimensions and the results.

        Args:
            begin: SQL for the start of the range, which is the start of window 0.
            size: SQL for the size of a window.
            prefix: prefix of the generated column names in ``source``.
            values: SQL for the value of each result column.
            source: SQL that yields the rows, with the number of their window.
        """
        time, *names = map(quote_name, [self.columns[1], *_PLUGINS[self.plugin].results])
        results = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        return (
            f"SELECT {begin} + {size} * {prefix}w AS {time}{self.render_dimension_columns()}, {results} FROM {source} "  # noqa: S608
            f"ORDER BY {prefix}w"
        )


def _render_sliding_window_counts(plugin: ActivityPlugin, input_sql: Sql, prefix: NamePrefix) -> Sql:
    begin, end, (lookback, size) = plugin.render_range_and_constants(input_sql)
    counted = _render_event_counts_in_lookback(plugin, input_sql, prefix, (begin, end), (lookback, size))
    counts = f"CAST(sum({prefix}n) AS BIGINT) AS {prefix}c, count(DISTINCT {prefix}i) AS {prefix}d"
    grouped = f"(SELECT {prefix}w{plugin.render_dimension_columns()}, {counts} FROM {counted} GROUP BY ALL)"  # noqa: S608
    return plugin.render_result_query(begin, size, prefix, [f"{prefix}c", f"{prefix}d"], grouped)


def _render_event_counts_in_lookback(
    plugin: ActivityPlugin,
    input_sql: Sql,
    prefix: NamePrefix,
    begin_and_end: tuple[Sql, Sql],
    lookback_and_window_size: tuple[Sql, Sql],
) -> Sql:
    """Render SQL that assigns the event counts of each window to every window whose lookback period includes it.

    The lookback period of a window consists of the window and the windows before it. There is one count for each
    window, id and combination of dimension values. ``begin_and_end`` are the start and end of the range.
    """
    (begin, end), (lookback, size) = begin_and_end, lookback_and_window_size
    events = plugin.render_event_counts(input_sql, prefix, (f"({begin} - {lookback})", end), size).replace(
        plugin.render_window_number(f"({begin} - {lookback})", size), plugin.render_window_number(begin, size)
    )
    width = f"greatest(1, CAST(floor(kql_axis({lookback}) / kql_axis({size})) AS BIGINT))"
    last = f"CAST(floor((kql_axis({end}) - kql_axis({begin})) / kql_axis({size})) AS BIGINT)"
    windows = f"unnest(generate_series(greatest({prefix}w, 0), least({prefix}w + {width} - 1, {last})))"
    return f"(SELECT * EXCLUDE ({prefix}w), {prefix}w AS {prefix}o, {windows} AS {prefix}w FROM {events})"  # noqa: S608


def _render_activity_counts_metrics(plugin: ActivityPlugin, input_sql: Sql, prefix: NamePrefix) -> Sql:
    begin, end, (size,) = plugin.render_range_and_constants(input_sql)
    dimensions = plugin.render_dimension_columns()
    events = plugin.render_event_counts(input_sql, prefix, (begin, end), size)
    first = f"min({prefix}w) OVER (PARTITION BY {prefix}i{dimensions}) AS {prefix}f"
    counts = (
        f"CAST(sum({prefix}n) AS BIGINT) AS {prefix}c, count(*) AS {prefix}d, count(*) FILTER (WHERE {prefix}w = "
        f"{prefix}f) AS {prefix}x"
    )
    grouped = f"SELECT {prefix}w{dimensions}, {counts} FROM (SELECT *, {first} FROM {events}) GROUP BY ALL"  # noqa: S608
    partition = f"PARTITION BY {dimensions.removeprefix(', ')} " if dimensions else ""
    total = f"CAST(sum({prefix}x) OVER ({partition}ORDER BY {prefix}w) AS BIGINT) AS {prefix}t"
    source = f"(SELECT *, {total} FROM ({grouped}))"  # noqa: S608
    return plugin.render_result_query(
        begin, size, prefix, [f"{prefix}c", f"{prefix}d", f"{prefix}x", f"{prefix}t"], source
    )


def _render_activity_metrics(plugin: ActivityPlugin, input_sql: Sql, prefix: NamePrefix) -> Sql:
    begin, end, (size,) = plugin.render_range_and_constants(input_sql)
    dimensions = plugin.render_dimension_columns()
    events = plugin.render_event_counts(input_sql, prefix, (begin, end), size)
    returned = (
        f"coalesce(lag({prefix}w) OVER (PARTITION BY {prefix}i{dimensions} ORDER BY {prefix}w) = {prefix}w - 1, "
        f"false) AS {prefix}r"
    )
    counts = f"count(*) AS {prefix}c, count(*) FILTER (WHERE {prefix}r) AS {prefix}k"
    grouped = f"SELECT {prefix}w{dimensions}, {counts} FROM (SELECT *, {returned} FROM {events}) GROUP BY ALL"  # noqa: S608
    partition = f"PARTITION BY {dimensions.removeprefix(', ')} " if dimensions else ""
    over = f"OVER ({partition}ORDER BY {prefix}w)"
    before = f"CASE WHEN lag({prefix}w) {over} = {prefix}w - 1 THEN lag({prefix}c) {over} END AS {prefix}b"
    source = f"(SELECT *, {before} FROM ({grouped}))"  # noqa: S608
    # Without events in the window before, the rates are 0 / 0.
    rate = f"coalesce({{0}} / CAST({prefix}b AS DOUBLE), CAST('NaN' AS DOUBLE))"
    values = [
        f"{prefix}c",
        f"{prefix}c - {prefix}k",
        rate.format(f"{prefix}k"),
        rate.format(f"({prefix}b - {prefix}k)"),
    ]
    return plugin.render_result_query(begin, size, prefix, values, source)


def _render_activity_engagement(plugin: ActivityPlugin, input_sql: Sql, prefix: NamePrefix) -> Sql:
    begin, end, (inner, outer) = plugin.render_range_and_constants(input_sql)
    counted = _render_event_counts_in_lookback(plugin, input_sql, prefix, (begin, end), (outer, inner))
    counts = (
        f"count(DISTINCT {prefix}i) FILTER (WHERE {prefix}o = {prefix}w) AS {prefix}c, count(DISTINCT {prefix}i) "
        f"AS {prefix}d"
    )
    grouped = f"(SELECT {prefix}w{plugin.render_dimension_columns()}, {counts} FROM {counted} GROUP BY ALL)"  # noqa: S608
    return plugin.render_result_query(
        begin, inner, prefix, [f"{prefix}c", f"{prefix}d", f"{prefix}c / CAST({prefix}d AS DOUBLE)"], grouped
    )


def _render_active_users_count(plugin: ActivityPlugin, input_sql: Sql, prefix: NamePrefix) -> Sql:
    """Render SQL that counts the ids with at least the required number of active periods in the lookback time."""
    begin, end, (lookback, period, least, size) = plugin.render_range_and_constants(input_sql)
    dimensions = plugin.render_dimension_columns()
    name, time = map(quote_name, plugin.columns)
    rows = (
        f"(SELECT {plugin.render_window_number(begin, size)} AS {prefix}w, "  # noqa: S608
        f"{plugin.render_window_number(begin, period)} AS {prefix}p, "
        f"kql_axis({time}) AS {prefix}x, {time} >= {begin} AS {prefix}v, {name} AS {prefix}i{dimensions} FROM "
        f"{input_sql} "
        f"WHERE {time} > {begin} - {lookback} AND {time} <= {end})"
    )
    window = (
        f"PARTITION BY {prefix}i{dimensions} ORDER BY {prefix}x RANGE BETWEEN (kql_axis({lookback}) - 0.5) PRECEDING"
    )
    periods = f"count(DISTINCT {prefix}p) OVER ({window} AND CURRENT ROW) AS {prefix}a"
    active = f"(SELECT *, {periods} FROM {rows})"  # noqa: S608
    grouped = (
        f"(SELECT {prefix}w{dimensions}, count(DISTINCT {prefix}i) AS {prefix}c FROM {active} "  # noqa: S608
        f"WHERE {prefix}v AND {prefix}a >= {least} GROUP BY ALL)"
    )
    return plugin.render_result_query(begin, size, prefix, [f"{prefix}c"], grouped)


def _render_session_counts(plugin: ActivityPlugin, input_sql: Sql, prefix: NamePrefix) -> Sql:
    """Render SQL that counts the sessions with an event in each window.

    A pause that is longer than the lookback time ends a session.
    """
    begin, end, (size, lookback) = plugin.render_range_and_constants(input_sql)
    dimensions = plugin.render_dimension_columns()
    name, time = map(quote_name, plugin.columns)
    over = f"OVER (PARTITION BY {prefix}i{dimensions} ORDER BY {prefix}x)"
    rows = (
        f"(SELECT {plugin.render_window_number(begin, size)} AS {prefix}w, kql_axis({time}) AS {prefix}x, "  # noqa: S608
        f"{name} AS {prefix}i{dimensions} "
        f"FROM {input_sql} WHERE {time} BETWEEN {begin} AND {end})"
    )
    starts = f"coalesce({prefix}x - lag({prefix}x) {over} > kql_axis({lookback}), true) AS {prefix}s"
    started = f"(SELECT *, {starts} FROM {rows})"  # noqa: S608
    numbered = f"(SELECT *, count(*) FILTER (WHERE {prefix}s) {over} AS {prefix}q FROM {started})"  # noqa: S608
    grouped = (
        f"(SELECT {prefix}w{dimensions}, count(DISTINCT ({prefix}i, {prefix}q)) AS {prefix}c FROM "  # noqa: S608
        f"{numbered} GROUP BY ALL)"
    )
    return plugin.render_result_query(begin, size, prefix, [f"{prefix}c"], grouped)


@dataclasses.dataclass(frozen=True)
class _ActivityPluginDefinition:
    """Definition of an activity plugin of ``evaluate``: its arguments, its result columns and its SQL.

    Attributes:
        constants: accepted numbers of constant arguments.
        results: names of the result columns.
        render: renders the SQL from the plugin's call, the SQL of the input rows, and a prefix for generated names.
    """

    constants: tuple[int, ...]
    results: tuple[str, ...]
    render: Callable[[ActivityPlugin, Sql, NamePrefix], Sql]


_PLUGINS = {
    "sliding_window_counts": _ActivityPluginDefinition((4,), ("Count", "Dcount"), _render_sliding_window_counts),
    "activity_counts_metrics": _ActivityPluginDefinition(
        (3,), ("count", "dcount", "new_dcount", "aggregated_dcount"), _render_activity_counts_metrics
    ),
    "activity_metrics": _ActivityPluginDefinition(
        (1, 3), ("dcount_values", "dcount_newvalues", "retention_rate", "churn_rate"), _render_activity_metrics
    ),
    "activity_engagement": _ActivityPluginDefinition(
        (2, 4), ("dcount_activities_inner", "dcount_activities_outer", "activity_ratio"), _render_activity_engagement
    ),
    "active_users_count": _ActivityPluginDefinition((6,), ("dcount",), _render_active_users_count),
    "session_count": _ActivityPluginDefinition((4,), ("count_sessions",), _render_session_counts),
}


def install_into_translator() -> None:
    """Add the plugins of this module to the operator ``evaluate``."""
    for name in _PLUGINS:
        add_plugin(name, _build_activity_parser(name))


def _build_activity_parser(plugin_name: str) -> PluginParser:
    def parse_plugin_call(
        node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None
    ) -> ir.Operator:
        if schema_clause is not None:
            raise unsupported_error(
                f"evaluate {plugin_name} with an output schema",
                "remove the schema after the colon",
                get_line_and_column(node),
            )
        return ActivityPlugin(
            **parse_timeline_plugin_fields(plugin_name, node, arguments, 2, _PLUGINS[plugin_name].constants)
        )

    return parse_plugin_call
