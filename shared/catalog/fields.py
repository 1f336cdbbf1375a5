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

from shared.timestamps import parse_rfc3339, rfc3339
from shared.validation.names import MAX_NAME, validate_name

LOOKUP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Lookup = Annotated[str, StringConstraints(pattern=LOOKUP_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]
JsonPointer = Annotated[str, StringConstraints(pattern=r"^(/([^/~]|~[01])*)*$", max_length=512)]


DECLARED: Final = {"declared": True}
"""Validation context for a document that is being applied.

Stored items are read without it, because they were declared under earlier rules: a member or query must not disappear
because its name violates a newer rule.
"""


def _check_declared_name(text: str, info: ValidationInfo) -> str:
    return validate_name(text) if info.context == DECLARED else text


PrintableText = Annotated[str, AfterValidator(_check_declared_name)]
"""Name from another service, of any length."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME), AfterValidator(_check_declared_name)]
"""Name or id; the rules of ``shared.validation.names`` apply only to declared documents."""


def _parse_instant(value: object) -> object:
    return parse_rfc3339(value) if isinstance(value, str) else value


Instant = Annotated[AwareDatetime, BeforeValidator(_parse_instant), PlainSerializer(rfc3339, when_used="json")]


class Model(BaseModel):
    """Base class of the document's models: camelCase aliases, no unknown fields, immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
