"""Ports of document-store accounts (Cosmos DB): their containers and their documents."""

from collections.abc import Sequence
from typing import Protocol

from shared.data_stores.models import (
    AccountContainer,
    DatabaseAddress,
    DocumentKey,
    DocumentPage,
    ETag,
    PartitionValue,
    StoredDocument,
    Table,
)


class ContainerStore(Protocol):
    """Access to the containers of document-store accounts.

    Methods raise ``WorkspaceError`` UNAVAILABLE ``DATA_STORE_UNAVAILABLE`` if the account is unreachable, and THROTTLED
    ``THROTTLED`` with ``retryAfter`` if it throttles requests.
    """

    async def list(self, database: DatabaseAddress) -> Sequence[AccountContainer]:
        """Return all containers of a database, sorted by name; empty if the account does not have the database."""
        ...

    async def find_container(self, database: DatabaseAddress, name: str) -> AccountContainer | None:
        """Return the container with this name; None if the database has no such container."""
        ...

    async def create_container(self, database: DatabaseAddress, container: AccountContainer) -> None:
        """Create a Cosmos DB container.

        Raises:
            WorkspaceError: CONFLICT ``CONTAINER_EXISTS``; UNAVAILABLE ``CONTAINER_OUTCOME_UNKNOWN`` if the account has
                possibly created the container, or will create it. After any other error, it has not.
        """
        ...


class DocumentStore(Protocol):
    """Reads and writes documents in tables; a table is a Cosmos DB container that the API exposes.

    A write is done once or not at all, even if the account's reply is lost. Methods raise ``WorkspaceError``:
    UNAVAILABLE ``DATA_STORE_UNAVAILABLE`` if nothing was written; UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN`` if the
    result could not be determined; THROTTLED ``THROTTLED`` with ``retryAfter``; FORBIDDEN ``DATA_PLANE_FORBIDDEN``;
    NOT_FOUND ``TABLE_NOT_FOUND`` if the account does not have the container.
    """

    async def read(self, table: Table, key: DocumentKey) -> StoredDocument | None:
        """Return a document; None if it does not exist."""
        ...

    async def create(self, table: Table, key: DocumentKey, document_json: bytes) -> ETag:
        """Store a new JSON document; return its ETag.

        Args:
            table: table of the document.
            key: key of the document; must match its content.
            document_json: the document as JSON.

        Raises:
            WorkspaceError: CONFLICT ``DOCUMENT_EXISTS`` or ``UNIQUE_KEY_CONFLICT``; STORAGE_FULL ``PARTITION_FULL``.
        """
        ...

    async def replace(self, table: Table, key: DocumentKey, document_json: bytes, if_match: str | None) -> ETag:
        """Replace a document; return the new ETag.

        Args:
            table: table of the document.
            key: key of the document; must match its content.
            document_json: the document as JSON.
            if_match: required ETag of the stored document; None for any.

        Raises:
            WorkspaceError: NOT_FOUND ``DOCUMENT_NOT_FOUND``; PRECONDITION_FAILED ``PRECONDITION_FAILED``; CONFLICT
                ``UNIQUE_KEY_CONFLICT``; STORAGE_FULL ``PARTITION_FULL``.
        """
        ...

    async def delete(self, table: Table, key: DocumentKey, if_match: str | None) -> None:
        """Delete a document.

        Raises:
            WorkspaceError: NOT_FOUND ``DOCUMENT_NOT_FOUND``; PRECONDITION_FAILED ``PRECONDITION_FAILED``.
        """
        ...

    async def list(
        self, table: Table, partition: PartitionValue, limit: int, after_position: str | None, *, all_partitions: bool
    ) -> DocumentPage:
        """Return a page of documents, in an order that no write changes.

        A document that exists during the whole listing is returned exactly once.

        Args:
            table: table of the documents.
            partition: partition of the documents; ignored if ``all_partitions``.
            limit: maximum number of documents; a page of large documents can have fewer.
            after_position: ``next_position`` of the previous page; None for the first page.
            all_partitions: True to list the documents of every partition.

        Raises:
            WorkspaceError: INVALID naming ``continuationToken`` if the position is unknown.
        """
        ...
