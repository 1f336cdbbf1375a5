"""What the models of the workspace document are made of."""

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


DECLARED: Final = {"written": True}
"""Validation context of a document that is being declared.

What is stored was declared under earlier rules and is read without it: a member or a query must not vanish because its
name breaks a newer rule.
"""


def _written_name(text: str, info: ValidationInfo) -> str:
    return validate_name(text) if info.context == DECLARED else text


PrintableText = Annotated[str, AfterValidator(_written_name)]
"""A name that another service gives, of any length."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME), AfterValidator(_written_name)]
"""A name or an id; the rules of ``shared.validation.names`` hold where a document declares it."""


def _instant(value: object) -> object:
    return parse_rfc3339(value) if isinstance(value, str) else value


Instant = Annotated[AwareDatetime, BeforeValidator(_instant), PlainSerializer(rfc3339, when_used="json")]


class Model(BaseModel):
    """Base of the document's models: camelCase as written, nothing unknown, frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
