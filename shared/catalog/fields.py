"""What the models of the workspace document are made of."""

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, StringConstraints

from shared.timestamps import parse_rfc3339, rfc3339

LOOKUP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Lookup = Annotated[str, StringConstraints(pattern=LOOKUP_PATTERN)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]
JsonPointer = Annotated[str, StringConstraints(pattern=r"^(/([^/~]|~[01])*)*$", max_length=512)]


def _instant(value: object) -> object:
    return parse_rfc3339(value) if isinstance(value, str) else value


Instant = Annotated[AwareDatetime, BeforeValidator(_instant), PlainSerializer(rfc3339, when_used="json")]


class Model(BaseModel):
    """Base of the document's models: camelCase as written, nothing unknown, frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
