"""Conditions of alert rules: splits a rule's data into groups, and finds the groups that meet the condition."""

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from shared.alerts.models import Number
from shared.catalog.alert_rule_models import AlertCondition, AlertRule, Operator, Rows
from shared.catalog.durations import parse_stored_duration
from shared.telemetry.ports import ConnectionState
from shared.warm_queries.results import QueryResult

type GroupKey = tuple[tuple[str, str | None], ...]
"""Labels (names and values) that identify a group, as a sorted tuple."""

MAX_LABELS: Final = 4_000
"""Maximum total number of characters in the labels of a group, which are stored with each alert."""

_COMPARISONS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
}


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """Group of a rule's data, such as the rows of one device; each group has its own alert.

    Attributes:
        labels: names and values that identify the group within its rule; empty for a rule without groups.
        value: value that the condition compares. For a column: its value in the first matching row, or in the first row
            if none matches. For a row count: the number of rows. For an absence rule: seconds since the last message.
        matches: True if the group meets the rule's condition.
        connection: lookup (id in URLs) of the connection that an absence rule watches; None for a threshold rule.
        message_count: number of messages of this connection so far; None for a threshold rule.
    """

    labels: Mapping[str, str | None]
    value: Number | None
    matches: bool
    connection: str | None = None
    message_count: int | None = None

    @property
    def key(self) -> GroupKey:
        """Labels of the group as a tuple, which can be a dictionary key."""
        return to_group_key(self.labels)


class EvaluationError(Exception):
    """Raised if the condition of an alert rule cannot be evaluated; the message tells users the reason."""


def to_group_key(labels: Mapping[str, str | None]) -> GroupKey:
    """Convert the labels of a group to a sorted tuple, which can be a dictionary key."""
    return tuple(sorted(labels.items()))


def evaluate_threshold_rule_groups(rule: AlertRule, query_result: QueryResult) -> list[AlertGroup]:
    """Split the rows of a threshold rule's query into groups, and evaluate the condition for each group.

    Args:
        rule: alert rule of the kind threshold.
        query_result: result of the rule's query.

    Raises:
        EvaluationError: the result lacks a column of the rule, has too many rows, or has labels that are too long.
    """
    condition = rule.condition or AlertCondition(rows=Rows.ANY)
    types = {column.name: column.type for column in query_result.columns}
    for name in (*rule.group_by, *([condition.column] if condition.column else [])):
        if name not in types:
            raise EvaluationError(f"The query has no column {name!r}.")
    if query_result.truncated and (condition.column is not None or rule.group_by):
        raise EvaluationError(
            f"The query returns more than {len(query_result.rows)} rows; aggregate or filter its rows."
        )
    if condition.rows is not None:
        return _count_rows_by_group(rule, condition.rows, query_result.rows)
    to_number = (
        _finite_number_from_decimal_cell if types[str(condition.column)] == "decimal" else _finite_number_from_cell
    )
    return _compare_column_by_group(rule, condition, query_result.rows, to_number)


def _count_rows_by_group(rule: AlertRule, row_condition: Rows, rows: Sequence[Mapping[str, Any]]) -> list[AlertGroup]:
    """Return a group with its number of rows for each combination of labels, or one group for a rule without groups."""
    if not rule.group_by:
        return [AlertGroup({}, len(rows), bool(rows) is (row_condition is Rows.ANY))]
    groups: dict[GroupKey, AlertGroup] = {}
    for row in rows:
        labels = _build_group_labels(rule.group_by, row)
        key = to_group_key(labels)
        found = groups.get(key)
        groups[key] = AlertGroup(labels, 1 + int(found.value or 0) if found else 1, matches=True)
    return list(groups.values())


def _compare_column_by_group(
    rule: AlertRule,
    condition: AlertCondition,
    rows: Iterable[Mapping[str, Any]],
    to_number: Callable[[Any], Number | None],
) -> list[AlertGroup]:
    """Return a group for each combination of labels; a group matches if the condition holds in any of its rows."""
    compare = _COMPARISONS[condition.operator or Operator.GT]
    groups: dict[GroupKey, AlertGroup] = {}
    for row in rows:
        labels = _build_group_labels(rule.group_by, row)
        key = to_group_key(labels)
        found = groups.get(key)
        if found is not None and found.matches:
            continue
        value = to_number(row[str(condition.column)])
        matches = value is not None and compare(value, condition.value)
        if found is None or matches:
            groups[key] = AlertGroup(labels, value, matches)
    return list(groups.values())


def _build_group_labels(group_columns: Iterable[str], row: Mapping[str, Any]) -> dict[str, str | None]:
    labels = {name: _label_from_cell(row[name]) for name in group_columns}
    if sum(len(label or "") for label in labels.values()) > MAX_LABELS:
        raise EvaluationError(f"The values of the groupBy columns together have more than {MAX_LABELS} characters.")
    return labels


def _label_from_cell(cell: Any) -> str | None:
    """Convert a cell of a query result to the text of an alert's label; numbers and dynamic values become JSON."""
    return cell if cell is None or isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, sort_keys=True)


def _finite_number_from_cell(cell: Any) -> Number | None:
    """Return a cell that is a finite number in the range of a double; None for any other value."""
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    try:
        return cell if is_number and math.isfinite(cell) else None
    except OverflowError:
        return None


def _finite_number_from_decimal_cell(cell: Any) -> Number | None:
    """Convert a cell of the KQL type decimal, which the query engine writes as text; None if it is no finite number."""
    try:
        return _finite_number_from_cell(cell if isinstance(cell, int | float) else float(Decimal(str(cell))))
    except InvalidOperation:
        return None


def evaluate_absence_rule_groups(
    rule: AlertRule,
    enabled_connections: Iterable[str],
    states: Mapping[str, ConnectionState],
    rule_created_at: datetime,
    at: datetime,
) -> list[AlertGroup]:
    """Evaluate an absence rule, which fires if a connection sends no messages.

    Return a group for each enabled connection, with the seconds since the connection's last message.

    Args:
        rule: alert rule of the kind absence.
        enabled_connections: lookups (ids in URLs) of the enabled connections.
        states: message statistics, by connection.
        rule_created_at: creation time of the rule; a connection without any message is silent since this time.
        at: the current time.
    """
    after = parse_stored_duration(str(rule.after))
    known = set(enabled_connections)
    groups = []
    for connection in rule.connections:
        if connection in known:
            state = states.get(connection)
            last_message = None if state is None else state.last_message
            silence = max(at - (last_message or rule_created_at), timedelta(0))
            seconds = round(silence.total_seconds(), 3)
            message_count = 0 if state is None else state.messages_received
            groups.append(AlertGroup({"connection": connection}, seconds, silence >= after, connection, message_count))
    return groups
