"""What an operation answers, declared where its handler stands; the OpenAPI document is made from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of an operation, other than a problem document.

    Attributes:
        status: HTTP status.
        description: what it says, one sentence.
        shape: type of the JSON body, a ``TypedDict`` for instance; None where there is no body of JSON.
        example: a JSON body as it is really answered.
        forms: further media types of the body, each with its JSON schema.
        headers: what each header of this answer's own says, by name.
    """

    status: int
    description: str
    shape: Any = None
    example: Any = None
    forms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


TEXT_FORM: Mapping[str, Any] = {"type": "string"}
BYTES_FORM: Mapping[str, Any] = {"type": "string", "contentEncoding": "binary"}
NO_CONTENT = Answer(204, "Done.")
NOT_MODIFIED = Answer(304, "What the caller has is still what there is.")
ETAG = {"ETag": "Validator of what is answered, for If-None-Match."}
"""Header of answers that can be asked for again on condition."""

STATE = {"ETag": "Names the state of what is stored, for If-Match: another one after each change."}
"""Header of answers that tell of what can be changed on condition."""


@dataclass(frozen=True, slots=True)
class Docs:
    """What readers of the OpenAPI document are told of an operation beyond its declaration.

    Attributes:
        answers: what it answers when all is well.
        refusals: statuses of its problem documents beyond those that its declaration implies.
        example: a JSON body that it takes.
        takes: JSON schema of the body where its model says too little.
        path: JSON schemas of path parameters that must be more than text, by name.
        asks: Parameter Objects of the query parameters that no model reads.
        heeds: request headers that it heeds, each with its description, JSON schema and example, by name.
        errors: type and example of the JSON body of its refusals, where they are no problem documents.
        listed: whether it stands in the document under its own template; what the workspace makes concrete is listed
            by its concrete paths alone.
    """

    answers: tuple[Answer, ...] = ()
    refusals: tuple[int, ...] = ()
    example: Any = None
    takes: Mapping[str, Any] | None = None
    path: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    asks: tuple[Mapping[str, Any], ...] = ()
    heeds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    errors: tuple[Any, Any] | None = None
    listed: bool = True


UNDOCUMENTED = Docs()
