"""The refusals that stores and rules share."""

from shared.errors import Kind, WorkspaceError


def document_not_found() -> WorkspaceError:
    """Return the error for a document that is not there."""
    return WorkspaceError(Kind.NOT_FOUND, "DOCUMENT_NOT_FOUND", "There is no document with this id and partition key.")


def document_exists() -> WorkspaceError:
    """Return the error for an id that is taken."""
    return WorkspaceError(Kind.CONFLICT, "DOCUMENT_EXISTS", "There is a document with this id and partition key.")


def container_exists() -> WorkspaceError:
    """Return the error for a container's name that is taken."""
    return WorkspaceError(Kind.CONFLICT, "CONTAINER_EXISTS", "The database has a container, or a record, of this name.")


def table_not_found() -> WorkspaceError:
    """Return the error for a table that is not there."""
    return WorkspaceError(Kind.NOT_FOUND, "TABLE_NOT_FOUND", "The database has no such table.")


def data_plane_forbidden() -> WorkspaceError:
    """Return the error for an account that grants no access to documents."""
    return WorkspaceError(
        Kind.FORBIDDEN, "DATA_PLANE_FORBIDDEN", "The account exists, but access to its documents was not granted."
    )


def throttled(seconds: float) -> WorkspaceError:
    """Return the error for an account that asks for a pause of so many seconds."""
    whole = max(1, -int(-seconds // 1))
    return WorkspaceError(Kind.THROTTLED, "THROTTLED", "The account asks for a pause; try again.", retryAfter=whole)


def unavailable() -> WorkspaceError:
    """Return the error for an account that does not answer; nothing was changed."""
    detail = "The data store does not answer at the moment; try again."
    return WorkspaceError(Kind.UNAVAILABLE, "DATA_STORE_UNAVAILABLE", detail)


def outcome_unknown() -> WorkspaceError:
    """Return the error for a write of which nobody knows whether it was done."""
    detail = "It could not be found out whether the document was written; read it before you write it again."
    return WorkspaceError(Kind.UNAVAILABLE, "DOCUMENT_OUTCOME_UNKNOWN", detail)
