"""Models of the query parameters of requests about audit events, amendments and checkpoints.

The module also contains ``VerifyBody``. The body models of events and amendments are in ``shared.provenance.models``.

The API contract requires that invalid dates, limits and offsets are ignored. Empty filters are ignored, too, because
HTML forms send empty fields. All other invalid values are rejected.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shared.http.operation_docs import build_optional_enum_schema
from shared.http.unknown_names import IGNORED
from shared.provenance.models import Body, ScopeKey
from shared.provenance.ports import Filters, Target
from shared.provenance.queries import DEFAULT_EXPORT_LIMIT, DEFAULT_LIMIT, MAX_EXPORT_LIMIT, MAX_LIMIT
from shared.timestamps import format_rfc3339, parse_iso8601

_SIGNED_NUMBER = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER = re.compile(r"-?[0-9]{1,400}")
_BLANK_OFFSET = re.compile(r"(T[0-9:.]+) (?=[0-9]{2}:?[0-9]{2}$)")
_MAX_STORED_NUMBER = 2**62
_TARGET_DESCRIPTION: Final = "Container of the chain. Default: DomainEvents with a scope, PlatformConfig without one."


def _parse_sequence_number(text: str) -> int:
    if not _SIGNED_NUMBER.fullmatch(text):
        raise ValueError("must be a whole number")
    return _parse_and_clamp_to_stored_range(text)


SequenceOrSize = Annotated[
    int | None,
    BeforeValidator(_parse_sequence_number),
    WithJsonSchema({"type": "integer", "format": "int64", "minimum": 1}),
]


class WritableTarget(StrEnum):
    """Targets (kinds of audit chains) to which callers can append events."""

    PLATFORM_CONFIG = Target.PLATFORM_CONFIG
    ACCESS_CONTROL = Target.ACCESS_CONTROL
    DOMAIN_EVENTS = Target.DOMAIN_EVENTS


# Unknown values get the error TARGET_UNKNOWN, so the fields are text and not the enumerations that document them.
TargetName = Annotated[str | None, WithJsonSchema(build_optional_enum_schema(Target))]
WritableTargetName = Annotated[str | None, WithJsonSchema(build_optional_enum_schema(WritableTarget))]


def _build_integer_schema(minimum: int) -> WithJsonSchema:
    """Build the JSON schema of an integer parameter. The model's field is text, because invalid values are ignored."""
    return WithJsonSchema({"type": "integer", "format": "int64", "minimum": minimum})


LimitText = Annotated[str | None, _build_integer_schema(1)]


def _describe_limit(default: int, maximum: int) -> str:
    return (
        f"Maximum number of records, by default {default}. An invalid value selects the default, and a value above "
        f"{maximum} selects {maximum}."
    )


class WindowQuery(BaseModel):
    """Query parameters that select records of a scope by date; invalid values are ignored and named in a header."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    scope_key: ScopeKey = Field(
        None, alias="scopeKey", description="Scope of the records. Default: the workspace's own records."
    )
    start_date: str | None = Field(None, alias="startDate", description="ISO 8601, inclusive; UTC if no zone is given.")
    end_date: str | None = Field(None, alias="endDate", description="ISO 8601, inclusive; UTC if no zone is given.")
    limit: LimitText = Field(None, description=_describe_limit(DEFAULT_LIMIT, MAX_LIMIT))


class SequenceQuery(WindowQuery):
    """Query parameters that select records by date or sequence number, and a page of these records."""

    from_sequence: SequenceOrSize = Field(None, alias="fromSequence", description="First sequence, inclusive.")
    to_sequence: SequenceOrSize = Field(None, alias="toSequence", description="Last sequence, inclusive.")
    offset: Annotated[str | None, _build_integer_schema(0)] = Field(
        None, description="Number of records to skip. Pages shift while records are appended."
    )


class TargetQuery(BaseModel):
    """Query parameter that names the target (kind) of an audit chain."""

    model_config = ConfigDict(extra="ignore")

    target: TargetName = Field(None, description=_TARGET_DESCRIPTION)


class WriteQuery(BaseModel):
    """Query parameter that names the target (kind of audit chain) to which an event is appended."""

    model_config = ConfigDict(extra="ignore")

    target: WritableTargetName = Field(None, description=_TARGET_DESCRIPTION)


class EventsQuery(SequenceQuery):
    """Filters of the query for audit events."""

    target: TargetName = Field(None, description=_TARGET_DESCRIPTION)
    entity_type: str | None = Field(None, alias="entityType", description="Only records of this entity type.")
    action_type: str | None = Field(None, alias="actionType", description="Only records of this action.")
    user_id: str | None = Field(None, alias="userId", description="Only records of this principal.")


class ExportFormat(StrEnum):
    """File formats of an export of audit events."""

    JSON = "json"
    CSV = "csv"


class ExportQuery(WindowQuery):
    """Filters and file format of an export of audit events."""

    target: TargetName = Field(None, description=_TARGET_DESCRIPTION)
    entity_type: str | None = Field(None, alias="entityType", description="Only records of this entity type.")
    action_type: str | None = Field(None, alias="actionType", description="Only records of this action.")
    user_id: str | None = Field(None, alias="userId", description="Only records of this principal.")
    limit: LimitText = Field(None, description=_describe_limit(DEFAULT_EXPORT_LIMIT, MAX_EXPORT_LIMIT))
    format: ExportFormat = Field(ExportFormat.JSON, description="json or csv.")


class VerifyBody(Body):
    """Request body that names the audit chain to verify. If it contains a RecordID, that record is verified, too."""

    scope_key: ScopeKey = Field(None, alias="ScopeKey")
    record_id: Annotated[Any, WithJsonSchema({"type": "string", "pattern": "^[0-9]{12}$"})] = Field(
        None, alias="RecordID", description="A record whose digest is recomputed as well."
    )


class CheckpointQuery(TargetQuery):
    """Query parameters that name the audit chain whose checkpoint is requested."""

    scope_key: ScopeKey = Field(
        None, alias="scopeKey", description="Scope of the chain. Default: the workspace's own chain."
    )


class ProofQuery(CheckpointQuery):
    """Query parameters of a Merkle proof: of inclusion (``sequence``) or of consistency (``from``)."""

    model_config = ConfigDict(json_schema_extra={"required": ["size"]})

    sequence: SequenceOrSize = Field(None, description="Sequence of a record, for an inclusion proof.")
    from_size: SequenceOrSize = Field(
        None, alias="from", description="Number of records that the chain had earlier, for a consistency proof."
    )
    size: SequenceOrSize = Field(
        None, description="Number of records that the proof covers, such as the size of a checkpoint; required."
    )


def _parse_and_clamp_to_stored_range(text: str) -> int:
    """Parse a whole number.

    A number beyond the range of the audit stores is replaced by the nearest number in that range.
    """
    return max(-_MAX_STORED_NUMBER, min(int(text), _MAX_STORED_NUMBER))


@dataclass(slots=True)
class LenientParser:
    """Parser of query parameters that replaces invalid dates, invalid numbers and empty filters by default values.

    Attributes:
        ignored: names of the ignored parameters.
    """

    ignored: list[str] = field(default_factory=list)

    def parse_number(self, parameter_name: str, text: str | None, *, minimum: int, default: int) -> int:
        """Return a parameter as a whole number, or the default if the parameter is missing, invalid or too small."""
        if text is None:
            return default
        if _NUMBER.fullmatch(text) and int(text) >= minimum:
            return _parse_and_clamp_to_stored_range(text)
        self.ignored.append(parameter_name)
        return default

    def parse_iso_timestamp(self, parameter_name: str, text: str | None, *, round_up: bool = False) -> str:
        """Return a query parameter as a timestamp in the format of audit records; empty if it is missing or invalid.

        ``round_up`` is that of :func:`~shared.timestamps.parse_iso8601`.
        """
        if text is None:
            return ""
        try:
            # A plus sign that the client did not percent-encode was decoded as a space.
            return format_rfc3339(parse_iso8601(_BLANK_OFFSET.sub(r"\1+", text.upper()), round_up=round_up))
        except ValueError:
            self.ignored.append(parameter_name)
            return ""

    def parse_range_filters(self, query: WindowQuery) -> Filters:
        """Build a filter of audit records from the dates and sequence numbers of a query; ignore invalid dates."""
        sequences = query if isinstance(query, SequenceQuery) else None
        return Filters(
            start=self.parse_iso_timestamp("startDate", query.start_date, round_up=True),
            end=self.parse_iso_timestamp("endDate", query.end_date),
            from_sequence=None if sequences is None else sequences.from_sequence,
            to_sequence=None if sequences is None else sequences.to_sequence,
        )

    def parse_filter(self, parameter_name: str, text: str | None) -> str:
        """Return the value of a filter parameter; an empty text, which matches all records, if it is missing."""
        if text == "":
            self.ignored.append(parameter_name)
        return text or ""

    def parse_equality_filters(self, query: EventsQuery | ExportQuery) -> dict[str, str]:
        """Return the record properties by which a query filters, with their values, such as ``{"UserID": "ann"}``."""
        filters = {
            "EntityType": self.parse_filter("entityType", query.entity_type),
            "ActionType": self.parse_filter("actionType", query.action_type),
            "UserID": self.parse_filter("userId", query.user_id),
        }
        return {name: value for name, value in filters.items() if value}

    def build_ignored_parameters_header(self) -> dict[str, str]:
        """Return the reply header that lists the ignored parameters; return no header if there are none."""
        return {IGNORED: ", ".join(self.ignored)} if self.ignored else {}
