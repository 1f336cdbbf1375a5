"""Errors that document stores and domain rules share."""

from shared.errors import Kind, WorkspaceError


def document_not_found() -> WorkspaceError:
    """Return the error for a missing document."""
    return WorkspaceError(Kind.NOT_FOUND, "DOCUMENT_NOT_FOUND", "No document has this id and partition key.")


def document_exists() -> WorkspaceError:
    """Return the error for a document id that is already used."""
    return WorkspaceError(Kind.CONFLICT, "DOCUMENT_EXISTS", "A document with this id and partition key already exists.")


def container_exists() -> WorkspaceError:
    """Return the error for a container name that is already used."""
    return WorkspaceError(
        Kind.CONFLICT, "CONTAINER_EXISTS", "The database already has a container or a record with this name."
    )


def table_not_found() -> WorkspaceError:
    """Return the error for an unknown table."""
    return WorkspaceError(Kind.NOT_FOUND, "TABLE_NOT_FOUND", "The database has no table with this name.")


def data_plane_forbidden() -> WorkspaceError:
    """Return the error for an account that grants no access to documents."""
    return WorkspaceError(
        Kind.FORBIDDEN, "DATA_PLANE_FORBIDDEN", "The account exists, but access to its documents was not granted."
    )


def throttled(seconds: float) -> WorkspaceError:
    """Return the error for an account that requests a pause of this many seconds."""
    whole = max(1, -int(-seconds // 1))
    return WorkspaceError(
        Kind.THROTTLED, "THROTTLED", "The account is throttling requests; try again later.", retryAfter=whole
    )


def unavailable() -> WorkspaceError:
    """Return the error for an unreachable account; nothing was changed."""
    detail = "The data store is temporarily unavailable; try again."
    return WorkspaceError(Kind.UNAVAILABLE, "DATA_STORE_UNAVAILABLE", detail)


def outcome_unknown() -> WorkspaceError:
    """Return the error for a write whose result could not be determined."""
    detail = "It is unknown whether the document was written; read it before you write it again."
    return WorkspaceError(Kind.UNAVAILABLE, "DOCUMENT_OUTCOME_UNKNOWN", detail)
