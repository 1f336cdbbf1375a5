"""Documentation of an operation's replies and parameters, declared next to its handler.

The OpenAPI document is generated from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class DocumentedReply:
    """One reply of an operation, other than a problem document.

    Attributes:
        status: HTTP status.
        description: one sentence.
        shape: type of the JSON body, for example a ``TypedDict``; None if the body is not JSON.
        example: a JSON body that the service really returns.
        forms: JSON schemas of the body in further media types, by media type.
        headers: description of each header that only this reply has, by name.
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
NOT_MODIFIED = DocumentedReply(304, "The caller's copy is current.")
ETAG = {"ETag": "Validator of the reply, for If-None-Match."}
"""Header of replies that accept conditional reads."""

STATE = {"ETag": "Entity tag of the stored version, for If-Match; it changes with each write."}
"""Header of replies about items that accept conditional writes."""


@dataclass(frozen=True, slots=True)
class OperationDocs:
    """Documentation of an operation for the OpenAPI document, in addition to its declaration.

    Attributes:
        replies: declarations of the successful replies.
        error_statuses: statuses of error replies, in addition to those that the declaration implies.
        example: a JSON body of a request.
        body_schema: JSON schema of the body, if its model does not describe it fully.
        path: JSON schemas of path parameters, by name; a parameter without a schema is any text.
        query: OpenAPI Parameter Objects of query parameters that are not in the query model.
        headers: description, JSON schema and example of each request header that the operation reads, by name.
        errors: type and example of the JSON body of its error replies, if they are not problem documents.
        listed: whether the OpenAPI document contains the route template. If not, it contains one path for each item
            of the workspace.
    """

    replies: tuple[DocumentedReply, ...] = ()
    error_statuses: tuple[int, ...] = ()
    example: Any = None
    body_schema: Mapping[str, Any] | None = None
    path: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    query: tuple[Mapping[str, Any], ...] = ()
    headers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    errors: tuple[Any, Any] | None = None
    listed: bool = True


UNDOCUMENTED = OperationDocs()
