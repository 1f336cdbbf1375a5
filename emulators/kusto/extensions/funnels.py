"""Plugins of ``evaluate`` that track ids, such as user ids, over time.

``funnel_sequence`` and ``funnel_sequence_completion`` count the ids that pass through a sequence of states.
``new_activity_metrics`` counts how many new ids of a time window occur again in each later window.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.activity import TimelinePlugin
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import (
    ExpressionReplacer,
    find_columns_of_readable_tables,
    replace_query_expressions,
)
from emulators.kusto.extensions.plugins import add_plugin, check_column_exists
from emulators.kusto.extensions.several_results import build_operators_of_selected_result
from emulators.kusto.extensions.sql import SQL_TYPES, NamePrefix, Sql, quote_name, quote_text, render_expression
from emulators.kusto.extensions.tree import ParseNode, get_line_and_column, get_rule_name
from emulators.kusto.extensions.window_plan import choose_unused_prefix

SUPPORTED: tuple[str, ...] = (
    "evaluate funnel_sequence_completion",
    "evaluate funnel_sequence",
    "evaluate new_activity_metrics (windows of a fixed size, and weeks)",
)

macros: tuple[str, ...] = (
    # An element of a dynamic array of timespans: a number of 100 ns, or a text.
    (
        "CREATE OR REPLACE MACRO kql_period(e) AS CASE WHEN TRY_CAST(e AS BIGINT) IS NOT NULL "
        "THEN to_microseconds(CAST(e AS BIGINT) // 10) ELSE CAST(e AS INTERVAL) END"
    ),
)
_FUNNEL_ARGUMENTS = 8
_MOST_SAMPLES = 128
_STATE_KINDS = frozenset({"string", "bool", "int", "long", "real", "guid"})
"""Kusto types whose literals are written as ``tostring()`` returns them."""
_NO_STATES = ir.Literal("[]", "dynamic")


@dataclasses.dataclass(frozen=True)
class Funnel(TimelinePlugin):
    """Plugin that counts the ids that pass through a sequence of states.

    Attributes:
        state: name of the column that contains the states.
        sequence: array of the states in their order.
        periods: for ``funnel_sequence``: maximum time between two consecutive states; for
            ``funnel_sequence_completion``: array of maximum times since the first state.
        result: result columns of ``funnel_sequence``: ``prev`` and ``next`` (state before and after the sequence), or
            one of them; empty for ``funnel_sequence_completion``.
    """

    state: str = ""
    sequence: ir.Expr = _NO_STATES
    periods: ir.Expr = _NO_STATES
    result: tuple[str, ...] = ()
    reads_input_only: ClassVar[bool] = True

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that counts the ids that pass through the sequence of states in each time window."""
        self.check_columns_exist(input_columns)
        check_column_exists(self.state, input_columns)
        states, p = (
            _parse_funnel_states(self.sequence),
            choose_unused_prefix([*input_columns, *self.infer_output_columns(input_columns)]),
        )
        begin, end, size = self.render_constants()
        name, time = map(quote_name, self.columns)
        state = translate.render_kql_tostring(ir.ColumnRef(self.state))
        events = (
            f"(SELECT {name} AS {p}i, {time} AS {p}t, {state} AS {p}s, "  # noqa: S608
            f"{self.render_window_number(begin, size)} AS {p}w FROM {input_sql} "
            f"WHERE {time} >= {begin} AND {time} < {end})"
        )
        if self.result:
            return self._render_counts_by_previous_and_next_state(p, events, states)
        return self._render_completion_counts(p, events, states)

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: timeline column and results."""
        del input_columns
        if self.result:
            return [self.columns[1], *self.result, "dcount", "samples"]
        return [self.columns[1], self.state, "Period", "dcount"]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "Funnel":
        """Return a copy of the plugin with ``substitute`` applied to its constants, states and periods."""
        return dataclasses.replace(
            self,
            constants=tuple(map(substitute, self.constants)),
            sequence=substitute(self.sequence),
            periods=substitute(self.periods),
        )

    def _render_ids_by_reached_state(
        self, prefix: NamePrefix, events: Sql, states: Sequence[str], time_condition: Sql
    ) -> list[Sql]:
        """Return one SQL subquery for each state; it yields the ids that reached this state in the required order.

        Its columns are id, time window, time of the first state, and time of this state. ``time_condition`` is an SQL
        condition for two consecutive states.
        """
        first = (
            f"(SELECT DISTINCT {prefix}i, {prefix}w, {prefix}t AS {prefix}b, {prefix}t FROM {events} "  # noqa: S608
            f"WHERE {prefix}s = {quote_text(states[0])})"
        )
        chain = [first]
        for before, state in pairwise(states):
            later = "<" if before == state else "<="
            chain.append(
                f"(SELECT c.{prefix}i, c.{prefix}w, c.{prefix}b, min(e.{prefix}t) AS {prefix}t FROM "  # noqa: S608
                f"{chain[-1]} AS c JOIN {events} AS e "
                f"ON e.{prefix}i = c.{prefix}i AND c.{prefix}t {later} e.{prefix}t AND e.{prefix}s = "
                f"{quote_text(state)} AND {time_condition} "
                "GROUP BY ALL)"
            )
        return chain

    def _render_completion_counts(self, prefix: NamePrefix, events: Sql, states: Sequence[str]) -> Sql:
        begin, _, size = self.render_constants()
        time, state, period, count = map(quote_name, self.infer_output_columns([]))
        periods = f"(SELECT unnest({_render_period_limits(self.periods)}) AS {prefix}p)"
        parts = [
            f"SELECT {prefix}w, {index} AS {prefix}k, {quote_text(name)} AS {prefix}n, {prefix}p, "  # noqa: S608
            f"count(DISTINCT {prefix}i) FILTER "
            f"(WHERE {prefix}t - {prefix}b <= {prefix}p) AS {prefix}c FROM {reached}, {periods} GROUP BY ALL"
            for index, (name, reached) in enumerate(
                zip(states, self._render_ids_by_reached_state(prefix, events, states, "true"), strict=True)
            )
        ]
        return (
            f"SELECT {begin} + {size} * {prefix}w AS {time}, {prefix}n AS {state}, {prefix}p AS "  # noqa: S608
            f"{period}, {prefix}c AS {count} "
            f"FROM ({' UNION ALL '.join(parts)}) ORDER BY {prefix}w, {prefix}p, {prefix}k"
        )

    def _render_counts_by_previous_and_next_state(self, prefix: NamePrefix, events: Sql, states: Sequence[str]) -> Sql:
        """Return SQL that counts the ids with the whole sequence, by the state before and after the sequence.

        ``events`` is SQL of the input rows; ``prefix`` begins the names of all generated columns.
        """
        begin, _, size = self.render_constants()
        limit = f"e.{prefix}t - c.{prefix}t <= {render_expression(self.periods)}"
        whole = self._render_ids_by_reached_state(prefix, events, states, limit)[-1]
        before = (
            f"(SELECT arg_max(x.{prefix}s, x.{prefix}t) FROM {events} AS x WHERE x.{prefix}i = "  # noqa: S608
            f"m.{prefix}i AND x.{prefix}t < m.{prefix}b "
            f"AND m.{prefix}b - x.{prefix}t <= {render_expression(self.periods)})"
        )
        after = (
            f"(SELECT arg_min(x.{prefix}s, x.{prefix}t) FROM {events} AS x WHERE x.{prefix}i = "  # noqa: S608
            f"m.{prefix}i AND x.{prefix}t > m.{prefix}t "
            f"AND x.{prefix}t - m.{prefix}t <= {render_expression(self.periods)})"
        )
        sides = {"prev": before, "next": after}
        # A missing state is the empty string, or null for other types.
        kind = SQL_TYPES.get(infer_type(ir.ColumnRef(self.state)) or "", "VARCHAR")
        form = "coalesce({}, '')" if kind in ("VARCHAR", "JSON") else f"CAST({{}} AS {kind})"
        chosen = "".join(f", {form.format(sides[name])} AS {quote_name(name)}" for name in self.result)
        grouped = "".join(f", {quote_name(name)}" for name in self.result)
        samples = f"to_json(list_slice(list(DISTINCT {prefix}i), 1, {_MOST_SAMPLES}))"
        return (
            f"SELECT {begin} + {size} * {prefix}w AS {quote_name(self.columns[1])}{grouped}, "  # noqa: S608
            f'count(DISTINCT {prefix}i) AS "dcount", {samples} AS "samples" '
            f"FROM (SELECT m.{prefix}i, m.{prefix}w{chosen} FROM {whole} AS m) GROUP BY {prefix}w{grouped} ORDER "
            f"BY {prefix}w, 2 DESC"
        )


def _parse_funnel_states(expr: ir.Expr) -> list[str]:
    """Return the states of a funnel, from an array of literals or from a ``let`` statement that contains the array."""
    if isinstance(expr, ir.LetRef):
        return _parse_funnel_states(expr.value)
    states = _find_literal_array_elements(expr)
    if not states:
        raise semantic_error(
            "funnel_sequence() or funnel_sequence_completion(): the sequence must be a constant array of states, such "
            "as dynamic(['a', 'b'])",
            inner="SEM0219",
        )
    return states


def _find_literal_array_elements(expr: ir.Expr) -> list[str] | None:
    """Return the elements of an array of literals; None if ``expr`` is another expression."""
    if isinstance(expr, ir.FunctionCall) and expr.name == "pack_array":
        literals = [each for each in expr.args if isinstance(each, ir.Literal) and _is_state_literal(each)]
        return [str(each.value) for each in literals] if len(literals) == len(expr.args) else None
    try:
        found = json.loads(expr.value) if isinstance(expr, ir.Literal) and isinstance(expr.value, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list):
        return None
    return [each if isinstance(each, str) else json.dumps(each) for each in found]


def _is_state_literal(literal: ir.Literal) -> bool:
    return literal.kind in _STATE_KINDS and literal.value is not None


def _render_period_limits(expr: ir.Expr) -> Sql:
    """Return SQL that converts an array of periods, such as ``[1m, 1h]``, to a list of maximum durations."""
    return f"list_transform(CAST({render_expression(expr)} AS VARCHAR[]), lambda _e: kql_period(_e))"


def _parse_funnel(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None, *, plugin_name: str
) -> list[ir.Operator]:
    position = get_line_and_column(node)
    if schema_clause is not None:
        raise unsupported_error(
            f"evaluate {plugin_name} with an output schema", "remove the schema after the colon", position
        )
    lowered = [reader.lower_expr(each) for each in arguments]
    state = {"funnel_sequence": 6, "funnel_sequence_completion": 5}[plugin_name]
    columns = [lowered[index] for index in (0, 1, state)] if len(lowered) == _FUNNEL_ARGUMENTS else []
    if not columns or not all(isinstance(each, ir.ColumnRef) for each in columns):
        fault = f"evaluate {plugin_name}() requires 3 columns and 5 constants"
        raise semantic_error(fault, inner="SEM0219", position=position)
    named = tuple(each.name for each in columns)
    begin, end = lowered[2:4]
    if plugin_name == "funnel_sequence_completion":
        constants = (begin, end, lowered[4])
        return [Funnel(plugin_name, named[:2], constants, (), named[2], lowered[6], lowered[7])]
    constants = (begin, end, lowered[5])
    results = [("prev", "next"), ("prev",), ("next",)]
    funnels = [
        Funnel(plugin_name, named[:2], constants, (), named[2], lowered[7], lowered[4], each) for each in results
    ]
    return build_operators_of_selected_result(node, [("", functools.partial(list, [each])) for each in funnels])


_METRICS = ("dcount_new_values", "dcount_retained_values", "dcount_churn_values", "retention_rate", "churn_rate")
_METRICS_ARGUMENTS = 5


@dataclasses.dataclass(frozen=True)
class NewActivityMetrics(TimelinePlugin):
    """Plugin ``new_activity_metrics``, which counts how many new ids of a time window occur again in each later window.

    Attributes:
        optional: arguments after the window size: a cohort, dimensions, and a table, in the order of the call.
        lookback: query that returns the ids of earlier periods; None if the call has no such argument.
        by_week: True if the windows are calendar weeks, which begin on Sunday.
    """

    optional: tuple[ir.Expr, ...] = ()
    lookback: ir.Query | None = None
    by_week: bool = False

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the plugin as SQL that yields one row for each pair of a time window and the same or a later window.

        A window without new ids is never the first window of a pair.
        """
        cohort, dimensions = self._split_cohort_and_dimensions(input_columns)
        plugin = dataclasses.replace(self, dimensions=dimensions)
        plugin.check_columns_exist(input_columns)
        p = choose_unused_prefix([*input_columns, *self.infer_output_columns(input_columns)])
        since, end, size = plugin.render_constants()
        begin = render_expression(ir.FunctionCall("startofweek", self.constants[:1])) if self.by_week else since
        name, time = map(quote_name, self.columns)
        grouped = plugin.render_dimension_columns()
        events = (
            f"(SELECT DISTINCT {plugin.render_window_number(begin, size)} AS {p}w, {name} AS {p}i{grouped} "  # noqa: S608
            f"FROM {input_sql} WHERE {time} BETWEEN {since} AND {end})"
        )
        earlier = self._render_lookback_ids()
        known = f"{p}i IN ({earlier})" if earlier else "false"
        first = (
            f"(SELECT *, CASE WHEN {known} THEN -1 ELSE min({p}w) OVER (PARTITION BY {p}i{grouped}) END AS {p}f "  # noqa: S608
            f"FROM {events})"
        )
        last = f"CAST(floor((kql_axis({end}) - kql_axis({begin})) / kql_axis({size})) AS BIGINT)"
        new = f"(SELECT {p}f AS {p}a, count(DISTINCT {p}i) AS {p}n{grouped} FROM {first} WHERE {p}f >= 0 GROUP BY ALL)"  # noqa: S608
        pairs = f"(SELECT *, unnest(generate_series({p}a, {last})) AS {p}b FROM {new})"  # noqa: S608
        same = "".join(f" AND c.{quote_name(each)} IS NOT DISTINCT FROM e.{quote_name(each)}" for each in dimensions)
        shown = "".join(f", c.{quote_name(each)}" for each in dimensions)
        counts = (
            f"count(e.{p}i) FILTER (WHERE e.{p}f > c.{p}a OR c.{p}a = c.{p}b AND e.{p}f = c.{p}a) AS {p}v, "
            f"count(e.{p}i) FILTER (WHERE e.{p}f = c.{p}a) AS {p}r"
        )
        joined = (
            f"(SELECT c.{p}a, c.{p}b, c.{p}n{shown}, {counts} FROM {pairs} AS c LEFT JOIN {first} AS e "  # noqa: S608
            f"ON e.{p}w = c.{p}b{same} GROUP BY ALL)"
        )
        values = [f"{begin} + {size} * {p}a", f"{begin} + {size} * {p}b", *map(quote_name, dimensions)]
        share = f"{{0}} / CAST({p}n AS DOUBLE)"
        values += [f"{p}v", f"{p}r", f"{p}n - {p}r", share.format(f"{p}r"), share.format(f"({p}n - {p}r)")]
        named = ", ".join(
            f"{value} AS {quote_name(each)}"
            for value, each in zip(values, self.infer_output_columns(input_columns), strict=True)
        )
        where = "" if cohort is None else f" WHERE {begin} + {size} * {p}a = {render_expression(cohort)}"
        return f"SELECT {named} FROM {joined}{where} ORDER BY {p}a, {p}b{grouped}"  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the output columns: starts of both windows, dimensions and metrics."""
        _, dimensions = self._split_cohort_and_dimensions(input_columns)
        return [f"from_{self.columns[1]}", f"to_{self.columns[1]}", *dimensions, *_METRICS]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "NewActivityMetrics":
        """Return a copy of the plugin with ``substitute`` applied to its constants, other arguments and lookback."""
        lookback = None if self.lookback is None else replace_query_expressions(self.lookback, substitute)
        return dataclasses.replace(
            self,
            constants=tuple(map(substitute, self.constants)),
            optional=tuple(map(substitute, self.optional)),
            lookback=lookback,
        )

    def _split_cohort_and_dimensions(self, input_columns: Sequence[str]) -> tuple[ir.Expr | None, tuple[str, ...]]:
        """Split the optional arguments into the cohort (None if it is missing) and the dimension columns."""
        cohort: ir.Expr | None = None
        dimensions = []
        for index, each in enumerate(self.optional):
            if isinstance(each, ir.ColumnRef | ir.LetRef) and each.name in input_columns:
                dimensions.append(each.name)
            elif index == 0 and not isinstance(each, ir.ColumnRef):
                cohort = each
            else:
                raise semantic_error(f"evaluate {self.plugin}(): a dimension must be a column", inner="SEM0219")
        return cohort, tuple(dimensions)

    def _render_lookback_ids(self) -> Sql:
        if self.lookback is None:
            return ""
        known = find_columns_of_readable_tables()
        columns = schema.output_columns(self.lookback, known)
        check_column_exists(self.columns[0], columns)
        return f"SELECT {quote_name(self.columns[0])} FROM ({translate.to_sql(self.lookback, known)})"  # noqa: S608


def _parse_new_activity_metrics(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None
) -> ir.Operator:
    plugin, position = "new_activity_metrics", get_line_and_column(node)
    if schema_clause is not None:
        raise unsupported_error(
            f"evaluate {plugin} with an output schema", "remove the schema after the colon", position
        )
    lookback = None
    if len(arguments) > _METRICS_ARGUMENTS and get_rule_name(reader.unparenthesize(arguments[-1])) == "PipeExpression":
        lookback, arguments = reader.lower_query_node(arguments[-1]), arguments[:-1]
    lowered = [reader.lower_expr(each) for each in arguments]
    if len(lowered) < _METRICS_ARGUMENTS or not all(isinstance(each, ir.ColumnRef) for each in lowered[:2]):
        fault = f"evaluate {plugin}() requires 2 columns and 3 constants"
        raise semantic_error(fault, inner="SEM0219", position=position)
    by_week = isinstance(lowered[4], ir.Literal) and lowered[4].value == "week"
    if by_week:
        lowered[4] = ir.Literal("7d", "timespan")
    elif isinstance(lowered[4], ir.Literal) and lowered[4].kind == "string":
        raise unsupported_error(
            f"evaluate {plugin} with windows of months or years", "use week, or a timespan such as 30d", position
        )
    columns = tuple(each.name for each in lowered[:2])
    return NewActivityMetrics(plugin, columns, tuple(lowered[2:5]), (), tuple(lowered[5:]), lookback, by_week)


def _patch_table_names_in_lookbacks(
    library_function: Callable[[ir.Query, set[str]], ir.Query],
) -> Callable[[ir.Query, set[str]], ir.Query]:
    """Patch the library so that the last argument of ``new_activity_metrics`` can be the name of a table."""
    return lambda query, names: _convert_table_arguments_to_lookbacks(library_function(query, names), names)


def _convert_table_arguments_to_lookbacks(query: ir.Query, table_names: set[str]) -> ir.Query:
    """Return a copy of a query in which each ``new_activity_metrics`` reads its lookback ids from a query.

    If the last argument of the plugin is one of ``table_names`` (tables that ``let`` statements declare), a lookback
    query that reads this table replaces the argument.
    """
    operators: list[ir.Operator] = []
    for each in query.operators:
        last = each.optional[-1] if isinstance(each, NewActivityMetrics) and each.optional else None
        if isinstance(each, NewActivityMetrics) and isinstance(last, ir.ColumnRef) and last.name in table_names:
            lookback = ir.Query(ir.TableRef(last.name))
            operators.append(dataclasses.replace(each, optional=each.optional[:-1], lookback=lookback))
        else:
            operators.append(each)
    return dataclasses.replace(query, operators=operators)


def install_into_translator() -> None:
    """Add ``funnel_sequence``, ``funnel_sequence_completion`` and ``new_activity_metrics`` to ``evaluate``."""
    for name in ("funnel_sequence", "funnel_sequence_completion"):
        add_plugin(name, functools.partial(_parse_funnel, plugin_name=name))
    add_plugin("new_activity_metrics", _parse_new_activity_metrics)
    replace_attribute(lower, "_resolve_in_subqueries", _patch_table_names_in_lookbacks)
