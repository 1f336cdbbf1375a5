"""Errors that document stores and domain rules share."""

from typing import Final

from shared.errors import Kind, WorkspaceError

CONTAINER_OUTCOME_UNKNOWN: Final = "CONTAINER_OUTCOME_UNKNOWN"


def build_document_not_found_error() -> WorkspaceError:
    """Build the error for a document that does not exist."""
    return WorkspaceError(Kind.NOT_FOUND, "DOCUMENT_NOT_FOUND", "No document has this id and partition key.")


def build_document_exists_error() -> WorkspaceError:
    """Build the error for a new document whose id and partition key are already used."""
    return WorkspaceError(Kind.CONFLICT, "DOCUMENT_EXISTS", "A document with this id and partition key already exists.")


def build_unique_key_conflict_error() -> WorkspaceError:
    """Build the error for a document with the same values in a unique key of the container as another document."""
    detail = "Another document of this partition has the same values in a unique key of the container."
    return WorkspaceError(Kind.CONFLICT, "UNIQUE_KEY_CONFLICT", detail)


def build_partition_full_error() -> WorkspaceError:
    """Build the error for a partition (documents with the same partition key) that accepts no more data."""
    detail = (
        "The documents with this partition key have reached the size limit of the Cosmos DB account;"
        " delete some of them, or use another partition key."
    )
    return WorkspaceError(Kind.STORAGE_FULL, "PARTITION_FULL", detail)


def build_container_exists_error() -> WorkspaceError:
    """Build the error for a container name that is already used."""
    detail = "A container with this name already exists in the database or in the workspace's catalog."
    return WorkspaceError(Kind.CONFLICT, "CONTAINER_EXISTS", detail)


def build_container_outcome_unknown_error() -> WorkspaceError:
    """Build the error for the creation of a container whose result could not be determined."""
    detail = (
        "It is unknown whether the container was created; the account may still create it. The workspace has a record"
        " of it: list the containers to find out whether it is provisioned. If it is still not provisioned after some"
        " minutes, delete the record and create the container again."
    )
    return WorkspaceError(Kind.UNAVAILABLE, CONTAINER_OUTCOME_UNKNOWN, detail)


def build_table_not_found_error() -> WorkspaceError:
    """Build the error for a URL that names an unknown table (exposed container)."""
    return WorkspaceError(Kind.NOT_FOUND, "TABLE_NOT_FOUND", "The database has no table with this name.")


def build_data_plane_forbidden_error() -> WorkspaceError:
    """Build the error for a Cosmos DB account that does not allow the service to access documents."""
    return WorkspaceError(
        Kind.FORBIDDEN,
        "DATA_PLANE_FORBIDDEN",
        "The Cosmos DB account exists, but the service has no access to its documents.",
    )


def build_throttled_error(retry_after_seconds: float) -> WorkspaceError:
    """Build the error for a Cosmos DB account that requests a pause of this many seconds."""
    whole = max(1, -int(-retry_after_seconds // 1))
    return WorkspaceError(
        Kind.THROTTLED,
        "THROTTLED",
        "The Cosmos DB account of this data store is throttling requests; try again later.",
        retryAfter=whole,
    )


def build_store_unavailable_error() -> WorkspaceError:
    """Build the error for an unreachable Cosmos DB account; the request has changed nothing."""
    detail = "The data store is temporarily unavailable; try again."
    return WorkspaceError(Kind.UNAVAILABLE, "DATA_STORE_UNAVAILABLE", detail)


def build_write_outcome_unknown_error() -> WorkspaceError:
    """Build the error for a write of a document whose result could not be determined."""
    detail = "It is unknown whether the document was written; read it before you write it again."
    return WorkspaceError(Kind.UNAVAILABLE, "DOCUMENT_OUTCOME_UNKNOWN", detail)
