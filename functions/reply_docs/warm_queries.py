"""Documentation of the replies of the handler modules `warm_queries` and `warm_query_definitions`."""

from datetime import datetime
from typing import Any, Final, NotRequired, TypedDict

from functions.conditions import CHANGE_CONDITIONS, KNOWN_VERSION, WRITE_CONDITIONS
from functions.reply_docs.workspace_document import DocumentWarning
from shared.catalog.models import LOOKUP_PATTERN, ParameterType
from shared.http.operation_docs import (
    BYTES_FORM,
    ETAG,
    IDEMPOTENT,
    NO_CONTENT,
    NOT_MODIFIED,
    STATE,
    TEXT_FORM,
    DocumentedReply,
    OperationDocs,
)


class Governance(TypedDict):
    """Approval of an executed query: the principal who approved it, and the time; null for an ad-hoc query."""

    queryApprovedBy: str | None
    queryApprovedAt: datetime | None


class QueryColumn(TypedDict):
    """Name and Kusto type of a column of a query's result."""

    name: str
    type: str


class Visualization(TypedDict):
    """Properties of the operator `render` of a query; a property that the query does not state is null."""

    visualization: str
    title: str | None
    xColumn: str | None
    series: list[str] | None
    yColumns: list[str] | None
    anomalyColumns: list[str] | None
    xTitle: str | None
    yTitle: str | None
    xAxis: str | None
    yAxis: str | None
    legend: str | None
    ySplit: str | None
    accumulate: bool
    kind: str | None
    yMin: float | None
    yMax: float | None
    xMin: Any
    xMax: Any


class QueryAnswer(TypedDict):
    """Result of a query; `visualization` is present if the query ends with the operator `render`."""

    query: str
    executedAt: datetime
    results: list[dict[str, Any]]
    governance: Governance
    columns: list[QueryColumn]
    rowCount: int
    truncated: bool
    visualization: NotRequired[Visualization]
    executionTimeMs: float
    fromCache: NotRequired[bool]
    asOf: NotRequired[datetime]


class QuerySchema(TypedDict):
    """Columns of a query's result."""

    columns: list[QueryColumn]


class DeclaredParameter(TypedDict):
    """Declared parameter of a query; it is required if it has no default."""

    name: str
    type: ParameterType
    default: NotRequired[Any]


class QueryDecisionSignature(TypedDict):
    """Electronic signature of a query's decision. `recordHash` is the SHA-256 of `kql` and `parameters` (RFC 8785)."""

    userId: str
    printedName: str
    meaning: str
    statement: str | None
    signedAt: datetime
    authTime: datetime
    authMethods: list[str]
    recordHash: str


class QueryApproval(TypedDict):
    """Approval of a query: principal, time, and signature if the approval was signed."""

    approvedBy: str
    approvedAt: datetime
    signature: NotRequired[QueryDecisionSignature]


class QueryRejection(TypedDict):
    """Rejection of a query's draft: principal, time, reason, and signature if the rejection was signed."""

    rejectedBy: str
    rejectedAt: datetime
    comment: str
    signature: NotRequired[QueryDecisionSignature]


class QueryDefinition(TypedDict):
    """A warm query; it is a draft if `approval` is null. `etag` is the value for If-Match, including the quotes.

    `warnings` is present in the reply to PUT if a local engine computes a function of `kql` only approximately.
    """

    etag: str
    lookup: str
    apiPath: str | None
    name: str
    description: str | None
    surface: str
    kql: str
    parameters: list[DeclaredParameter]
    cacheSeconds: int
    schema: QuerySchema | None
    createdAt: datetime
    updatedAt: datetime
    editedBy: str
    approval: QueryApproval | None
    rejection: QueryRejection | None
    warnings: NotRequired[list[DocumentWarning]]


class QueryList(TypedDict):
    """A page of warm queries; `cursor` is present if another page follows."""

    warmQueries: list[QueryDefinition]
    cursor: NotRequired[str]


LOOKUP: Final = {"pattern": LOOKUP_PATTERN, "maxLength": 64}
_AT = "2026-01-05T08:00:00.000000Z"
_COLUMNS = [{"name": "Timestamp", "type": "datetime"}, {"name": "avgPressure", "type": "real"}]
ANSWER_EXAMPLE: Final[dict[str, Any]] = {
    "query": "Pressure per five minutes",
    "executedAt": _AT,
    "results": [{"Timestamp": _AT, "avgPressure": 4.2}],
    "governance": {"queryApprovedBy": "admin@plant-a.example", "queryApprovedAt": _AT},
    "columns": _COLUMNS,
    "rowCount": 1,
    "truncated": False,
    "executionTimeMs": 4.2,
}
_KQL = "Telemetry | summarize avgPressure = avg(todouble(Payload.Pressure)) by bin(Timestamp, 5m)"
_WRITTEN = {"name": "Pressure per five minutes", "surface": "cooling", "kql": _KQL}
_DEFINITION = {
    **_WRITTEN,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "lookup": "pressure-5m",
    "apiPath": "cooling/pressure",
    "description": None,
    "parameters": [{"name": "device", "type": "string", "default": ""}],
    "cacheSeconds": 0,
    "schema": {"columns": _COLUMNS},
    "createdAt": _AT,
    "updatedAt": _AT,
    "editedBy": "editor@plant-a.example",
    "approval": {"approvedBy": "admin@plant-a.example", "approvedAt": _AT},
    "rejection": None,
}
_DRAFT = {**_DEFINITION, "approval": None}
_FORMS = {
    "text/csv": TEXT_FORM,
    "application/vnd.apache.parquet": BYTES_FORM,
    "application/vnd.apache.arrow.stream": BYTES_FORM,
}
_ROW_HEADERS: Final = {
    **ETAG,
    "x-query-executed-at": "Time at which the engine computed the rows.",
    "x-query-execution-time-ms": "Duration of the execution in the engine, in milliseconds.",
    "x-query-truncated": "`true` if the query has more rows than the reply.",
    "x-query-from-cache": "`true` if the rows were computed for an earlier request; missing if the query allows no "
    "caching.",
    "x-query-approved-by": "Principal who approved the query; percent-encoded; missing for an ad-hoc query.",
    "x-query-approved-at": "Time of the approval; missing for an ad-hoc query.",
}
_ROWS_SUMMARY: Final = "The rows in the selected format, or in the media type that Accept prefers."
_ROWS = DocumentedReply(
    200,
    _ROWS_SUMMARY,
    QueryAnswer,
    ANSWER_EXAMPLE,
    _FORMS,
    _ROW_HEADERS,
)
ENGINE_REFUSALS = (503, 504)

EXECUTED = OperationDocs((_ROWS, NOT_MODIFIED), error_statuses=(400, 403, 404, *ENGINE_REFUSALS), headers=KNOWN_VERSION)
AD_HOC = OperationDocs(
    (
        DocumentedReply(
            200,
            _ROWS_SUMMARY,
            QueryAnswer,
            {**ANSWER_EXAMPLE, "query": "ad-hoc", "governance": {"queryApprovedBy": None, "queryApprovedAt": None}},
            _FORMS,
            _ROW_HEADERS,
        ),
    ),
    error_statuses=ENGINE_REFUSALS,
    example={"query": "Telemetry | take 10", "from": "2026-01-05T08:00:00Z", "limit": 10},
)
LISTED = OperationDocs(
    (DocumentedReply(200, "The warm queries, including drafts.", QueryList, {"warmQueries": [_DEFINITION]}),)
)
PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed query, which is a draft again.", QueryDefinition, _DRAFT, headers=STATE),
        DocumentedReply(201, "The new query, which is a draft.", QueryDefinition, _DRAFT, headers=STATE),
    ),
    error_statuses=(409, 412, *ENGINE_REFUSALS),
    example={**_WRITTEN, "name": "Pressure per hour", "kql": _KQL.replace("5m", "1h")},
    path={"lookup": LOOKUP},
    headers=WRITE_CONDITIONS,
)
DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), headers=CHANGE_CONDITIONS)
APPROVED = OperationDocs(
    (DocumentedReply(200, "The approved query.", QueryDefinition, _DEFINITION, headers=STATE),),
    error_statuses=(409, 412, *ENGINE_REFUSALS),
    example={"signature": {"meaning": "approval", "statement": "Checked against the data sheet."}},
    headers={**CHANGE_CONDITIONS, **IDEMPOTENT},
)
REJECTED = OperationDocs(
    (
        DocumentedReply(
            200,
            "The rejected draft.",
            QueryDefinition,
            {
                **_DRAFT,
                "rejection": {
                    "rejectedBy": "admin@plant-a.example",
                    "rejectedAt": _AT,
                    "comment": "Pressure must be in bar.",
                },
            },
            headers=STATE,
        ),
    ),
    error_statuses=(409, 412),
    example={"comment": "Pressure must be in bar."},
    headers={**CHANGE_CONDITIONS, **IDEMPOTENT},
)
