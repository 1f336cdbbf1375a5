"""Field types and base class of the workspace document's models."""

from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
)

from shared.provenance.ports import ServiceUser
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.validation.names import MAX_NAME, find_id_error, require_valid_name, to_identity_key
from shared.validation.validation_messages import JSON_POINTER_PATTERN

LOOKUP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Lookup = Annotated[str, StringConstraints(pattern=LOOKUP_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]
JsonPointer = Annotated[str, StringConstraints(pattern=JSON_POINTER_PATTERN, max_length=512)]


DECLARED: Final = {"declared": True}
"""Validation context of pydantic for a workspace document that is loaded.

Stored items are read without this context, because they were declared under earlier rules: a member or query must not
disappear because its name violates a newer rule.
"""


def _validate_declared_name(text: str, info: ValidationInfo) -> str:
    """Check a name of a workspace document or request; accept a name from the store unchanged."""
    return require_valid_name(text) if info.context == DECLARED else text


PrintableText = Annotated[str, AfterValidator(_validate_declared_name)]
"""Printable name of any length that another service defines; stored items can have other characters."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME), AfterValidator(_validate_declared_name)]
"""Name or id; the rules of ``shared.validation.names`` apply to loaded documents, but not to stored items."""

ShortName = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(_validate_declared_name)]
"""Name of at most 64 characters, by the rules of :data:`Name`."""


def _validate_declared_id(text: str, info: ValidationInfo) -> str:
    if info.context == DECLARED and (rule := find_id_error(text)):
        raise ValueError(rule)
    return text


MemberId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME), AfterValidator(_validate_declared_id)]
"""Id of a member, which is part of URLs; the rules for ids apply to loaded documents, but not to stored items."""


def find_reserved_id_error(member_id: str) -> str | None:
    """Return an error message for a member id under which the service itself records audit events; None otherwise.

    The rule applies to new members only: stored members keep their ids.
    """
    user = to_identity_key(member_id)
    if user not in ServiceUser:
        return None
    return f"must not be {user}, in any letter case, because the service records its own audit events as this user"


def _parse_instant_if_text(value: object) -> object:
    return parse_rfc3339(value) if isinstance(value, str) else value


Instant = Annotated[
    AwareDatetime, BeforeValidator(_parse_instant_if_text), PlainSerializer(format_rfc3339, when_used="json")
]


class Model(BaseModel):
    """Base class of workspace document models: camelCase aliases, no unknown fields, finite numbers, immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)
