"""What data stores ask of an account."""

from collections.abc import Sequence
from typing import Protocol

from shared.data_stores.models import (
    AccountContainer,
    DatabasePlace,
    DocumentKey,
    DocumentPage,
    PartitionValue,
    StoredDocument,
    Table,
)


class ContainerStore(Protocol):
    """The containers of databases.

    Methods raise ``WorkspaceError`` UNAVAILABLE ``DATA_STORE_UNAVAILABLE`` when the account does not answer, and
    THROTTLED ``THROTTLED`` with ``retryAfter`` when it asks for a pause.
    """

    async def list(self, place: DatabasePlace) -> Sequence[AccountContainer]:
        """Return the containers of a database by name, whoever made them."""
        ...

    async def find(self, place: DatabasePlace, name: str) -> AccountContainer | None:
        """Return a container, None when there is none of this name."""
        ...

    async def create(self, place: DatabasePlace, container: AccountContainer) -> None:
        """Create a container.

        Raises:
            WorkspaceError: CONFLICT ``CONTAINER_EXISTS``.
        """
        ...


class DocumentStore(Protocol):
    """The documents of tables.

    A write is done once or not at all, also where the account's answer was lost. Methods raise ``WorkspaceError``:
    UNAVAILABLE ``DATA_STORE_UNAVAILABLE``, nothing was written; UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN``, it could not
    be found out whether it was; THROTTLED ``THROTTLED`` with ``retryAfter``; FORBIDDEN ``DATA_PLANE_FORBIDDEN``;
    NOT_FOUND ``TABLE_NOT_FOUND``, the account has no such container.
    """

    async def read(self, table: Table, key: DocumentKey) -> StoredDocument | None:
        """Return a document, None when there is none."""
        ...

    async def create(self, table: Table, key: DocumentKey, text: bytes) -> str:
        """Store a new document; return its ETag.

        Args:
            table: where.
            key: agrees with the document.
            text: the document as JSON.

        Raises:
            WorkspaceError: CONFLICT ``DOCUMENT_EXISTS``.
        """
        ...

    async def replace(self, table: Table, key: DocumentKey, text: bytes, if_match: str | None) -> str:
        """Store a document in place of one; return the new ETag.

        Args:
            table: where.
            key: agrees with the document.
            text: the document as JSON.
            if_match: the ETag that the stored one must have; None for any.

        Raises:
            WorkspaceError: NOT_FOUND ``DOCUMENT_NOT_FOUND``; PRECONDITION_FAILED ``PRECONDITION_FAILED``.
        """
        ...

    async def delete(self, table: Table, key: DocumentKey, if_match: str | None) -> None:
        """Remove a document.

        Raises:
            WorkspaceError: as :meth:`replace`.
        """
        ...

    async def list(
        self, table: Table, partition: PartitionValue, limit: int, after: str | None, *, all_partitions: bool
    ) -> DocumentPage:
        """Return some documents, in an order that no write changes.

        What exists throughout a walk from page to page comes exactly once.

        Args:
            table: where.
            partition: whose documents; not looked at if ``all_partitions``.
            limit: at most so many; fewer where they are large.
            after: ``position`` of the page before; None for the first.
            all_partitions: list every partition.

        Raises:
            WorkspaceError: INVALID naming ``continuationToken``: the store knows no such position.
        """
        ...
