"""Models of the workspace document; the catalog stores items in the same form."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, PlainSerializer, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.catalog.fields import LOOKUP_PATTERN, Instant, JsonPointer, Lookup, Model, Name, PrintableText, Text
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

__all__ = [
    "DEFAULT_REASON_CATEGORIES",
    "LOOKUP_PATTERN",
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
    "ParameterType",
    "Policies",
    "ProvenancePolicy",
    "QueryParameter",
    "Quotas",
    "RampVariable",
    "RandomWalkVariable",
    "Simulator",
    "SineVariable",
    "Source",
    "SquareVariable",
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
    """Identity of the workspace that the deployment serves."""

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
    """Rules of the audit chains; without it, the workspace has no provenance and its operations reply 503."""

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


class Policies(Model):
    """Workspace-wide policies."""

    provenance: ProvenancePolicy | None = None
    quotas: Quotas = Quotas()


class Member(Model):
    """Principal of the workspace: a person or a service."""

    id: Name
    name: Name
    role: Role
    rights: tuple[AccessRight, ...] = ()
    enabled: bool = True
    service: bool = False
    oid: PrintableText | None = Field(None, description="Object id of the principal in Entra ID.")

    @property
    def access_rights(self) -> frozenset[AccessRight]:
        """Rights of the role and additional rights of the member."""
        return ROLE_RIGHTS[self.role] | frozenset(self.rights)


class ConnectionType(StrEnum):
    """Source of a connection's telemetry."""

    CLOUD_IOT_HUB = "CLOUD_IOT_HUB"
    CLOUD_EVENT_HUB = "CLOUD_EVENT_HUB"
    SIMULATOR = "SIMULATOR"


class TimestampFormat(StrEnum):
    """Format of the time at a connection's ``timestampPointer``."""

    RFC3339 = "rfc3339"
    EPOCH_SECONDS = "epochSeconds"
    EPOCH_MILLISECONDS = "epochMilliseconds"


class Source(Model):
    """Selection of the events that belong to a connection, and the pointers to their fields."""

    devices: tuple[Text, ...] = Field((), description="Patterns of the IoT Hub device id or the message's deviceId.")
    timestamp_pointer: JsonPointer = Field("/timestamp", alias="timestampPointer")
    device_id_pointer: JsonPointer = Field("/deviceId", alias="deviceIdPointer")
    message_id_pointer: JsonPointer = Field("/messageId", alias="messageIdPointer")
    timestamp_format: TimestampFormat = Field(TimestampFormat.RFC3339, alias="timestampFormat")
    event_hub: PrintableText | None = Field(None, alias="eventHub")
    consumer_group: PrintableText = Field("$Default", alias="consumerGroup")


class Connection(Model):
    """Data connection; its id is its lookup."""

    lookup: Lookup
    name: Name
    type: ConnectionType
    enabled: bool = True
    source: Source = Source()
    simulator: Simulator | None = None


class Surface(Model):
    """Named group of connections with the queries over them."""

    lookup: Lookup
    name: Name
    description: str | None = None
    connections: tuple[Lookup, ...] = ()


class ParameterType(StrEnum):
    """Kusto's scalar type names."""

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
    """Declared parameter; required if it has no default."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
    type: ParameterType
    default: Any = None

    @property
    def required(self) -> bool:
        """True if the caller must send the parameter."""
        return "default" not in self.model_fields_set

    @model_serializer(mode="wrap")
    def _omit_missing_default(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if self.required:
            fields.pop("default", None)
        return fields


class Approval(Model):
    """Person and time of the approval of a query."""

    approved_by: Name = Field(alias="approvedBy")
    approved_at: Instant = Field(alias="approvedAt")


ApiPath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,255}$")]
Kql = Annotated[str, StringConstraints(min_length=1, max_length=65536)]


class WarmQuery(Model):
    """Named query; a draft until it is approved."""

    lookup: Lookup
    api_path: ApiPath | None = Field(None, alias="apiPath")
    name: Name
    description: str | None = None
    surface: Lookup
    kql: Kql
    parameters: tuple[QueryParameter, ...] = ()
    cache_seconds: int = Field(0, alias="cacheSeconds", ge=0, le=86400)
    approval: Approval | None = None


class DataClass(StrEnum):
    """Class of the data in a container."""

    OPERATIONAL = "operational"
    REFERENCE = "reference"
    EVIDENCE = "evidence"


class Verb(StrEnum):
    """Operation that a table can expose."""

    LIST = "list"
    READ = "read"
    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


PARTITION_KEY_PATH: Final = r"/[A-Za-z0-9_.-]{1,128}(/[A-Za-z0-9_.-]{1,128})?"
"""Path of one or two levels; other characters are excluded because libraries interpret them differently."""


class Container(Model):
    """Workspace record of a container."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{1,254}$")]
    partition_key_path: Annotated[str, StringConstraints(pattern=f"^{PARTITION_KEY_PATH}$")] = Field(
        alias="partitionKeyPath"
    )
    data_class: DataClass = Field(alias="dataClass")
    expose: Annotated[frozenset[Verb], PlainSerializer(sorted)] = frozenset()
    provisioned: bool = True


class DatabaseAccess(StrEnum):
    """Access to the documents of an account."""

    GRANTED = "granted"
    REFUSED = "refused"


class Database(Model):
    """Database of a data store."""

    lookup: Lookup
    access: DatabaseAccess = DatabaseAccess.GRANTED
    containers: tuple[Container, ...] = ()


class DataStore(Model):
    """Document-store account of the workspace."""

    lookup: Lookup
    databases: tuple[Database, ...] = ()


class WorkspaceDocument(Model):
    """Complete workspace as one document."""

    workspace: WorkspaceInfo
    tier: Tier = Tier.FREE
    limits: TierLimits | None = None
    policies: Policies = Policies()
    team: tuple[Member, ...] = ()
    connections: tuple[Connection, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    warm_queries: tuple[WarmQuery, ...] = Field((), alias="warmQueries")
    data_stores: tuple[DataStore, ...] = Field((), alias="dataStores")
