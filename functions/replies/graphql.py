"""Replies of the GraphQL interface."""

from typing import Any, Final, NotRequired, TypedDict

from shared.http.operation_docs import DocumentedReply, OperationDocs


class GraphQLError(TypedDict):
    """An error; its code stands in the extensions."""

    message: str
    path: list[str | int]
    locations: NotRequired[list[dict[str, int]]]
    extensions: dict[str, Any]


class GraphQLReply(TypedDict):
    """The outcome of a request."""

    data: NotRequired[dict[str, Any] | None]
    errors: NotRequired[list[GraphQLError]]


_EXAMPLE: Final = {"query": "{ workspace { id name stats { connectionCount } } }"}
_TAKES: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "variables": {"type": ["object", "null"]},
        "operationName": {"type": ["string", "null"]},
        "extensions": {"type": ["object", "null"]},
    },
}
_ASKS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "query",
        "required": True,
        "description": "The document; mutations are for POST.",
        "schema": {"type": "string", "pattern": r"\S", "maxLength": 65_536},
        "example": _EXAMPLE["query"],
    },
    {
        "name": "operationName",
        "required": False,
        "description": "Which of the document's operations.",
        "schema": {"type": "string", "maxLength": 65_536},
    },
    {
        "name": "variables",
        "required": False,
        "description": "Values of the operation's variables, as JSON.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {}}},
    },
)
_DATA = {"data": {"workspace": {"id": "plant-a", "name": "Plant A", "stats": {"connectionCount": 4}}}}
_ERROR = {"message": "The query cannot be read.", "path": [], "extensions": {"code": "VALIDATION_ERROR"}}
_ERRORS = (GraphQLReply, {"errors": [_ERROR]})
_NEWER: Final = {"application/graphql-response+json": {"$ref": "#/components/schemas/GraphQLReply"}}
_ANSWER = DocumentedReply(200, "Data, errors, or both.", GraphQLReply, _DATA, _NEWER)

POSTED = OperationDocs((_ANSWER,), refusals=(400, 403, 413), example=_EXAMPLE, body_schema=_TAKES, errors=_ERRORS)
ASKED = OperationDocs((_ANSWER,), refusals=(400, 403, 405), errors=_ERRORS, query=_ASKS)
