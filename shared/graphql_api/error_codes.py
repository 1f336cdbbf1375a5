"""The codes of GraphQL errors, and refusals of a request as a whole; free of the GraphQL library."""

from typing import Any, Final

from shared.errors import Kind, WorkspaceError

VALIDATION_ERROR: Final = "VALIDATION_ERROR"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
RATE_LIMITED: Final = "RATE_LIMITED"
_CODES: Final = {
    Kind.INVALID: VALIDATION_ERROR,
    Kind.TOO_LARGE: VALIDATION_ERROR,
    Kind.METHOD_NOT_ALLOWED: VALIDATION_ERROR,
    Kind.UNAUTHENTICATED: "UNAUTHORIZED",
    Kind.FORBIDDEN: "FORBIDDEN",
    Kind.NOT_FOUND: "RESOURCE_NOT_FOUND",
    Kind.THROTTLED: RATE_LIMITED,
}
_ENGINE_REFUSALS: Final = frozenset({"QUERY_INVALID", "QUERY_NOT_READ_ONLY", "QUERY_TOO_LARGE"})
"""Said of a query that was approved: not the caller's fault, whatever their kind."""


def to_graphql_code(error: WorkspaceError) -> str:
    """Return the code that GraphQL clients branch on."""
    return INTERNAL_ERROR if error.code in _ENGINE_REFUSALS else _CODES.get(error.kind, INTERNAL_ERROR)


def to_error_object(error: WorkspaceError) -> dict[str, Any]:
    """Return a refusal of the request as a whole."""
    return {"message": error.detail, "path": [], "extensions": error_extensions(error)}


def error_extensions(error: WorkspaceError) -> dict[str, Any]:
    """Return the extensions of a refusal."""
    code = to_graphql_code(error)
    extensions: dict[str, Any] = {"code": code}
    if code == INTERNAL_ERROR:
        extensions["reason"] = error.code
    if "errors" in error.members:
        extensions["errors"] = error.members["errors"]
    return extensions
