"""Documentation of the replies of the handler modules `alert_rules` and `surfaces`."""

from datetime import datetime
from typing import Any, Final, Literal, NotRequired, TypedDict

from functions.conditions import CHANGE_CONDITIONS, WRITE_CONDITIONS
from functions.reply_docs.warm_queries import LOOKUP
from shared.catalog.alert_rule_models import Operator, Rows, RuleKind, Severity
from shared.http.operation_docs import DEFINITION, IDEMPOTENT, NO_CONTENT, DocumentedReply, OperationDocs


class RuleCondition(TypedDict):
    """Condition of a threshold rule: either `column`, `operator` and `value` (a comparison), or only `rows`.

    `rows` is `any` if the condition is that the query returns rows, and `none` if it returns no row.
    """

    column: NotRequired[str]
    operator: NotRequired[Operator]
    value: NotRequired[float]
    rows: NotRequired[Rows]


# `for` is a keyword, so it cannot be declared in a class.
_HoldTime = TypedDict("_HoldTime", {"for": str})


class _RuleMembers(TypedDict):
    etag: str
    lookup: str
    name: str
    description: str | None
    severity: Severity
    enabled: bool
    surface: str
    kind: RuleKind
    every: str
    runbookUrl: str | None
    query: NotRequired[str]
    parameters: NotRequired[dict[str, Any]]
    timeRange: NotRequired[str | None]
    condition: NotRequired[RuleCondition]
    groupBy: NotRequired[list[str]]
    connections: NotRequired[list[str]]
    after: NotRequired[str]
    state: Literal["ok", "pending", "firing", "error"]
    error: str | None
    lastEvaluatedAt: datetime | None
    nextEvaluationAt: datetime | None
    createdAt: datetime
    updatedAt: datetime
    editedBy: str


class AlertRuleDefinition(_RuleMembers, _HoldTime):
    """An alert rule as declared, with the result of its newest evaluation.

    `query`, `parameters`, `timeRange`, `condition` and `groupBy` belong to the kind `threshold`, `connections` and
    `after` to the kind `absence`. `etag` is the value for If-Match, including the quotes.
    """


class AlertRuleList(TypedDict):
    """A page of alert rules; `cursor` is present if another page follows."""

    rules: list[AlertRuleDefinition]
    cursor: NotRequired[str]


class TrialAlert(TypedDict):
    """A group of the alert rule's data; `wouldFire` states whether its alert would fire now."""

    labels: dict[str, str | None]
    value: float | None
    wouldFire: bool


class TrialEvaluation(TypedDict):
    """Result of a trial evaluation of an alert rule; `rows` counts rows of the query or, for `absence`, connections."""

    alerts: list[TrialAlert]
    rows: int
    error: str | None


PATH: Final = {"lookup": LOOKUP}
_SENT_RULE: Final = {
    "name": "Pressure too high",
    "description": None,
    "severity": "critical",
    "enabled": True,
    "surface": "cooling",
    "kind": "threshold",
    "every": "PT1M",
    "for": "PT5M",
    "runbookUrl": "https://wiki.example/pressure",
    "query": "pressure-5m",
    "parameters": {},
    "timeRange": "PT15M",
    "condition": {"column": "avgPressure", "operator": "gt", "value": 6.5},
    "groupBy": ["DeviceId"],
}
_RULE: Final = {
    **_SENT_RULE,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "lookup": "pressure-high",
    "state": "firing",
    "error": None,
    "lastEvaluatedAt": "2026-01-05T08:10:07.000000Z",
    "nextEvaluationAt": "2026-01-05T08:11:07.000000Z",
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
    "editedBy": "editor@plant-a.example",
}

RULES_LISTED = OperationDocs((DocumentedReply(200, "The alert rules.", AlertRuleList, {"rules": [_RULE]}),))
RULE_READ = OperationDocs(
    (DocumentedReply(200, "The alert rule.", AlertRuleDefinition, _RULE, headers=DEFINITION),), path=PATH
)
RULE_PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed rule.", AlertRuleDefinition, _RULE, headers=DEFINITION),
        DocumentedReply(201, "The new rule.", AlertRuleDefinition, _RULE, headers=DEFINITION),
    ),
    error_statuses=(412, 503),
    example=_SENT_RULE,
    path=PATH,
    headers=WRITE_CONDITIONS,
)
RULE_DELETED = OperationDocs((NO_CONTENT,), error_statuses=(412,), path=PATH, headers=CHANGE_CONDITIONS)

_TRIAL: Final = {
    "alerts": [
        {"labels": {"DeviceId": "pump-1"}, "value": 7.25, "wouldFire": True},
        {"labels": {"DeviceId": "pump-2"}, "value": 5.5, "wouldFire": False},
    ],
    "rows": 2,
    "error": None,
}
RULE_EVALUATED = OperationDocs(
    (DocumentedReply(200, "The evaluation.", TrialEvaluation, _TRIAL),), path=PATH, headers=IDEMPOTENT
)


class SurfaceDefinition(TypedDict):
    """A surface with the lookups of its connections and queries.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    lookup: str
    name: str
    description: str | None
    connections: list[str]
    queries: list[str]
    createdAt: datetime
    updatedAt: datetime
    editedBy: str


class SurfaceList(TypedDict):
    """A page of surfaces; `cursor` is present if another page follows."""

    surfaces: list[SurfaceDefinition]
    cursor: NotRequired[str]


_SENT_SURFACE: Final = {"name": "Cooling water", "description": "The cooling loop", "connections": ["pump-rig"]}
_SURFACE: Final = {
    **_SENT_SURFACE,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "lookup": "cooling",
    "queries": ["pressure-5m"],
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
    "editedBy": "admin@plant-a.example",
}

SURFACES_LISTED = OperationDocs((DocumentedReply(200, "The surfaces.", SurfaceList, {"surfaces": [_SURFACE]}),))
SURFACE_READ = OperationDocs(
    (DocumentedReply(200, "The surface.", SurfaceDefinition, _SURFACE, headers=DEFINITION),), path=PATH
)
SURFACE_PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed surface.", SurfaceDefinition, _SURFACE, headers=DEFINITION),
        DocumentedReply(201, "The new surface.", SurfaceDefinition, _SURFACE, headers=DEFINITION),
    ),
    error_statuses=(409, 412),
    example=_SENT_SURFACE,
    path=PATH,
    headers=WRITE_CONDITIONS,
)
SURFACE_DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), path=PATH, headers=CHANGE_CONDITIONS)
