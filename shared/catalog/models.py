"""Pydantic models of the workspace document; the catalog stores items in the same form."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
)

from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.catalog.alert_rule_models import AlertRule
from shared.catalog.fields import (
    LOOKUP_PATTERN,
    Instant,
    JsonPointer,
    Lookup,
    MemberId,
    Model,
    Name,
    PrintableText,
    Text,
)
from shared.catalog.signal_models import MAX_SIGNALS, SignalDefinition, SignalType
from shared.catalog.signature_models import QuerySignature, SignaturePolicy, SignedDecision
from shared.catalog.simulator_models import (
    ChoiceVariable,
    ConstantVariable,
    CounterVariable,
    NormalVariable,
    RampVariable,
    RandomWalkVariable,
    Simulator,
    SineVariable,
    SquareVariable,
    UniformVariable,
    Variable,
    VariableBase,
)
from shared.validation.redirect_uris import find_redirect_uri_error

__all__ = [
    "DEFAULT_REASON_CATEGORIES",
    "LOOKUP_PATTERN",
    "AlertRule",
    "Approval",
    "ChoiceVariable",
    "Connection",
    "ConnectionType",
    "ConstantVariable",
    "Container",
    "CounterVariable",
    "DataClass",
    "DataStore",
    "Database",
    "DatabaseAccess",
    "Instant",
    "JsonPointer",
    "Lookup",
    "Member",
    "Model",
    "Name",
    "NormalVariable",
    "OAuthClient",
    "ParameterType",
    "Policies",
    "ProvenancePolicy",
    "QueryParameter",
    "Quotas",
    "RampVariable",
    "RandomWalkVariable",
    "Rejection",
    "SignalDefinition",
    "SignalType",
    "SignaturePolicy",
    "Simulator",
    "SineVariable",
    "Source",
    "SquareVariable",
    "StoredWarmQuery",
    "Surface",
    "Text",
    "Tier",
    "TierLimits",
    "TimestampFormat",
    "UniformVariable",
    "Variable",
    "VariableBase",
    "Verb",
    "WarmQuery",
    "WorkspaceDocument",
    "WorkspaceInfo",
]

DEFAULT_REASON_CATEGORIES = (
    "data-entry-error",
    "transcription-error",
    "equipment-malfunction",
    "protocol-deviation",
    "recalculation",
    "delayed-entry",
    "other",
)


class WorkspaceInfo(Model):
    """Id, name and description of the workspace that this deployment serves."""

    id: Lookup
    name: Name
    description: str | None = None


class Tier(StrEnum):
    """Rate-limit tier of the workspace."""

    FREE = "free"
    PRO = "pro"
    ENTERPRISE = "enterprise"


class TierLimits(Model):
    """Rate limits of the enterprise tier."""

    requests_per_minute: int = Field(alias="requestsPerMinute", ge=1)
    concurrent: int = Field(ge=1)


class ProvenancePolicy(Model):
    """Rules of the audit chains; without this policy, audit operations reply 503."""

    require_approval: bool = Field(False, alias="requireApproval")
    require_two_person_auth: bool = Field(False, alias="requireTwoPersonAuth")
    require_reason_text: bool = Field(False, alias="requireReasonText")
    reason_categories: tuple[Name, ...] = Field(DEFAULT_REASON_CATEGORIES, alias="reasonCategories", min_length=1)


class Quotas(Model):
    """Quotas of each principal; a missing value means the default of the tier."""

    streams_per_principal: int | None = Field(
        None, alias="streamsPerPrincipal", ge=1, description="Maximum number of open live streams."
    )
    jobs_per_principal: int | None = Field(
        None, alias="jobsPerPrincipal", ge=1, description="Maximum number of unfinished downloads."
    )
    download_bytes: int | None = Field(
        None, alias="downloadBytes", ge=1, description="Maximum total size of stored download files in bytes."
    )


_MAX_AHEAD_SECONDS: Final = 366 * 24 * 3600
"""Largest value of the policy `maxAheadSeconds`, a year."""


class TelemetryPolicy(Model):
    """Rules for telemetry that is sent over HTTPS."""

    require_bound_keys: bool = Field(
        default=False,
        alias="requireBoundKeys",
        description="Only credentials that are bound to connections may send telemetry.",
    )
    max_ahead_seconds: int = Field(
        default=300,
        alias="maxAheadSeconds",
        ge=0,
        le=_MAX_AHEAD_SECONDS,
        description="Seconds that a message's timestamp may be ahead of the service's clock.",
    )
    require_declared_devices: bool = Field(
        default=False,
        alias="requireDeclaredDevices",
        description="A message's device must match `source.devices` of its connection, if that is not empty.",
    )


class Policies(Model):
    """Policies that apply to the whole workspace, such as those for audit chains and telemetry."""

    provenance: ProvenancePolicy | None = None
    quotas: Quotas = Quotas()
    telemetry: TelemetryPolicy = TelemetryPolicy()
    signatures: SignaturePolicy = SignaturePolicy()


def _remove_repeated_rights(rights: tuple[AccessRight, ...]) -> tuple[AccessRight, ...]:
    return tuple(dict.fromkeys(rights))


class Member(Model):
    """Principal of the workspace: a person or a service."""

    id: MemberId
    name: Name
    role: Role
    rights: Annotated[tuple[AccessRight, ...], AfterValidator(_remove_repeated_rights)] = ()
    enabled: bool = True
    service: bool = False
    oid: PrintableText | None = Field(None, description="Object id of the principal in Entra ID.")

    @property
    def access_rights(self) -> frozenset[AccessRight]:
        """All rights of the member: the rights of the role and the member's additional rights."""
        return ROLE_RIGHTS[self.role] | frozenset(self.rights)


def select_known_rights_of_member(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored definition of a member without the access rights that this version does not know.

    A newer version of the service possibly stored such rights. With them, the member could not be parsed.
    """
    rights = definition.get("rights")
    if not isinstance(rights, list):
        return {**definition}
    return {**definition, "rights": [each for each in rights if each in AccessRight]}


class ConnectionType(StrEnum):
    """Type of the source from which a connection receives telemetry."""

    CLOUD_IOT_HUB = "CLOUD_IOT_HUB"
    CLOUD_EVENT_HUB = "CLOUD_EVENT_HUB"
    SIMULATOR = "SIMULATOR"


class TimestampFormat(StrEnum):
    """Format of the timestamps in a connection's messages."""

    RFC3339 = "rfc3339"
    EPOCH_SECONDS = "epochSeconds"
    EPOCH_MILLISECONDS = "epochMilliseconds"


DEFAULT_CONSUMER_GROUP: Final = "$Default"


class Source(Model):
    """Settings of a connection: which Event Hub events belong to it, and JSON Pointers to their fields."""

    devices: tuple[Text, ...] = Field((), description="Patterns of the IoT Hub device id or the message's deviceId.")
    timestamp_pointer: JsonPointer = Field("/timestamp", alias="timestampPointer")
    device_id_pointer: JsonPointer = Field("/deviceId", alias="deviceIdPointer")
    message_id_pointer: JsonPointer = Field("/messageId", alias="messageIdPointer")
    timestamp_format: TimestampFormat = Field(TimestampFormat.RFC3339, alias="timestampFormat")
    event_hub: PrintableText | None = Field(None, alias="eventHub")
    consumer_group: PrintableText = Field(DEFAULT_CONSUMER_GROUP, alias="consumerGroup")


class Connection(Model):
    """Source of telemetry; `lookup` is its id."""

    lookup: Lookup
    name: Name
    type: ConnectionType
    enabled: bool = True
    source: Source = Source()
    simulator: Simulator | None = None
    signals: tuple[SignalDefinition, ...] = Field((), max_length=MAX_SIGNALS)


class Surface(Model):
    """Named group of connections with the queries over them."""

    lookup: Lookup
    name: Name
    description: str | None = None
    connections: tuple[Lookup, ...] = ()


class ParameterType(StrEnum):
    """Type of a query parameter: the name of a scalar type of Kusto."""

    BOOL = "bool"
    INT = "int"
    LONG = "long"
    REAL = "real"
    DECIMAL = "decimal"
    STRING = "string"
    DATETIME = "datetime"
    TIMESPAN = "timespan"
    GUID = "guid"
    DYNAMIC = "dynamic"


class QueryParameter(Model):
    """Declared parameter of a warm query; required if it has no default."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
    type: ParameterType
    default: Any = None

    @property
    def is_required(self) -> bool:
        """True if the caller must send the parameter."""
        return "default" not in self.model_fields_set

    @model_serializer(mode="wrap")
    def _omit_missing_default(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if self.is_required:
            fields.pop("default", None)
        return fields


class Approval(SignedDecision):
    """Approval of a saved query: the member who approved it, and the time."""

    approved_by: Name = Field(alias="approvedBy")
    approved_at: Instant = Field(alias="approvedAt")
    signature: QuerySignature | None = None


ApiPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,255}$")]
Kql = Annotated[str, StringConstraints(min_length=1, max_length=65536)]


class WarmQuery(Model):
    """Warm query: a named KQL query over telemetry; a draft until it is approved."""

    lookup: Lookup
    api_path: ApiPath | None = Field(None, alias="apiPath")
    name: Name
    description: str | None = None
    surface: Lookup
    kql: Kql
    parameters: tuple[QueryParameter, ...] = ()
    cache_seconds: int = Field(0, alias="cacheSeconds", ge=0, le=86400)
    approval: Approval | None = None


class Rejection(SignedDecision):
    """Rejection of a saved query: the member who rejected it, the time, and the reason."""

    rejected_by: Name = Field(alias="rejectedBy")
    rejected_at: Instant = Field(alias="rejectedAt")
    comment: str
    signature: QuerySignature | None = None


class StoredWarmQuery(WarmQuery):
    """Warm query as the catalog stores it; documents cannot declare a rejection."""

    rejection: Rejection | None = None

    @model_serializer(mode="wrap")
    def _omit_missing_rejection(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if self.rejection is None:
            fields.pop("rejection", None)
        return fields


class DataClass(StrEnum):
    """Classification of the data in a Cosmos DB container; callers over HTTPS cannot assign ``evidence``."""

    OPERATIONAL = "operational"
    REFERENCE = "reference"
    EVIDENCE = "evidence"


class Verb(StrEnum):
    """Operation on documents that a container can expose through the API."""

    LIST = "list"
    READ = "read"
    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


PARTITION_KEY_PATH: Final = r"/[A-Za-z0-9_.-]{1,128}(/[A-Za-z0-9_.-]{1,128})?"
"""Pattern of partition key paths, of one or two levels; libraries interpret other characters differently."""


class Container(Model):
    """Catalog entry of a Cosmos DB container."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{1,254}$")]
    partition_key_path: Annotated[str, StringConstraints(pattern=f"^{PARTITION_KEY_PATH}$")] = Field(
        alias="partitionKeyPath"
    )
    data_class: DataClass = Field(alias="dataClass")
    expose: Annotated[frozenset[Verb], PlainSerializer(sorted)] = frozenset()
    provisioned: bool = True


class DatabaseAccess(StrEnum):
    """Access that this service has to the documents of a Cosmos DB account."""

    GRANTED = "granted"
    REFUSED = "refused"


class Database(Model):
    """Database in a data store (Cosmos DB account), with its containers."""

    lookup: Lookup
    access: DatabaseAccess = DatabaseAccess.GRANTED
    containers: tuple[Container, ...] = ()


class DataStore(Model):
    """Cosmos DB account of the workspace."""

    lookup: Lookup
    databases: tuple[Database, ...] = ()


def _validate_redirect_uri(uri: str) -> str:
    if fault := find_redirect_uri_error(uri):
        raise ValueError(fault)
    return uri


RedirectUri = Annotated[str, AfterValidator(_validate_redirect_uri)]


class OAuthClient(Model):
    """Public OAuth client: a tool to which members may delegate rights; it has no secret."""

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    name: Name
    redirect_uris: tuple[RedirectUri, ...] = Field(alias="redirectUris", min_length=1, max_length=20)


class WorkspaceDocument(Model):
    """Complete workspace configuration."""

    workspace: WorkspaceInfo
    tier: Tier = Tier.FREE
    limits: TierLimits | None = None
    policies: Policies = Policies()
    team: tuple[Member, ...] = ()
    connections: tuple[Connection, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    warm_queries: tuple[WarmQuery, ...] = Field((), alias="warmQueries")
    data_stores: tuple[DataStore, ...] = Field((), alias="dataStores")
    alert_rules: tuple[AlertRule, ...] = Field((), alias="alertRules")
    oauth_clients: tuple[OAuthClient, ...] = Field((), alias="oauthClients")
