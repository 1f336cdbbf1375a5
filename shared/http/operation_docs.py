"""Documentation of an operation's replies and parameters, declared next to its handler.

The OpenAPI document is generated from this documentation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class DocumentedReply:
    """One reply of an operation, other than a problem document.

    Attributes:
        status: HTTP status.
        description: one sentence.
        shape: type of the JSON body, for example a ``TypedDict``; None if the body is not JSON.
        example: a JSON body that the service really returns.
        forms: JSON schemas of the body for additional media types, by media type.
        headers: description by name of each header that only this reply has.
    """

    status: int
    description: str
    shape: Any = None
    example: Any = None
    forms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


TEXT_FORM: Mapping[str, Any] = {"type": "string"}
BYTES_FORM: Mapping[str, Any] = {"type": "string", "contentEncoding": "binary"}
NO_CONTENT = DocumentedReply(204, "Done.")
ETAG = {"ETag": "Validator of the reply, for If-None-Match."}
"""Header of replies to operations that read ``If-None-Match``."""

NOT_MODIFIED = DocumentedReply(304, "The caller's copy is current.", headers=ETAG)

STATE = {"ETag": "Entity tag of the stored version, for If-Match; it changes with each write."}
"""Header of replies about items that a request with ``If-Match`` can change."""

DEFINITION = {"ETag": "Entity tag of the stored definition, for If-Match; equal definitions have equal tags."}
"""Header of replies about items of the catalog, whose ETag depends only on the definition."""

IDEMPOTENCY_KEY: Final = "Idempotency-Key"

IDEMPOTENT: Final[Mapping[str, Mapping[str, Any]]] = {
    IDEMPOTENCY_KEY: {
        "description": "Key of 1 to 255 printable characters for safe retries: a repeated request with the same key "
        "has no further effect for 24 hours. A key that was used for another request is rejected with 422. Use a new "
        "UUID for each request.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    }
}
"""Request header of operations that store the key, so that a repetition with the key has no further effect."""

WAITING: Final[Mapping[str, Mapping[str, Any]]] = {
    "Prefer": {
        "description": "`wait=N` (RFC 7240) delays the reply until the job ends, up to N seconds and at most 60. Other "
        "preferences are ignored.",
        "schema": {"type": "string"},
        "example": "wait=30",
    }
}
"""Request header of operations that start a job and can wait for its end."""


def build_enum_schema(values: type[StrEnum]) -> dict[str, Any]:
    """Build the JSON schema of a text property that accepts only the values of an enumeration."""
    return {"allOf": [TypeAdapter(values).json_schema()]}


def build_optional_enum_schema(values: type[StrEnum]) -> dict[str, Any]:
    """Build the JSON schema of a property that is null or one of the values of an enumeration."""
    return {"anyOf": [TypeAdapter(values).json_schema(), {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class OperationDocs:
    """Documentation of an operation for the OpenAPI document, in addition to its declaration.

    Attributes:
        replies: declarations of the successful replies.
        error_statuses: statuses of error replies, in addition to those that the declaration implies.
        example: example of a JSON request body.
        body_schema: JSON schema of the request body, if the body's model does not describe it fully.
        body_forms: JSON schemas of the request body for additional media types, by media type.
        form_examples: examples of the request body in these media types, by media type.
        path: JSON schemas of path parameters by name; a parameter without a schema accepts any text.
        query: OpenAPI Parameter Objects of query parameters that are not in the query model.
        headers: description, JSON schema and example of each request header that the operation reads, by name.
        stores_idempotency_key: False if the operation reads an Idempotency-Key without storing it; such a key is never
            rejected because it was used for another request.
        errors: type and example of the JSON body of error replies, if error replies are not problem documents.
        listed: True if the OpenAPI document contains the route template; False if it contains a path for each item of
            the workspace instead.
    """

    replies: tuple[DocumentedReply, ...] = ()
    error_statuses: tuple[int, ...] = ()
    example: Any = None
    body_schema: Mapping[str, Any] | None = None
    body_forms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    form_examples: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    query: tuple[Mapping[str, Any], ...] = ()
    headers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stores_idempotency_key: bool = True
    errors: tuple[Any, Any] | None = None
    listed: bool = True


UNDOCUMENTED = OperationDocs()
