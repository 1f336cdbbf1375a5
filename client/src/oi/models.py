"""JSON bodies of the service, derived from its OpenAPI document by client/scripts/make_models.py.

Example:
    >>> from oi.models import EventBody
    >>> event: EventBody = {"ActionType": "Valve.Opened", "EntityType": "Valve", "EntityID": "V-7"}
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Accepted(TypedDict):
    """Number of messages that were accepted."""

    accepted: int


AccessRight: TypeAlias = Literal[
    "Workspace.Catalog.Read",
    "Workspace.WarmQuery.Execute",
    "Workspace.WarmQuery.AdHoc",
    "Workspace.WarmQuery.Manage",
    "Workspace.WarmQuery.Approve",
    "Workspace.ColdData.Export",
    "Workspace.LiveStream.Read",
    "Workspace.Telemetry.Write",
    "Workspace.Telemetry.Import",
    "Workspace.Provenance.Read",
    "Workspace.Provenance.Write",
    "Workspace.Provenance.Verify",
    "Workspace.Provenance.Export",
    "Workspace.Amendment.Read",
    "Workspace.Amendment.Create",
    "Workspace.Amendment.Approve",
    "Workspace.DataStore.Read",
    "Workspace.DataStore.Manage",
    "Workspace.Document.Read",
    "Workspace.Document.Write",
    "Workspace.Mcp.Use",
    "Workspace.Keys.Manage",
    "Workspace.Team.Read",
    "Workspace.Team.Manage",
    "Workspace.Catalog.Manage",
    "Workspace.Policy.Manage",
    "Workspace.Alert.Read",
    "Workspace.Alert.Manage",
    "Workspace.Webhook.Manage",
]
"""Access right that an operation of the API can require."""


class AcknowledgementBody(TypedDict):
    """Request body that acknowledges an alert."""

    comment: NotRequired[str | None]


AdHocBody = TypedDict(
    "AdHocBody",
    {
        "timeRange": NotRequired[str],
        "from": NotRequired[str | int],
        "to": NotRequired[str | int],
        "query": str,
        "limit": NotRequired[int],
        "Query": NotRequired[str],
    },
)
"""Request body of an ad-hoc query."""


AlertEventDataSeverity: TypeAlias = Literal["info", "warning", "critical"]
"""Value of the property ``severity`` of ``AlertEventData``."""


GroupByItem: TypeAlias = str
"""Element of the property ``groupBy`` of ``AlertRuleBody``."""


Connection: TypeAlias = str
"""Element of the property ``connections``, for example of ``NewKeyBody``."""


AlertRuleDefinitionState: TypeAlias = Literal["ok", "pending", "firing", "error"]
"""Value of the property ``state`` of ``AlertRuleDefinition``."""


AlertState: TypeAlias = Literal["pending", "firing", "resolved"]
"""State of an alert: pending, firing or resolved."""


class Alive(TypedDict):
    """Reply of the liveness probe."""

    status: Literal["alive"]


AmendmentEventDataStatus: TypeAlias = Literal["pending", "approved", "rejected"]
"""Value of the property ``status`` of ``AmendmentEventData``."""


AmendmentState: TypeAlias = Literal["pending", "approved", "rejected"]
"""State of an amendment."""


AmendmentStatus: TypeAlias = Literal["pending", "approved"]
"""Value of the property ``Status`` of ``Amendment``."""


ApiVersion: TypeAlias = Literal["2026-12-01"]
"""JSON value ``ApiVersion`` in requests or replies."""


class Signature(TypedDict):
    """Signature of a decision. Its meaning is `rejection` for a rejection, another allowed text for an approval."""

    meaning: str
    """
    One of `policies.signatures.meanings`: `rejection` for a rejection, another one for an approval.
    """
    statement: NotRequired[str | None]
    """
    Text about the decision.
    """


class ApprovalBody(TypedDict):
    """Request body that approves an amendment; it may be empty if the workspace requires no signature."""

    signature: NotRequired[Signature | None]
    """
    Signature of the decision; required if the policy `signatures` requires it.
    """


class AuditEvent(TypedDict):
    """A stored audit event; further properties are part of the record and of its hash."""

    RecordID: str
    Timestamp: str
    UserID: str
    ActionType: str
    EntityType: str
    EntityID: str
    NodeID: NotRequired[str]
    BeforeState: NotRequired[dict[str, Any]]
    AfterState: NotRequired[dict[str, Any]]
    Name: NotRequired[str]
    Description: NotRequired[str]
    PreviousHash: str
    Hash: str


AuditScopeLastVerdict: TypeAlias = Literal["valid", "broken"]
"""Value of the property ``lastVerdict`` of ``AuditScope``."""


class BrokenChainEventData(TypedDict):
    """An audit chain in which the background verification found a fault."""

    target: str
    scopeKey: str | None
    brokenAt: str | None
    reason: str


class BundleFilters(TypedDict):
    """Filters that select the records of an audit bundle."""

    startDate: str | None
    endDate: str | None
    entityId: str | None


class BundleLink(TypedDict):
    """The zip file of an audit bundle and its link; until `urlExpiresAt`, the link needs no credential."""

    name: str
    url: str
    urlExpiresAt: str
    records: int
    bytes: int
    sha256: str


class BundleProgress(TypedDict):
    """Progress of a job that builds an audit bundle."""

    scopesDone: int
    scopesTotal: int
    records: int


class Checkpoint(TypedDict):
    """A signed checkpoint of an audit chain (C2SP tlog-checkpoint)."""

    origin: str
    size: int
    rootHash: str
    lastHash: str
    timestamp: str
    signedNote: str


class CheckpointJwk(TypedDict):
    """A public key that verifies checkpoints, as a JWK (RFC 7517); `kid` is its id in signatures, lowercase hex."""

    kty: str
    crv: str
    x: str
    y: str
    kid: str
    use: str
    alg: str


class CheckpointJwkSet(TypedDict):
    """The public keys that verify checkpoints: the current key, and retired keys whose signatures are trusted."""

    keys: list[CheckpointJwk]


class ChoiceVariable(TypedDict):
    """Simulated variable that takes one of several values, chosen at random by weight."""

    name: str
    kind: Literal["choice"]
    values: list[float | str | bool]
    weights: NotRequired[list[float] | None]


class ClientDescription(TypedDict):
    """OAuth client that requests rights. If the workspace does not declare the client, its name is unverified."""

    id: str
    name: str
    isDeclared: bool


ConnectionDefinitionStatus: TypeAlias = Literal["CONNECTED", "CONNECTING", "DISCONNECTED", "ERROR"]
"""Value of the property ``status`` of ``ConnectionDefinition``."""


ConnectionEventDataAfter: TypeAlias = Literal["CONNECTING", "CONNECTED", "DISCONNECTED", "ERROR"]
"""Value of the property ``after`` of ``ConnectionEventData``."""


ConnectionEventDataBefore: TypeAlias = Literal["CONNECTING", "CONNECTED", "DISCONNECTED", "ERROR"]
"""Value of the property ``before`` of ``ConnectionEventData``."""


class ConnectionStatistics(TypedDict):
    """Statistics of a connection: number of messages, time of the newest, and number of messages with wrong types."""

    messagesReceived: int
    lastMessage: str | None
    typeMismatches: int


ConnectionType: TypeAlias = Literal["CLOUD_IOT_HUB", "CLOUD_EVENT_HUB", "SIMULATOR"]
"""Type of the source from which a connection receives telemetry."""


ConsistencyProof = TypedDict(
    "ConsistencyProof",
    {
        "from": int,
        "size": int,
        "hashes": list[str],
    },
)
"""JSON value ``ConsistencyProof`` in requests or replies."""


class ConstantVariable(TypedDict):
    """Simulated variable with a constant value."""

    name: str
    kind: Literal["constant"]
    value: float | str | bool


class CounterVariable(TypedDict):
    """Simulated counter that grows by a step with each message.

    The counter restarts before it reaches ``wrap`` or, without ``wrap``, each UTC day.
    """

    name: str
    kind: Literal["counter"]
    start: NotRequired[int]
    step: NotRequired[int]
    wrap: NotRequired[int | None]
    """
    The counter restarts before this value; without it, each UTC day.
    """


class DamagedRecord(TypedDict):
    """Placeholder for a damaged record, with the stored text and the stored hash, which does not match.

    Only the list of pending amendments adds `ScopeKey`.
    """

    RecordID: str
    Damaged: Literal[True]
    Content: str
    Hash: str
    ScopeKey: NotRequired[str]


DataClass: TypeAlias = Literal["operational", "reference", "evidence"]
"""Classification of the data in a Cosmos DB container; callers over HTTPS cannot assign ``evidence``."""


DatabaseAccess: TypeAlias = Literal["granted", "refused"]
"""Access that this service has to the documents of a Cosmos DB account."""


DateRange = TypedDict(
    "DateRange",
    {
        "start": str,
        "end": str,
        "from": NotRequired[str],
        "to": NotRequired[str],
    },
)
"""Time range of a download; `start` is included, `end` is excluded."""


ResourceItem: TypeAlias = str
"""Element of the property ``resource``, for example of ``DecisionBody``."""


Scope: TypeAlias = str
"""Element of the property ``scopes`` of ``DecisionBody``."""


class DecisionBody(TypedDict):
    """Decision of a person about an authorization request."""

    response_type: NotRequired[str | None]
    client_id: NotRequired[str | None]
    redirect_uri: NotRequired[str | None]
    scope: NotRequired[str | None]
    state: NotRequired[str | None]
    code_challenge: NotRequired[str | None]
    code_challenge_method: NotRequired[str | None]
    response_mode: NotRequired[str | None]
    prompt: NotRequired[str | None]
    max_age: NotRequired[str | None]
    resource: NotRequired[str | list[ResourceItem] | None]
    """
    One or several resources.
    """
    requested_at: NotRequired[str | None]
    """
    Time of the request, which the service states in the address of the consent page.
    """
    approve: bool
    scopes: NotRequired[list[Scope] | None]
    """
    Delegated access rights; required with `approve: true`.
    """


class DeliveryAttempt(TypedDict):
    """An attempt to send a delivery; `error` is null after a success, `reply` is the start of the reply's body."""

    at: str
    httpStatus: int | None
    error: str | None
    durationMs: int
    reply: str


DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]
"""State of a webhook delivery."""


Description: TypeAlias = str
"""Value of the property ``description``, for example of ``WebhookBody``."""


class DocumentWarning(TypedDict):
    """Warning about a workspace document or a warm query, for instance that PUT will reject a query."""

    field: str
    message: str
    line: NotRequired[int]
    column: NotRequired[int]


DownloadEventDataStatus: TypeAlias = Literal["completed", "failed"]
"""Value of the property ``status`` of ``DownloadEventData``."""


class DownloadFile(TypedDict):
    """A file of a download and its link; until `urlExpiresAt`, the link needs no credential."""

    connection: str
    url: str
    urlExpiresAt: str
    rows: int
    bytes: int
    sha256: str


DownloadFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
"""File format of a download: CSV, JSON lines or Parquet."""


ExportFormat: TypeAlias = Literal["json", "csv"]
"""File formats of an export of audit events."""


class Governance(TypedDict):
    """Approval of an executed query: the principal who approved it, and the time; null for an ad-hoc query."""

    queryApprovedBy: str | None
    queryApprovedAt: str | None


class GraphQLError(TypedDict):
    """A GraphQL error; `extensions` contains its code."""

    message: str
    path: list[str | int]
    locations: NotRequired[list[dict[str, int]]]
    extensions: dict[str, Any]


class GraphQLReply(TypedDict):
    """A GraphQL response."""

    data: NotRequired[dict[str, Any] | None]
    errors: NotRequired[list[GraphQLError]]


IdentityVia: TypeAlias = Literal["apiKey", "jwt", "entra"]
"""Value of the property ``via`` of ``Identity``."""


ImportFormat: TypeAlias = Literal["csv", "ndjson", "parquet"]
"""Format of a file that is imported."""


ImportMappingReplyDecimal: TypeAlias = Literal[".", ","]
"""Value of the property ``decimal`` of ``ImportMappingReply``."""


class ImportProgress(TypedDict):
    """Progress of an import; `bytesDone` is null for a Parquet file until the import is completed."""

    connectionsDone: int
    connectionsTotal: int
    rows: int
    bytesDone: int | None
    bytesTotal: int | None


class InclusionProof(TypedDict):
    """Merkle proof that a checkpoint covers an audit record (RFC 6962)."""

    leafIndex: int
    size: int
    hashes: list[str]


JobStatus: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]
"""State of a background job."""


class KeptItem(TypedDict):
    """Catalog item that stays unchanged, although the document does not declare it or declares something else."""

    kind: str
    key: str
    reason: str


KeyFormat: TypeAlias = Literal["cose", "jwks"]
"""File format of a set of public keys."""


class KeySet(TypedDict):
    """A JSON Web Key Set (RFC 7517)."""

    keys: list[dict[str, Any]]


class KnownGrant(TypedDict):
    """Consent of a member to an OAuth client."""

    id: str
    clientId: str
    clientName: str
    principal: str
    accessRights: list[AccessRight]
    createdAt: str
    lastUsedAt: str
    expiresAt: str


class KnownKey(TypedDict):
    """An API key without its secret."""

    keyId: str
    name: str
    principal: str
    accessRights: list[AccessRight]
    createdAt: str
    expiresAt: str | None
    lastUsedAt: str | None
    revokedAt: str | None
    connections: NotRequired[list[str]]
    devices: NotRequired[list[str] | None]


class LinkToStream(TypedDict):
    """A WebSocket URL that opens a live stream until `expiresAt`."""

    url: str
    expiresAt: str


class ListedSignature(TypedDict):
    """Signature with the chain and the record of its decision. A decision about a warm query has no scope."""

    UserID: str
    PrintedName: str
    Meaning: str
    Statement: str | None
    SignedAt: str
    AuthTime: str
    AuthMethods: list[str]
    RecordHash: str
    target: str
    scopeKey: str | None
    recordID: str


class ListedSignatures(TypedDict):
    """Page of the list of signatures."""

    signatures: list[ListedSignature]
    cursor: str | None


Lookup: TypeAlias = str
"""JSON value ``Lookup`` in requests or replies."""


Lookups: TypeAlias = list[Lookup]
"""Value of the property ``surfaces``, for example of ``FilterBody``."""


Column: TypeAlias = str
"""Element of the property ``columns`` of ``MappingBody``."""


MappingBodyDecimal: TypeAlias = Literal[".", ","]
"""Value of the property ``decimal`` of ``MappingBody``."""


MessageFormat: TypeAlias = Literal["standard", "teams", "slack"]
"""Format of the request body that a webhook endpoint expects: standard, Teams or Slack."""


MintTokenSignIn: TypeAlias = Literal["true", "false"]
"""JSON value ``MintTokenSignIn`` in requests or replies."""


class MintedToken(TypedDict):
    """A new access token; no other reply contains it."""

    Token: str
    ExpiresAt: str
    AccessRights: list[AccessRight]


class NewKey(TypedDict):
    """A new API key; no other reply contains its secret."""

    keyId: str
    apiKey: str
    name: str
    principal: str
    accessRights: list[AccessRight]
    createdAt: str
    expiresAt: str | None
    connections: NotRequired[list[str]]
    devices: NotRequired[list[str] | None]


Device: TypeAlias = str
"""Element of the property ``devices``, for example of ``NewKeyBody``."""


class NewKeyBody(TypedDict):
    """Request body that creates an API key."""

    name: str
    principal: NotRequired[str | None]
    rights: NotRequired[list[AccessRight] | None]
    expiresInDays: NotRequired[int | None]
    connections: NotRequired[list[Connection] | None]
    """
    Lookups of the connections to which the key is bound. A bound key can only write their telemetry.
    """
    devices: NotRequired[list[Device] | None]
    """
    Patterns of the device ids of a bound key, such as `rig-*`; default: all. With `connections` at most 10,000 bytes.
    """


class NormalVariable(TypedDict):
    """Simulated variable with independent, normally distributed values."""

    name: str
    kind: Literal["normal"]
    mean: float
    stdev: float


class OAuthErrorReply(TypedDict):
    """An OAuth error (RFC 6749 section 5.2)."""

    error: str
    error_description: str


Operator: TypeAlias = Literal["gt", "ge", "lt", "le", "eq", "ne"]
"""Comparison operator with which an alert rule compares a column's value with a limit."""


ParameterType: TypeAlias = Literal[
    "bool", "int", "long", "real", "decimal", "string", "datetime", "timespan", "guid", "dynamic"
]
"""Type of a query parameter: the name of a scalar type of Kusto."""


PlanAction: TypeAlias = Literal["added", "changed", "removed"]
"""Effect of a planned change on a catalog item."""


class PlannedChange(TypedDict):
    """Planned change of one catalog item; `before` is null for a new item, `after` for a removed one.

    `changedBy` and `changedAt` name the last change of the stored item, for example through the API.
    """

    action: PlanAction
    kind: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changedBy: NotRequired[str]
    changedAt: NotRequired[str]


class PreviewProblem(TypedDict):
    """A problem of a row of the file, counted from 1 after the header; `row` is null for the whole file."""

    row: int | None
    message: str


class PreviewedMessage(TypedDict):
    """A telemetry message as the import would store it."""

    timestamp: str
    connection: str
    deviceId: str
    messageId: str
    payload: dict[str, Any]


class Progress(TypedDict):
    """Progress of a download."""

    connectionsDone: int
    connectionsTotal: int
    rows: int


ReasonCategory: TypeAlias = str
"""Element of the property ``reasonCategories`` of ``ProvenancePolicy``."""


class ProvenancePolicy(TypedDict):
    """Rules of the audit chains; without this policy, audit operations reply 503."""

    requireApproval: NotRequired[bool]
    requireTwoPersonAuth: NotRequired[bool]
    requireReasonText: NotRequired[bool]
    reasonCategories: NotRequired[list[ReasonCategory]]


class QueryApprovalBody(TypedDict):
    """Request body that approves a query's draft; it may be empty if the workspace requires no signature."""

    signature: NotRequired[Signature | None]
    """
    Signature of the decision; required if the policy `signatures` requires it.
    """


class QueryColumn(TypedDict):
    """Name and Kusto type of a column of a query's result."""

    name: str
    type: str


class QueryDecisionSignature(TypedDict):
    """Electronic signature of a query's decision. `recordHash` is the SHA-256 of `kql` and `parameters` (RFC 8785)."""

    userId: str
    printedName: str
    meaning: str
    statement: str | None
    signedAt: str
    authTime: str
    authMethods: list[str]
    recordHash: str


class QueryParameter(TypedDict):
    """Declared parameter of a warm query; required if it has no default."""

    name: str
    type: ParameterType
    default: NotRequired[Any]


class QueryRejection(TypedDict):
    """Rejection of a query's draft: principal, time, reason, and signature if the rejection was signed."""

    rejectedBy: str
    rejectedAt: str
    comment: str
    signature: NotRequired[QueryDecisionSignature]


class QueryRejectionBody(TypedDict):
    """Request body that rejects the draft of a warm query."""

    comment: str
    signature: NotRequired[Signature | None]
    """
    Signature of the decision; required if the policy `signatures` requires it.
    """


class QuerySchema(TypedDict):
    """Columns of a query's result."""

    columns: list[QueryColumn]


class Question(TypedDict):
    """Content of the consent page, or the redirect URL that reports an error to the OAuth client."""

    client: NotRequired[ClientDescription]
    redirectHost: NotRequired[str]
    accessRights: NotRequired[list[AccessRight]]
    missingRights: NotRequired[list[AccessRight]]
    redirectTo: NotRequired[str]


class Quotas(TypedDict):
    """Quotas of each principal; a missing value means the default of the tier."""

    streamsPerPrincipal: NotRequired[int | None]
    """
    Maximum number of open live streams.
    """
    jobsPerPrincipal: NotRequired[int | None]
    """
    Maximum number of unfinished downloads.
    """
    downloadBytes: NotRequired[int | None]
    """
    Maximum total size of stored download files in bytes.
    """


class RampVariable(TypedDict):
    """Simulated variable that rises from min to max in each period (sawtooth)."""

    name: str
    kind: Literal["ramp"]
    min: float
    max: float
    periodSec: float
    noise: NotRequired[float]


class RandomWalkVariable(TypedDict):
    """Simulated random walk with normally distributed steps, reflected at min and max, restarted each UTC day."""

    name: str
    kind: Literal["random-walk"]
    min: float
    max: float
    step: float
    """
    Standard deviation of a step.
    """
    start: NotRequired[float | None]


class Range(TypedDict):
    """Time range of a download; `start` is included, `end` is excluded."""

    start: str
    end: str


class Ready(TypedDict):
    """Reply of the readiness probe.

    `running` names background work, and `warnings` names conditions that an operator must end; each is missing if there
    is none.
    """

    status: Literal["ready"]
    warnings: NotRequired[list[Literal["DISK_NEARLY_FULL", "DISK_FULL", "ENTRA_AUTH_TIME_MISSING"]]]
    running: NotRequired[list[str]]


class ReasonCategories(TypedDict):
    """Reason categories that an amendment may use."""

    categories: list[str]


class RecordSignature(TypedDict):
    """Electronic signature of a decision. `RecordHash` is the `Hash` of the amendment that is decided."""

    UserID: str
    PrintedName: str
    Meaning: str
    Statement: str | None
    SignedAt: str
    AuthTime: str
    AuthMethods: list[str]
    RecordHash: str


class Redirection(TypedDict):
    """URL to which the consent page redirects."""

    redirectTo: str


class RejectedRows(TypedDict):
    """CSV file of the rejected rows with reasons, and its link; until `urlExpiresAt`, the link needs no credential."""

    connection: str
    url: str
    urlExpiresAt: str
    rows: int
    bytes: int
    sha256: str


class RejectionBody(TypedDict):
    """Request body that rejects an amendment; the query string may contain the scope instead."""

    ScopeKey: NotRequired[str | None]
    RejectionReason: NotRequired[str | None]
    signature: NotRequired[Signature | None]
    """
    Signature of the decision; required if the policy `signatures` requires it.
    """


class RequestBody(TypedDict):
    """Parameters of an authorization request, as they are in the address of the consent page."""

    response_type: NotRequired[str | None]
    client_id: NotRequired[str | None]
    redirect_uri: NotRequired[str | None]
    scope: NotRequired[str | None]
    state: NotRequired[str | None]
    code_challenge: NotRequired[str | None]
    code_challenge_method: NotRequired[str | None]
    response_mode: NotRequired[str | None]
    prompt: NotRequired[str | None]
    max_age: NotRequired[str | None]
    resource: NotRequired[str | list[ResourceItem] | None]
    """
    One or several resources.
    """
    requested_at: NotRequired[str | None]
    """
    Time of the request, which the service states in the address of the consent page.
    """


class RequestLimits(TypedDict):
    """Rate limits of each principal."""

    requestsPerMinute: int
    concurrent: int


class ResourceMetadata(TypedDict):
    """OAuth 2.0 protected resource metadata (RFC 9728)."""

    resource: str
    resource_name: str
    authorization_servers: list[str]
    bearer_methods_supported: list[str]
    scopes_supported: list[str]
    resource_documentation: str


Role: TypeAlias = Literal["Viewer", "Editor", "Admin"]
"""Role of a team member: a named set of access rights, to which individual rights can be added."""


RowFormat: TypeAlias = Literal["json", "csv", "parquet", "arrow"]
"""Format of rows in a reply, as the parameter ``format`` names it."""


Rows: TypeAlias = Literal["any", "none"]
"""Condition of an alert rule on the number of rows that its query returns."""


class RpcReply(TypedDict):
    """A JSON-RPC 2.0 response."""

    jsonrpc: str
    id: str | int | None
    result: NotRequired[dict[str, Any]]
    error: NotRequired[dict[str, Any]]


class RuleCondition(TypedDict):
    """Condition of a threshold rule: either `column`, `operator` and `value` (a comparison), or only `rows`.

    `rows` is `any` if the condition is that the query returns rows, and `none` if it returns no row.
    """

    column: NotRequired[str]
    operator: NotRequired[Operator]
    value: NotRequired[float]
    rows: NotRequired[Rows]


RuleKind: TypeAlias = Literal["threshold", "absence"]
"""Kind of an alert rule."""


class ServerMetadata(TypedDict):
    """OAuth 2.0 authorization server metadata (RFC 8414)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str
    jwks_uri: str
    service_documentation: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    client_id_metadata_document_supported: bool


Severity: TypeAlias = Literal["info", "warning", "critical"]
"""Severity of an alert."""


SignalType: TypeAlias = Literal["real", "long", "bool", "string", "datetime"]
"""Type of the values of a signal: the name of a scalar type of Kusto."""


Meaning: TypeAlias = str
"""Element of the property ``meanings`` of ``SignaturePolicy``."""


SignatureRequirement: TypeAlias = Literal["off", "required"]
"""Rule of the signature policy for one kind of decision: signatures are off or required."""


class SineVariable(TypedDict):
    """Simulated variable that follows a sine between min and max."""

    name: str
    kind: Literal["sine"]
    min: float
    max: float
    periodSec: float
    noise: NotRequired[float]
    """
    Standard deviation of added normal noise.
    """


class SquareVariable(TypedDict):
    """Simulated square wave: min for the first part of each period, then max."""

    name: str
    kind: Literal["square"]
    min: float
    max: float
    periodSec: float
    duty: NotRequired[float]
    """
    Share of the period at max.
    """
    noise: NotRequired[float]


class SurfaceBody(TypedDict):
    """Request body that defines a surface."""

    name: str
    description: NotRequired[str | None]
    connections: list[Connection]
    createdAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    editedBy: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    lookup: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    queries: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    updatedAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """


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
    createdAt: str
    updatedAt: str
    editedBy: str


class SurfaceList(TypedDict):
    """A page of surfaces; `cursor` is present if another page follows."""

    surfaces: list[SurfaceDefinition]
    cursor: NotRequired[str]


class SuspiciousSignatureEventData(TypedDict):
    """A member whose signatures were refused several times."""

    userId: str
    attempts: int
    since: str


Target: TypeAlias = Literal["PlatformConfig", "AccessControl", "DomainEvents", "DomainAmendments"]
"""
Kinds of audit chains; each kind is stored in its own container.

The first two kinds have one chain for the whole workspace. All other kinds have one chain for each scope, such as a
production line.
"""


class TelemetryPolicy(TypedDict):
    """Rules for telemetry that is sent over HTTPS."""

    requireBoundKeys: NotRequired[bool]
    """
    Only credentials that are bound to connections may send telemetry.
    """
    maxAheadSeconds: NotRequired[int]
    """
    Seconds that a message's timestamp may be ahead of the service's clock.
    """
    requireDeclaredDevices: NotRequired[bool]
    """
    A message's device must match `source.devices` of its connection, if that is not empty.
    """


Text: TypeAlias = str
"""Value of the property ``EntityType``, for example of ``AmendmentBody``."""


Tier: TypeAlias = Literal["free", "pro", "enterprise"]
"""Rate-limit tier of the workspace."""


TimestampFormat: TypeAlias = Literal["rfc3339", "epochSeconds", "epochMilliseconds"]
"""Format of the timestamps in a connection's messages."""


class TokenReply(TypedDict):
    """A new access token; no other reply contains it."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: NotRequired[str]


TransitionMeaning: TypeAlias = Literal["approval", "rejection"]
"""Value of the property ``Meaning`` of ``Transition``."""


TransitionStatus: TypeAlias = Literal["approved", "rejected"]
"""Value of the property ``Status`` of ``Transition``."""


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


class UniformVariable(TypedDict):
    """Simulated variable with independent, uniformly distributed values between min and max."""

    name: str
    kind: Literal["uniform"]
    min: float
    max: float


Verb: TypeAlias = Literal["list", "read", "create", "replace", "delete"]
"""Operation on documents that a container can expose through the API."""


class Verdict(TypedDict):
    """Result of a verification: `ChainValid` for the chain, `Valid` for the requested record (else null).

    `BrokenAt` is the RecordID of the first damaged or missing record, and `Reason` describes the damage. `ForkDetected`
    is true if two records follow the same record. `Record` is the requested record, and `RecomputedHash` is the hash
    of its content. `Empty` is true if there was nothing to verify.
    """

    Valid: bool | None
    ChainValid: bool
    Empty: bool
    Record: dict[str, Any] | None
    RecomputedHash: str | None
    BrokenAt: str | None
    ForkDetected: bool
    Reason: str | None
    Target: str


class VerifyBody(TypedDict):
    """Request body that names the audit chain to verify. If it contains a RecordID, that record is verified, too."""

    ScopeKey: NotRequired[str | None]
    RecordID: NotRequired[str]
    """
    A record whose digest is recomputed as well.
    """


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


class WarmQueryEventData(TypedDict):
    """A warm query that waits for approval, or was approved or rejected."""

    lookup: str
    name: str
    surface: str
    editedBy: str
    approvedBy: str | None


WebhookDeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]
"""Value of the property ``status`` of ``WebhookDelivery``."""


WebhookEventType: TypeAlias = Literal[
    "alert.firing",
    "alert.resolved",
    "connection.status-changed",
    "amendment.pending",
    "amendment.decided",
    "warm-query.pending-approval",
    "warm-query.approved",
    "warm-query.rejected",
    "download.completed",
    "audit-chain.broken",
    "signature.suspicious",
    "webhook.test",
]
"""Type of a webhook event."""


class WebhookEventTypeInfo(TypedDict):
    """A type of webhook events, with an example of the event's `data`."""

    type: str
    description: str
    example: dict[str, Any]


class WebhookEventTypeList(TypedDict):
    """List of all types of webhook events."""

    eventTypes: list[WebhookEventTypeInfo]


class WebhookFilter(TypedDict):
    """Filter of a webhook's events by short names (lookups) and severities; a missing property restricts nothing."""

    surfaces: NotRequired[list[str]]
    connections: NotRequired[list[str]]
    severities: NotRequired[list[Literal["info", "warning", "critical"]]]


WebhookFormat: TypeAlias = Literal["standard", "teams", "slack"]
"""Value of the property ``format`` of ``Webhook``."""


class WebhookTestEventData(TypedDict):
    """A test event that a person requested."""

    webhookId: str
    requestedBy: str


WebhookWithSecretFormat: TypeAlias = Literal["standard", "teams", "slack"]
"""Value of the property ``format`` of ``WebhookWithSecret``."""


class WorkspacePlan(TypedDict):
    """Plan: changes that applying a document would make. `planTag` is the value for If-Match, with its quotes."""

    changes: list[PlannedChange]
    kept: list[KeptItem]
    planTag: str
    warnings: list[DocumentWarning]


class WorkspaceStatistics(TypedDict):
    """Number of the workspace's items of each kind."""

    connectionCount: int
    surfaceCount: int
    queryCount: int
    memberCount: int


WritableTarget: TypeAlias = Literal["PlatformConfig", "AccessControl", "DomainEvents"]
"""Targets (kinds of audit chains) to which callers can append events."""


class Error(TypedDict):
    """Element of the property ``errors`` of ``Problem``."""

    field: str
    message: str


class Problem(TypedDict):
    """An error (RFC 9457); the code defines additional members."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    traceId: str
    errors: NotRequired[list[Error]]


class AlertCondition(TypedDict):
    """Condition of a threshold rule: either `column`, `operator` and `value` (a comparison), or only `rows`."""

    column: NotRequired[str | None]
    """
    Column of the query's result.
    """
    operator: NotRequired[Operator | None]
    value: NotRequired[float | None]
    rows: NotRequired[Rows | None]
    """
    `any`: the query returns rows; `none`: it returns no row.
    """


class AlertDescription(TypedDict):
    """An alert: a period in which the condition of a rule holds for one group, such as one connection."""

    id: str
    rule: str
    name: str
    labels: dict[str, str | None]
    state: AlertState
    severity: Severity
    surface: str
    value: float | None
    startedAt: str
    firedAt: str | None
    resolvedAt: str | None
    acknowledgedBy: str | None
    acknowledgedAt: str | None
    comment: str | None


class AlertEventData(TypedDict):
    """An alert that fires or is resolved."""

    alertId: str
    rule: str
    name: str
    severity: AlertEventDataSeverity
    state: str
    labels: dict[str, Any]
    value: float | None
    startedAt: str
    surface: str | None
    runbookUrl: str | None


class AlertList(TypedDict):
    """A page of alerts; `cursor` is present if another page follows."""

    alerts: list[AlertDescription]
    cursor: NotRequired[str]


AlertRuleBody = TypedDict(
    "AlertRuleBody",
    {
        "name": str,
        "description": NotRequired[str | None],
        "severity": Severity,
        "enabled": NotRequired[bool],
        "surface": str,
        "kind": RuleKind,
        "every": str,
        "for": NotRequired[str],
        "runbookUrl": NotRequired[str | None],
        "query": NotRequired[str | None],
        "parameters": NotRequired[dict[str, Any]],
        "timeRange": NotRequired[str | None],
        "condition": NotRequired[AlertCondition | None],
        "groupBy": NotRequired[list[GroupByItem]],
        "connections": NotRequired[list[Connection]],
        "after": NotRequired[str | None],
        "createdAt": NotRequired[Any],
        "editedBy": NotRequired[Any],
        "error": NotRequired[Any],
        "etag": NotRequired[Any],
        "lastEvaluatedAt": NotRequired[Any],
        "lookup": NotRequired[Any],
        "nextEvaluationAt": NotRequired[Any],
        "state": NotRequired[Any],
        "updatedAt": NotRequired[Any],
    },
)
"""Request body that defines an alert rule; if `enabled` is omitted, the stored value stays."""


AlertRuleDefinition = TypedDict(
    "AlertRuleDefinition",
    {
        "etag": str,
        "lookup": str,
        "name": str,
        "description": str | None,
        "severity": Severity,
        "enabled": bool,
        "surface": str,
        "kind": RuleKind,
        "every": str,
        "runbookUrl": str | None,
        "query": NotRequired[str],
        "parameters": NotRequired[dict[str, Any]],
        "timeRange": NotRequired[str | None],
        "condition": NotRequired[RuleCondition],
        "groupBy": NotRequired[list[str]],
        "connections": NotRequired[list[str]],
        "after": NotRequired[str],
        "state": AlertRuleDefinitionState,
        "error": str | None,
        "lastEvaluatedAt": str | None,
        "nextEvaluationAt": str | None,
        "createdAt": str,
        "updatedAt": str,
        "editedBy": str,
        "for": str,
    },
)
"""An alert rule as declared, with the result of its newest evaluation.

`query`, `parameters`, `timeRange`, `condition` and `groupBy` belong to the kind `threshold`, `connections` and
`after` to the kind `absence`. `etag` is the value for If-Match, including the quotes."""


class AlertRuleList(TypedDict):
    """A page of alert rules; `cursor` is present if another page follows."""

    rules: list[AlertRuleDefinition]
    cursor: NotRequired[str]


class Amendment(TypedDict):
    """A stored amendment. The record can have further properties; its hash covers them, too."""

    RecordID: str
    ScopeKey: str
    EntityType: str
    EntityID: str
    OriginalRecord: dict[str, Any]
    AmendedRecord: dict[str, Any]
    ChangedFields: list[str]
    ReasonCategory: str
    ReasonText: str
    AmendedBy: str
    AmendedAt: str
    Status: AmendmentStatus
    PreviousHash: str
    Hash: str


class AmendmentBody(TypedDict):
    """Request body that creates an amendment, a correction of an entity."""

    ScopeKey: str
    """
    Required.
    """
    EntityType: Text
    EntityID: Text
    OriginalRecord: dict[str, Any]
    AmendedRecord: dict[str, Any]
    ChangedFields: list[Text]
    ReasonCategory: str
    """
    One of the workspace's reason categories.
    """
    ReasonText: str


class AmendmentEventData(TypedDict):
    """An amendment that is pending, approved or rejected; `decidedBy` is null if no person has decided."""

    scopeKey: str
    recordId: str
    entityType: str | None
    entityId: str | None
    reasonCategory: str | None
    amendedBy: str | None
    status: AmendmentEventDataStatus
    decidedBy: str | None


class AuditScope(TypedDict):
    """A chain of the audit log. `scopeKey` is null if the target has one chain for the whole workspace."""

    scopeKey: str | None
    target: Target
    records: int
    firstAt: str | None
    lastAt: str | None
    lastRecordID: str | None
    checkpointSize: int
    pendingAmendments: int
    lastVerifiedAt: str | None
    lastVerdict: AuditScopeLastVerdict | None


class AuditScopes(TypedDict):
    """Page of the list of all audit chains."""

    scopes: list[AuditScope]
    cursor: str | None


class BundleScope(TypedDict):
    """Audit chain to include in an audit bundle."""

    target: Target
    """
    Container of the chain.
    """
    scopeKey: NotRequired[str | None]
    """
    Scope of a domain chain; absent for a workspace chain.
    """


class BundledScope(TypedDict):
    """An audit chain that an audit bundle contains."""

    target: Target
    scopeKey: str | None


class ConnectionEventData(TypedDict):
    """A connection whose status has changed."""

    connection: str
    before: ConnectionEventDataBefore
    after: ConnectionEventDataAfter
    lastMessage: str | None


class ConnectionSignal(TypedDict):
    """A field of a connection's payloads: position, type, unit and expected range."""

    name: str
    pointer: str
    type: SignalType
    unit: str | None
    description: str | None
    min: float | None
    max: float | None


class ConnectionSignals(TypedDict):
    """The declared signals (payload fields) of a connection."""

    signals: list[ConnectionSignal]


class ConnectionSource(TypedDict):
    """Settings that select the events of a connection, and JSON Pointers to their fields."""

    devices: list[str]
    timestampPointer: str
    deviceIdPointer: str
    messageIdPointer: str
    timestampFormat: TimestampFormat
    eventHub: str | None
    consumerGroup: str


class ContainerBody(TypedDict):
    """Request body that creates a container."""

    name: str
    partitionKeyPath: str
    dataClass: DataClass


class ContainerDescription(TypedDict):
    """A container that exists in Cosmos DB (`provisioned`), is declared in the workspace (`Declared`), or both."""

    name: str
    partitionKeyPath: str
    dataClass: DataClass | None
    Declared: bool
    provisioned: bool


class ContainerRecord(TypedDict):
    """The catalog record of a container. `etag` is the value for If-Match, including the quotes."""

    etag: str
    name: str
    partitionKeyPath: str
    dataClass: DataClass
    expose: list[Verb]
    provisioned: bool
    Declared: bool
    createdAt: str
    updatedAt: str
    editedBy: str


class ContainerRecordBody(TypedDict):
    """Request body that changes the catalog record of a container; omitted properties keep their values.

    The partition key path cannot be changed; it may be sent back with its current value.
    """

    dataClass: NotRequired[DataClass | None]
    expose: NotRequired[list[Verb] | None]
    partitionKeyPath: NotRequired[str | None]
    Declared: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    createdAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    editedBy: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    name: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    provisioned: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    updatedAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """


class DeclaredContainer(TypedDict):
    """A declared container; `expose` lists the operations on its documents that callers may use.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    name: str
    partitionKeyPath: str
    dataClass: DataClass
    expose: list[Verb]
    provisioned: bool


class DeclaredDatabase(TypedDict):
    """A database of a data store, with its declared containers."""

    lookup: str
    access: DatabaseAccess
    containers: list[DeclaredContainer]


class DeclaredParameter(TypedDict):
    """Declared parameter of a query; it is required if it has no default."""

    name: str
    type: ParameterType
    default: NotRequired[Any]


class DeclaredStore(TypedDict):
    """A data store with its databases."""

    lookup: str
    databases: list[DeclaredDatabase]


class Download(TypedDict):
    """A download job. `files` is empty until its status is `completed`; `error` is null unless it is `failed`.

    `errorCode` is the code with which `error` begins; null if the failure has no code.
    The files contain all messages that were accepted before `completeUpTo`; null if this time is not known.
    """

    downloadId: str
    status: JobStatus
    statusUrl: str
    format: DownloadFormat
    dateRange: Range
    createdAt: str
    progress: Progress
    files: list[DownloadFile]
    completeUpTo: str | None
    expiresAt: str
    error: str | None
    errorCode: str | None


class DownloadBody(TypedDict):
    """Request body that starts a download."""

    format: NotRequired[DownloadFormat]
    dateRange: DateRange


class DownloadEventData(TypedDict):
    """A download that was completed or has failed."""

    downloadId: str
    status: DownloadEventDataStatus
    rows: int
    bytes: int


class DownloadList(TypedDict):
    """List of the caller's downloads."""

    downloads: list[Download]


class EventBody(TypedDict):
    """Audit event; an optional property with the value null counts as absent."""

    ActionType: Text
    EntityType: Text
    EntityID: Text
    NodeID: NotRequired[str | None]
    BeforeState: NotRequired[dict[str, Any] | None]
    AfterState: NotRequired[dict[str, Any] | None]
    Name: NotRequired[str | None]
    Description: NotRequired[str | None]
    ScopeKey: NotRequired[str | None]


class GrantList(TypedDict):
    """List of a member's consents to OAuth clients."""

    grants: list[KnownGrant]


class Identity(TypedDict):
    """Identity and access rights of the caller."""

    principal: str | None
    name: str
    workspace: str | None
    accessRights: list[AccessRight]
    via: IdentityVia
    expiresAt: str | None
    connections: NotRequired[list[str]]
    devices: NotRequired[list[str] | None]


class ImportMappingReply(TypedDict):
    """Mapping of an import: the columns of the file with the time, the ids and the payload of the messages.

    `timestamp`, `device` and `messageId` are names of columns. If `device` is null, the lookup of the connection is the
    device id; if `messageId` is null, ids are derived from the content. `columns` are the names of the payload's
    columns; null means all columns without another meaning.
    """

    timestamp: str
    timestampFormat: TimestampFormat
    device: str | None
    messageId: str | None
    columns: list[str] | None
    delimiter: str | None
    decimal: ImportMappingReplyDecimal | None
    timeZone: str | None


class InferredSignal(TypedDict):
    """A signal found in messages: its lowest and highest value, and the `share` of messages with it, from 0 to 1."""

    name: str
    pointer: str
    type: SignalType
    share: float
    min: float | None
    max: float | None


class InferredSignals(TypedDict):
    """Signals (payload fields) that recent messages contain, and the number of these messages."""

    messages: int
    signals: list[InferredSignal]


class KeyList(TypedDict):
    """List of API keys."""

    keys: list[KnownKey]


class MappingBody(TypedDict):
    """Mapping that assigns a file's columns (in NDJSON, top-level properties) to time, ids and payload of messages."""

    timestamp: str
    """
    Column of the time of measurement.
    """
    timestampFormat: NotRequired[TimestampFormat]
    """
    Format of the times.
    """
    device: NotRequired[str | None]
    """
    Column of the device id; without it, the connection's lookup is the device id.
    """
    messageId: NotRequired[str | None]
    """
    Column of the message id; without it, ids are derived from the content.
    """
    columns: NotRequired[list[Column] | None]
    """
    Columns that become the payload; by default all columns without another meaning.
    """
    delimiter: NotRequired[str | None]
    """
    Separator of the cells of a CSV file; a comma by default.
    """
    decimal: NotRequired[MappingBodyDecimal | None]
    """
    Decimal mark of the numbers of a CSV file; a point by default.
    """
    timeZone: NotRequired[str | None]
    """
    IANA time zone of times without a zone, which are invalid otherwise.
    """


class MemberBody(TypedDict):
    """Request body that defines a member; if `enabled` or `oid` is omitted, the stored value stays."""

    name: str
    role: Role
    rights: NotRequired[list[AccessRight]]
    enabled: NotRequired[bool]
    service: NotRequired[bool]
    oid: NotRequired[str | None]
    accessRights: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    editedBy: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    id: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    updatedAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """


class MemberDefinition(TypedDict):
    """A member of the team. `accessRights` are those of the role and the member's own `rights`.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    id: str
    name: str
    role: Role
    rights: list[AccessRight]
    enabled: bool
    service: bool
    oid: str | None
    accessRights: list[AccessRight]
    editedBy: str
    updatedAt: str


class MemberList(TypedDict):
    """A page of members; `cursor` is present if another page follows."""

    members: list[MemberDefinition]
    cursor: NotRequired[str]


class PendingAmendments(TypedDict):
    """Page of the list of pending amendments."""

    amendments: list[Amendment | DamagedRecord]
    cursor: str | None


class PreviewReply(TypedDict):
    """Preview of an import: its first 100 messages, the columns of the file, and the problems of the rows."""

    columns: list[str]
    messages: list[PreviewedMessage]
    problems: list[PreviewProblem]


class QueryAnswer(TypedDict):
    """Result of a query; `visualization` is present if the query ends with the operator `render`."""

    query: str
    executedAt: str
    results: list[dict[str, Any]]
    governance: Governance
    columns: list[QueryColumn]
    rowCount: int
    truncated: bool
    visualization: NotRequired[Visualization]
    executionTimeMs: float
    fromCache: NotRequired[bool]
    asOf: NotRequired[str]


class QueryApproval(TypedDict):
    """Approval of a query: principal, time, and signature if the approval was signed."""

    approvedBy: str
    approvedAt: str
    signature: NotRequired[QueryDecisionSignature]


class QueryBody(TypedDict):
    """Request body that defines a warm query."""

    name: str
    surface: str
    kql: str
    description: NotRequired[str | None]
    apiPath: NotRequired[str | None]
    parameters: NotRequired[list[QueryParameter]]
    cacheSeconds: NotRequired[int]
    approval: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    createdAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    editedBy: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    lookup: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    rejection: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    schema: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    updatedAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    warnings: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """


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
    createdAt: str
    updatedAt: str
    editedBy: str
    approval: QueryApproval | None
    rejection: QueryRejection | None
    warnings: NotRequired[list[DocumentWarning]]


class QueryList(TypedDict):
    """A page of warm queries; `cursor` is present if another page follows."""

    warmQueries: list[QueryDefinition]
    cursor: NotRequired[str]


class RemappingBody(TypedDict):
    """Request body that previews or starts an import.

    `mapping` replaces the column mapping of the import. The body may be empty.
    """

    mapping: NotRequired[MappingBody | None]


Severities: TypeAlias = list[Severity]
"""Value of the property ``severities`` of ``FilterBody``."""


class SignalDefinition(TypedDict):
    """Field of a connection's payloads."""

    name: str
    pointer: str
    """
    JSON Pointer to the value in the payload.
    """
    type: SignalType
    unit: NotRequired[str | None]
    """
    Unit of the values, for example bar or °C.
    """
    description: NotRequired[str | None]
    min: NotRequired[float | None]
    """
    Lowest expected value; only with type real or long.
    """
    max: NotRequired[float | None]
    """
    Highest expected value; only with type real or long.
    """


class SignaturePolicy(TypedDict):
    """Rules for decisions that count as electronic signatures."""

    amendments: NotRequired[SignatureRequirement]
    """
    Whether approvals and rejections of amendments need a signature.
    """
    queries: NotRequired[SignatureRequirement]
    """
    Whether approvals and rejections of warm queries need a signature.
    """
    maxAgeSeconds: NotRequired[int]
    """
    Maximum age of the sign-in of a person who signs; 0 if each signature needs its own sign-in.
    """
    meanings: NotRequired[list[Meaning]]
    """
    Meanings of signatures; `approval` and `rejection` are added if they are missing.
    """


Variables: TypeAlias = (
    ConstantVariable
    | SineVariable
    | RampVariable
    | SquareVariable
    | RandomWalkVariable
    | UniformVariable
    | NormalVariable
    | ChoiceVariable
    | CounterVariable
)
"""Element of the property ``variables`` of ``Simulator``."""


class Simulator(TypedDict):
    """Simulated source; the same seed gives the same values."""

    intervalMs: NotRequired[int]
    devices: NotRequired[int]
    seed: NotRequired[int]
    variables: list[Variables]


class Source(TypedDict):
    """Settings of a connection: which Event Hub events belong to it, and JSON Pointers to their fields."""

    devices: NotRequired[list[Device]]
    """
    Patterns of the IoT Hub device id or the message's deviceId.
    """
    timestampPointer: NotRequired[str]
    deviceIdPointer: NotRequired[str]
    messageIdPointer: NotRequired[str]
    timestampFormat: NotRequired[TimestampFormat]
    eventHub: NotRequired[str | None]
    consumerGroup: NotRequired[str]


class Transition(TypedDict):
    """A stored approval or rejection of an amendment; further properties are part of the record and of its hash."""

    RecordID: str
    ScopeKey: str
    EntityType: str
    EntityID: str
    AmendmentID: str
    Status: TransitionStatus
    ApprovedBy: NotRequired[str]
    ApprovedAt: NotRequired[str]
    RejectedBy: NotRequired[str]
    RejectedAt: NotRequired[str]
    RejectionReason: NotRequired[str]
    Meaning: TransitionMeaning
    Signature: NotRequired[RecordSignature]
    PreviousHash: str
    Hash: str


class Webhook(TypedDict):
    """A webhook endpoint. `disabledReason` is null unless the service disabled it; `etag` is the value for If-Match."""

    id: str
    url: str
    format: WebhookFormat
    description: str | None
    eventTypes: list[str]
    filter: WebhookFilter
    enabled: bool
    createdAt: str
    createdBy: str
    disabledReason: str | None
    etag: str


class WebhookDelivery(TypedDict):
    """A delivery of an event; `id` equals the header `webhook-id`, `event` is the body in the format `standard`."""

    id: str
    webhookId: str
    eventType: str
    status: WebhookDeliveryStatus
    attempts: list[DeliveryAttempt]
    nextAttemptAt: str | None
    createdAt: str
    event: dict[str, Any]


class WebhookDeliveryList(TypedDict):
    """A page of deliveries, newest first; `cursor` is null on the last page."""

    deliveries: list[WebhookDelivery]
    cursor: str | None


class WebhookList(TypedDict):
    """The webhooks, oldest first."""

    webhooks: list[Webhook]


class WebhookWithSecret(TypedDict):
    """A webhook with its newest secret, which no other reply contains."""

    id: str
    url: str
    format: WebhookWithSecretFormat
    description: str | None
    eventTypes: list[str]
    filter: WebhookFilter
    enabled: bool
    createdAt: str
    createdBy: str
    disabledReason: str | None
    etag: str
    secret: str


class WorkspaceDescription(TypedDict):
    """The workspace. `version` grows with each change of the catalog.

    `etag` is the value for If-Match, including the quotes; it identifies name, description and policies.
    """

    etag: str
    id: str
    name: str
    description: str | None
    tier: Tier
    limits: RequestLimits
    policies: dict[str, Any]
    stats: WorkspaceStatistics
    version: int


AmendmentRecord: TypeAlias = Amendment | Transition | DamagedRecord
"""JSON value ``AmendmentRecord`` in requests or replies."""


class AuditBundle(TypedDict):
    """An audit bundle. `files` is empty until the status is `completed`; `error` is null unless it is `failed`.

    `errorCode` is the code with which `error` begins; null if the failure has no code. `brokenScopes` are the chains
    that the verification for the bundle found broken. A chain of which filters exclude records is not verified.
    """

    bundleId: str
    status: JobStatus
    statusUrl: str
    scopes: list[BundledScope]
    filters: BundleFilters
    createdAt: str
    progress: BundleProgress
    brokenScopes: list[BundledScope]
    files: list[BundleLink]
    expiresAt: str
    error: str | None
    errorCode: str | None


class AuditBundles(TypedDict):
    """List of the caller's audit bundles."""

    bundles: list[AuditBundle]


class BundleBody(TypedDict):
    """Request body that starts an audit bundle: its chains and filters."""

    scopes: list[BundleScope]
    startDate: NotRequired[str | None]
    """
    Only records from this time on, inclusive.
    """
    endDate: NotRequired[str | None]
    """
    Only records up to this time, inclusive.
    """
    entityId: NotRequired[str | None]
    """
    Only records about this entity.
    """
    receipts: NotRequired[bool]
    """
    Add a receipt of each record, and the set of all trusted keys.
    """


ChainRecord: TypeAlias = AuditEvent | Amendment | Transition | DamagedRecord
"""JSON value ``ChainRecord`` in requests or replies."""


class ConnectionBody(TypedDict):
    """Request body that defines a connection; if `enabled` is omitted, the stored value stays."""

    name: str
    type: ConnectionType
    enabled: NotRequired[bool]
    source: NotRequired[Source]
    simulator: NotRequired[Simulator | None]
    signals: NotRequired[list[SignalDefinition]]
    createdAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    editedBy: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    lookup: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    stats: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    status: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    statusReason: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    surfaces: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    updatedAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """


class ConnectionDefinition(TypedDict):
    """A data connection with its status and the surfaces that own it.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    lookup: str
    name: str
    type: ConnectionType
    enabled: bool
    source: ConnectionSource
    simulator: dict[str, Any] | None
    signals: list[ConnectionSignal]
    status: ConnectionDefinitionStatus
    statusReason: str | None
    stats: ConnectionStatistics
    surfaces: list[str]
    createdAt: str
    updatedAt: str
    editedBy: str


class ConnectionDefinitionList(TypedDict):
    """A page of data connections; `cursor` is present if another page follows."""

    connections: list[ConnectionDefinition]
    cursor: NotRequired[str]


class CreatedImport(TypedDict):
    """An import that waits for its file: send it to `uploadUrl` with PUT and the headers `uploadHeaders`."""

    importId: str
    status: JobStatus
    statusUrl: str
    connection: str
    format: ImportFormat
    fileName: str
    mapping: ImportMappingReply
    createdAt: str
    uploadExpiresAt: str
    startedAt: str | None
    progress: ImportProgress
    accepted: int
    duplicates: int
    rejected: int
    files: list[RejectedRows]
    expiresAt: str
    error: str | None
    errorCode: str | None
    uploadUrl: str
    uploadHeaders: dict[str, str]


class DataStoreList(TypedDict):
    """The data stores (Cosmos DB accounts) of the workspace."""

    dataStores: list[DeclaredStore]


class FilterBody(TypedDict):
    """Filter of the events that a webhook receives; an omitted or null property restricts nothing."""

    surfaces: NotRequired[Lookups | None]
    connections: NotRequired[Lookups | None]
    severities: NotRequired[Severities | None]


class Import(TypedDict):
    """An import. It waits for its start while `status` is `pending` and `startedAt` is null.

    `rows` of the progress is the sum of `accepted`, `duplicates` and `rejected`. `files` is empty if no row was
    rejected, and until the status is `completed`; `error` is null unless the status is `failed`. `errorCode` is the
    code with which `error` begins; null if the failure has no code.
    """

    importId: str
    status: JobStatus
    statusUrl: str
    connection: str
    format: ImportFormat
    fileName: str
    mapping: ImportMappingReply
    createdAt: str
    uploadExpiresAt: str
    startedAt: str | None
    progress: ImportProgress
    accepted: int
    duplicates: int
    rejected: int
    files: list[RejectedRows]
    expiresAt: str
    error: str | None
    errorCode: str | None


class ImportBody(TypedDict):
    """Request body that creates an import of earlier telemetry.

    `bytes` is the size of the file that will be uploaded. `mapping` states which columns of the file contain the time,
    the ids and the payload of the messages.
    """

    format: ImportFormat
    fileName: str
    """
    Name of the file, for people.
    """
    bytes: NotRequired[int | None]
    """
    Size of the file in bytes; an upload of another size is incomplete.
    """
    mapping: MappingBody


class ImportList(TypedDict):
    """List of the caller's imports."""

    imports: list[Import]


class Policies(TypedDict):
    """Policies that apply to the whole workspace, such as those for audit chains and telemetry."""

    provenance: NotRequired[ProvenancePolicy | None]
    quotas: NotRequired[Quotas]
    telemetry: NotRequired[TelemetryPolicy]
    signatures: NotRequired[SignaturePolicy]


class WebhookBody(TypedDict):
    """Request body that defines a webhook."""

    url: str
    format: NotRequired[MessageFormat]
    description: NotRequired[Description | None]
    eventTypes: list[WebhookEventType]
    filter: NotRequired[FilterBody]
    enabled: NotRequired[bool | None]


class WebhookChangeBody(TypedDict):
    """Request body that replaces the definition of a webhook."""

    url: str
    format: NotRequired[MessageFormat]
    description: NotRequired[Description | None]
    eventTypes: list[WebhookEventType]
    filter: NotRequired[FilterBody]
    enabled: NotRequired[bool | None]
    createdAt: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    createdBy: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    disabledReason: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    id: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """


class WorkspaceBody(TypedDict):
    """Request body that changes the workspace."""

    name: str
    description: NotRequired[str | None]
    policies: Policies
    etag: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    id: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    limits: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    stats: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    tier: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
    version: NotRequired[Any]
    """
    Set by the service; it may be sent back with its current value.
    """
