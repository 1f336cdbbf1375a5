"""GraphQL error codes and error objects for service errors; independent of the GraphQL library."""

from typing import Any, Final

from shared.errors import Kind, WorkspaceError

VALIDATION_ERROR: Final = "VALIDATION_ERROR"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
RATE_LIMITED: Final = "RATE_LIMITED"
MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
"""Maximum size in bytes of a reply, including the rows of all queries, as JSON text."""

_CODES: Final = {
    Kind.INVALID: VALIDATION_ERROR,
    Kind.LENGTH_REQUIRED: VALIDATION_ERROR,
    Kind.TOO_LARGE: VALIDATION_ERROR,
    Kind.TARGET_TOO_LONG: VALIDATION_ERROR,
    Kind.HEADERS_TOO_LARGE: VALIDATION_ERROR,
    Kind.UNKNOWN_ENCODING: VALIDATION_ERROR,
    Kind.METHOD_NOT_ALLOWED: VALIDATION_ERROR,
    Kind.UNAUTHENTICATED: "UNAUTHORIZED",
    Kind.FORBIDDEN: "FORBIDDEN",
    Kind.NOT_FOUND: "RESOURCE_NOT_FOUND",
    Kind.THROTTLED: RATE_LIMITED,
}
_ENGINE_ERRORS: Final = frozenset({"QUERY_INVALID", "QUERY_NOT_READ_ONLY", "QUERY_TOO_LARGE"})
"""Engine errors about an approved query; for the caller, who did not write the query, they are internal errors."""


def build_reply_too_large_error() -> WorkspaceError:
    """Build the error for a request whose reply would have more than ``MAX_REPLY_BYTES``."""
    detail = f"The reply has more than {MAX_REPLY_BYTES} bytes; select fewer fields, aliases or rows, or smaller pages."
    return WorkspaceError(Kind.TOO_LARGE, "RESULT_TOO_LARGE", detail)


def to_graphql_code(error: WorkspaceError) -> str:
    """Return the GraphQL error code for a service error.

    An error of the query engine about the text of a saved query becomes ``INTERNAL_ERROR``, because the caller did not
    write this text.
    """
    return INTERNAL_ERROR if error.code in _ENGINE_ERRORS else _CODES.get(error.kind, INTERNAL_ERROR)


def to_graphql_error_object(error: WorkspaceError) -> dict[str, Any]:
    """Convert the service error of a rejected request to a GraphQL error object."""
    return {"message": error.detail, "path": [], "extensions": to_graphql_extensions(error)}


def to_graphql_extensions(error: WorkspaceError) -> dict[str, Any]:
    """Build the ``extensions`` of a GraphQL error object from a service error: code, reason and invalid fields."""
    code = to_graphql_code(error)
    extensions: dict[str, Any] = {"code": code}
    if code == INTERNAL_ERROR:
        extensions["reason"] = error.code
    if "errors" in error.members:
        extensions["errors"] = error.members["errors"]
    return extensions
