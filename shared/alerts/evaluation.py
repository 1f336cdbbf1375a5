"""Evaluation of alert rules, and checks of a rule against its warm query (saved KQL query) when it is written.

An evaluation reads the data of a rule, and evaluates the condition for each group of the data. The checks cover
parameters, time range and columns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.alerts.conditions import (
    AlertGroup,
    EvaluationError,
    evaluate_absence_rule_groups,
    evaluate_threshold_rule_groups,
)
from shared.catalog.alert_rule_checks import iterate_parameter_and_time_range_errors
from shared.catalog.alert_rule_models import AlertRule, RuleKind
from shared.catalog.durations import parse_stored_duration
from shared.catalog.kql_text import build_output_schema_hint
from shared.catalog.models import WarmQuery
from shared.catalog.problems import DocumentPath, Violation, format_path
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import FieldError, Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.ports import ConnectionState, ConnectionStateStore
from shared.validation.names import find_nearest_name
from shared.warm_queries.columns import ColumnsOrError, QueryColumns
from shared.warm_queries.results import QueryResult
from shared.warm_queries.service import MAX_LIMIT, WarmQueries

_CELL_SIZE: Final = 16
"""Assumed size of one row; decides whether the rows are evaluated in a worker thread."""


@dataclass(frozen=True, slots=True)
class ConnectionData:
    """Data for absence rules, which fire if a connection sends no messages.

    Attributes:
        enabled: lookups (ids in URLs) of the enabled connections.
        states: message statistics, by connection.
        at: time at which the data was read.
    """

    enabled: frozenset[str]
    states: Mapping[str, ConnectionState]
    at: datetime


type RuleData = QueryResult | ConnectionData


class RuleEvaluation:
    """Evaluates the conditions of alert rules without changing any state.

    Args:
        queries: executes warm queries (saved KQL queries).
        connection_states: statistics of connections.
        runtime: clock and worker threads.
    """

    def __init__(
        self, queries: WarmQueries, connection_states: ConnectionStateStore, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._queries = queries
        self._connection_states = connection_states
        self._runtime = runtime

    async def read_data(self, rule: AlertRule, catalog: Catalog) -> RuleData:
        """Read the data that an alert rule evaluates: rows of its query, or states of connections.

        Rules that have the same query, parameters and time range can share the data. Only an approved query is
        executed.

        Raises:
            EvaluationError: the query is missing, a draft, or fails; the times of the last messages cannot be read.
        """
        try:
            if rule.kind is RuleKind.ABSENCE:
                return await self._read_connection_data(catalog)
            return await self._read_rows(rule, catalog)
        except WorkspaceError as error:
            raise EvaluationError(_describe_evaluation_error(rule, error)) from error

    async def evaluate_groups(self, entry: CatalogEntry[AlertRule], data: RuleData) -> list[AlertGroup]:
        """Evaluate the condition of an alert rule for each group of its data.

        Args:
            entry: alert rule with its creation time.
            data: result of :meth:`read_data`.

        Raises:
            EvaluationError: the condition does not fit the data.
        """
        rule = entry.value
        if isinstance(data, ConnectionData):
            return evaluate_absence_rule_groups(rule, data.enabled, data.states, entry.created_at, data.at)
        size = len(data.rows) * _CELL_SIZE
        return await self._runtime.run_in_thread_if_large(size, evaluate_threshold_rule_groups, rule, data)

    async def _read_rows(self, rule: AlertRule, catalog: Catalog) -> QueryResult:
        if rule.query not in catalog.queries:
            raise EvaluationError(f"The warm query {rule.query!r} does not exist.")
        time_range = None if rule.time_range is None else parse_stored_duration(rule.time_range)
        return await self._queries.execute(
            str(rule.query), time_range, MAX_LIMIT, rule.parameters, "parameters.{}".format, use_cache=False
        )

    async def _read_connection_data(self, catalog: Catalog) -> ConnectionData:
        states = await self._connection_states.load_states_by_connection()
        enabled = frozenset(lookup for lookup, stored in catalog.connections.items() if stored.value.enabled)
        return ConnectionData(enabled, states, self._runtime.now())


def _describe_evaluation_error(rule: AlertRule, error: WorkspaceError) -> str:
    """Return the reason why the data of a rule cannot be read, for users."""
    if error.code == "QUERY_NOT_APPROVED":
        return f"The warm query {rule.query!r} is a draft; it must be approved first."
    return error.detail


async def list_rule_errors_against_query(
    rule: AlertRule, query: WarmQuery, columns: QueryColumns, *, is_query_readable: bool
) -> list[FieldError]:
    """Check that parameters, time range and columns of a threshold rule fit its query; return the errors of the rule.

    If the query engine does not return the columns, the errors of parameters and time range are still returned.

    Args:
        rule: a rule whose own fields are valid.
        query: saved KQL query of the rule, approved or not.
        columns: gets the result columns of queries from the engine.
        is_query_readable: whether the caller may read the query; if not, the errors contain nothing of its text and its
            columns, and only the parameter names that the rule has.

    Raises:
        WorkspaceError: if the query engine does not return the columns, and the rule has no other error.
    """
    errors = list(iterate_parameter_and_time_range_errors(rule, query, is_query_readable=is_query_readable))
    result = await columns.resolve_columns_or_error(query)
    try:
        errors += iterate_column_errors(rule, query, result, is_query_readable=is_query_readable)
    except WorkspaceError:
        if not errors:
            raise
    return [FieldError(format_path(path), message) for path, message in errors]


def iterate_column_errors(
    rule: AlertRule, query: WarmQuery, result: ColumnsOrError, *, is_query_readable: bool
) -> Iterator[Violation]:
    """Yield an error for each column that a threshold rule uses, but that its query does not return.

    If the query engine rejects the query, yield only an error about the query.

    Args:
        rule: a rule whose own fields are valid.
        query: saved KQL query of the rule, approved or not.
        result: result columns of the query, or the error of the query engine.
        is_query_readable: whether the caller may read the query; if not, the errors contain nothing of its text and its
            columns.

    Raises:
        WorkspaceError: the error of the query engine, unless the engine rejects the query.
    """
    if isinstance(result, WorkspaceError):
        if result.kind is not Kind.INVALID:
            raise result
        reason = f": {result.detail}" if is_query_readable else ""
        yield ("query",), f"the query engine rejects this query{reason}"
        return
    names = [column.name for column in result]
    for path, name in _iterate_used_columns(rule):
        if name not in names:
            hint = ""
            if is_query_readable:
                hint = _format_column_suggestion(name, names) + build_output_schema_hint(query.kql)
            yield path, f"is not a column of the query{hint}"


def _iterate_used_columns(rule: AlertRule) -> Iterator[tuple[DocumentPath, str]]:
    if rule.condition is not None and rule.condition.column is not None:
        yield ("condition", "column"), rule.condition.column
    yield from ((("groupBy", index), name) for index, name in enumerate(rule.group_by))


def _format_column_suggestion(unknown_name: str, column_names: list[str]) -> str:
    nearest = find_nearest_name(unknown_name, column_names)
    return f"; did you mean `{nearest}`?" if nearest else f"; its columns are {', '.join(column_names)}"
