"""Errors as GraphQL clients see them: message, path, code, and nothing of the inside."""

from typing import Any

from graphql import GraphQLError

from shared.errors import WorkspaceError
from shared.graphql_api.codes import INTERNAL_ERROR, VALIDATION_ERROR, extensions_of
from shared.observability import logs

_LOG = logs.logger("graphql")


def formatted(error: GraphQLError) -> dict[str, Any]:
    """Return an error of validation or execution; what was not foreseen is logged and not shown."""
    cause = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    shown: dict[str, Any] = {"message": error.message, "path": list(error.path or ())}
    if error.locations:
        shown["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    if isinstance(cause, WorkspaceError):
        return {**shown, "message": cause.detail, "extensions": extensions_of(cause)}
    if cause is None and error.path is None:
        return {**shown, "extensions": {"code": VALIDATION_ERROR}}
    if cause is None and isinstance(error.extensions, dict) and error.extensions.get("code") == VALIDATION_ERROR:
        return {**shown, "extensions": {"code": VALIDATION_ERROR}}
    _LOG.error("a field failed", exc_info=cause or error)
    return {**shown, "message": "The service failed; its log has the reason.", "extensions": {"code": INTERNAL_ERROR}}
