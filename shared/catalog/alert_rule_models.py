"""Models of alert rules in the workspace document, and the checks between the fields of one rule."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
)

from shared.catalog import durations
from shared.catalog.fields import DECLARED, Lookup, Model, Name
from shared.catalog.problems import Violation
from shared.text_formats.json_comparison import is_same_json

MAX_TIME: Final = timedelta(days=366)
MIN_INTERVAL: Final = timedelta(seconds=15)
MAX_INTERVAL: Final = timedelta(days=1)
_MAX_NUMBER: Final = 1.7976931348623157e308
"""Largest finite number of 64 bits."""
_URL: Final = re.compile(r"https?://[!-~]+")
_DURATION: Final = WithJsonSchema(
    {"type": "string", "pattern": f"^{durations.DURATION_PATTERN}$", "maxLength": durations.MAX_DURATION}
)


@lru_cache(maxsize=1024)
def _parse_rule_duration(text: str) -> timedelta:
    """Parse a duration of an alert rule; results are cached, as each load of the catalog parses all durations."""
    return durations.parse_stored_duration(text)


def _validate_declared_duration(text: str, info: ValidationInfo) -> str:
    """Check a duration of a workspace document or request; accept a duration from the store unchanged."""
    if info.context == DECLARED:
        durations.parse_duration(text)
    return text


def _validate_interval(text: str) -> str:
    if not MIN_INTERVAL <= _parse_rule_duration(text) <= MAX_INTERVAL:
        raise ValueError("must be a duration from PT15S to P1D")
    return text


def _validate_hold_time(text: str) -> str:
    if not timedelta(0) <= _parse_rule_duration(text) <= MAX_TIME:
        raise ValueError("must be a duration from PT0S to P366D")
    return text


def _validate_positive_duration(text: str) -> str:
    if not timedelta(0) < _parse_rule_duration(text) <= MAX_TIME:
        raise ValueError("must be a positive duration of at most 366 days")
    return text


def _validate_runbook_url(text: str) -> str:
    if not _URL.fullmatch(text):
        raise ValueError("must be an http or https URL without spaces")
    if "@" in urlsplit(text).netloc:
        raise ValueError("must not contain a user name or a password")
    return text


def _validate_number(value: object) -> int | float:
    # A union of types would report an error for each type, with the names of the types in the field.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004  pydantic converts only this error
    if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
        raise ValueError("must be a finite 64-bit number")
    return value


_EXACT: Final = AfterValidator(_validate_declared_duration)
"""Declared durations have whole microseconds; stored ones can have a fraction of a microsecond, which is rounded."""

Interval = Annotated[str, _EXACT, AfterValidator(_validate_interval), _DURATION]
HoldTime = Annotated[str, _EXACT, AfterValidator(_validate_hold_time), _DURATION]
PositiveTime = Annotated[str, _EXACT, AfterValidator(_validate_positive_duration), _DURATION]
RunbookUrl = Annotated[str, StringConstraints(max_length=2048), AfterValidator(_validate_runbook_url)]
ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Number = Annotated[
    int | float,
    BeforeValidator(_validate_number),
    WithJsonSchema({"type": "number", "minimum": -_MAX_NUMBER, "maximum": _MAX_NUMBER}),
]
GroupBy = Annotated[tuple[ColumnName, ...], Field(max_length=16)]
WatchedConnections = Annotated[tuple[Lookup, ...], Field(max_length=1000)]


class Severity(StrEnum):
    """Severity of an alert."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class RuleKind(StrEnum):
    """Kind of an alert rule."""

    THRESHOLD = "threshold"
    ABSENCE = "absence"


class Operator(StrEnum):
    """Comparison operator with which an alert rule compares a column's value with a limit."""

    GT = "gt"
    GE = "ge"
    LT = "lt"
    LE = "le"
    EQ = "eq"
    NE = "ne"


class Rows(StrEnum):
    """Condition of an alert rule on the number of rows that its query returns."""

    ANY = "any"
    NONE = "none"


class AlertCondition(Model):
    """Condition of a threshold rule: either `column`, `operator` and `value` (a comparison), or only `rows`."""

    column: ColumnName | None = Field(None, description="Column of the query's result.")
    operator: Operator | None = None
    value: Number | None = None
    rows: Rows | None = Field(None, description="`any`: the query returns rows; `none`: it returns no row.")

    @model_serializer(mode="wrap")
    def _omit_null_properties(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


class AlertRuleFields(Model):
    """Fields of an alert rule, without its id (`lookup`)."""

    name: Name
    description: str | None = None
    severity: Severity
    enabled: bool = True
    surface: Lookup
    kind: RuleKind
    every: Interval = Field(description="Time between two evaluations, from PT15S to P1D.")
    hold_time: HoldTime = Field(
        "PT0S", alias="for", description="Time for which the condition must hold before the alert fires."
    )
    runbook_url: RunbookUrl | None = Field(None, alias="runbookUrl", description="Instructions for this alert.")
    query: Lookup | None = Field(None, description="Threshold: lookup of the warm query.")
    parameters: dict[str, Any] = Field({}, description="Threshold: values of the query's parameters.")
    time_range: PositiveTime | None = Field(
        None, alias="timeRange", description="Threshold: duration before the evaluation whose rows the query reads."
    )
    condition: AlertCondition | None = Field(None, description="Threshold: the condition of the alert.")
    group_by: GroupBy = Field(
        (), alias="groupBy", description="Threshold: columns; each combination of their values has its own alert."
    )
    connections: WatchedConnections = Field((), description="Absence: lookups of the watched connections.")
    after: PositiveTime | None = Field(
        None, description="Absence: time without a message after which the alert of a connection begins."
    )


class AlertRule(AlertRuleFields):
    """Alert rule: fires alerts while the rows of a query meet a condition, or while connections send no message."""

    lookup: Lookup

    @property
    def interval(self) -> timedelta:
        """Time between two evaluations of the alert rule."""
        return _parse_rule_duration(self.every)

    @property
    def hold_duration(self) -> timedelta:
        """Time for which the rule's condition must hold before its alert fires."""
        return _parse_rule_duration(self.hold_time)

    @model_serializer(mode="wrap")
    def _omit_properties_of_other_kind(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        others = KIND_MEMBERS[RuleKind.ABSENCE if self.kind is RuleKind.THRESHOLD else RuleKind.THRESHOLD]
        members = {name: value for name, value in serialize(self).items() if name not in others}
        return {"lookup": members.pop("lookup"), **members}


KIND_MEMBERS: Final = {
    RuleKind.THRESHOLD: ("query", "parameters", "timeRange", "condition", "groupBy", "time_range", "group_by"),
    RuleKind.ABSENCE: ("connections", "after"),
}
"""Properties that only one kind of alert rule has, with their names in documents and in code."""

_QUERY_USE: Final = ("query", "parameters", "timeRange", "condition", "groupBy")
"""Properties of a threshold rule that are checked against its query."""

_REQUIRED: Final = {RuleKind.THRESHOLD: ("query", "condition"), RuleKind.ABSENCE: ("connections", "after")}


def has_same_query_use(stored_rule: Mapping[str, Any] | None, rule: Mapping[str, Any]) -> bool:
    """Return whether an alert rule uses its query as the stored rule does, so that this use is not checked again.

    The query can be deleted or changed after the rule was stored. Callers must still be able to rename or disable the
    rule.

    Args:
        stored_rule: definition of the stored rule; None if the rule is new.
        rule: new definition of the rule.
    """
    return stored_rule is not None and all(is_same_json(stored_rule.get(name), rule.get(name)) for name in _QUERY_USE)


def iterate_rule_errors(rule: AlertRule) -> Iterator[Violation]:
    """Yield an error for each contradiction between fields of an alert rule, with the path of the invalid field."""
    for kind, names in KIND_MEMBERS.items():
        for field, info in AlertRule.model_fields.items():
            name, is_set = info.alias or field, bool(getattr(rule, field))
            if name in names and kind is not rule.kind and is_set:
                yield (name,), f"is allowed only with kind {kind}"
            if name in _REQUIRED[kind] and kind is rule.kind and not is_set:
                yield (name,), f"is required with kind {kind}"
    if rule.condition is not None:
        yield from ((("condition", *path), message) for path, message in _iterate_condition_errors(rule.condition))
        if rule.condition.rows is Rows.NONE and rule.group_by:
            yield ("groupBy",), "is not allowed with `rows: none`, because groups consist of rows"
    yield from _iterate_repeated_value_errors("groupBy", rule.group_by)
    yield from _iterate_repeated_value_errors("connections", rule.connections)


def _iterate_condition_errors(condition: AlertCondition) -> Iterator[Violation]:
    for name, value in (("column", condition.column), ("operator", condition.operator), ("value", condition.value)):
        if condition.rows is None and value is None:
            yield (name,), "is required unless `rows` is set"
        if condition.rows is not None and value is not None:
            yield (name,), "is not allowed together with `rows`"


def _iterate_repeated_value_errors(field: str, values: Sequence[str]) -> Iterator[Violation]:
    checked = set[str]()
    for index, value in enumerate(values):
        if value in checked:
            yield (field, index), "occurs more than once in this list"
        checked.add(value)
