"""Operations on documents in the Cosmos DB containers that the API exposes as tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shared.catalog.models import Verb
from shared.conditional_requests import Condition
from shared.data_stores.continuation import ContinuationTokens
from shared.data_stores.document_rules import (
    DocumentDraft,
    build_document_to_store,
    require_valid_document_id,
    serialise_document_draft,
)
from shared.data_stores.errors import build_document_not_found_error
from shared.data_stores.models import MISSING, DocumentKey, Missing, PartitionValue, StoredDocument, Table
from shared.data_stores.partition_keys import ID_PATH, format_partition_key, read_partition_key
from shared.data_stores.ports import DocumentStore
from shared.data_stores.tables import ExposedTable, TableAddress, TableFinder
from shared.errors import build_invalid_field_error
from shared.runtime import SYSTEM_RUNTIME, Runtime


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """Page of the documents in a table (exposed container).

    Attributes:
        texts: documents as JSON texts.
        continuation: continuation token for the next page; None on the last page.
    """

    texts: tuple[bytes, ...]
    continuation: str | None


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """Document as it is stored after a write.

    Attributes:
        key: id and partition key of the document.
        stored: document as stored, with its entity tag.
        partition_path: partition key path of the document's table, such as ``/line``.
    """

    key: DocumentKey
    stored: StoredDocument
    partition_path: str


class FoundDocument(NamedTuple):
    """Stored document that a caller requested.

    Attributes:
        document: the document with its entity tag.
        is_not_modified: True if the caller already has this version: its entity tag is in If-None-Match.
    """

    document: StoredDocument
    is_not_modified: bool


class Documents:
    """Service that reads and writes documents in tables (Cosmos DB containers) that expose the requested operation.

    Methods first check the document id and the body. Then they raise, in this order: the errors of
    :meth:`shared.data_stores.tables.TableFinder.require_exposed_table`; INVALID ``PARTITION_KEY_REQUIRED``, except in
    lists; FORBIDDEN ``DATA_PLANE_FORBIDDEN``; the errors of the store. A partition key is ``MISSING`` if the caller
    sends none.

    Args:
        tables: finds tables, and checks that they expose an operation.
        store: storage of documents.
        continuations: creates and verifies the continuation tokens of lists.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        tables: TableFinder,
        store: DocumentStore,
        continuations: ContinuationTokens,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._tables = tables
        self._store = store
        self._continuations = continuations
        self._runtime = runtime

    async def list(
        self, address: TableAddress, partition: PartitionValue, limit: int, continuation_token: str | None
    ) -> DocumentListing:
        """Return a page of the documents of a table, or of one of its partitions.

        Raises:
            WorkspaceError: INVALID naming ``continuationToken``.
        """
        found = await self._tables.require_exposed_table(address, Verb.LIST)
        all_partitions = isinstance(partition, Missing)
        tokens = self._continuations
        after = (
            None
            if continuation_token is None
            else await tokens.verify_and_read_position(
                found.table, partition, continuation_token, all_partitions=all_partitions
            )
        )
        found.require_document_access()
        page = await self._store.list(found.table, partition, limit, after, all_partitions=all_partitions)
        if page.next_position is None:
            return DocumentListing(page.texts, None)
        return DocumentListing(
            page.texts,
            await tokens.create_token(found.table, partition, page.next_position, all_partitions=all_partitions),
        )

    async def read(
        self, address: TableAddress, document_id: str, partition: PartitionValue, condition: Condition
    ) -> FoundDocument:
        """Return a document, and whether the caller already has its stored version.

        Raises:
            WorkspaceError: NOT_FOUND ``DOCUMENT_NOT_FOUND``; PRECONDITION_FAILED.
        """
        require_valid_document_id(document_id, "documentId")
        found = await self._tables.require_exposed_table(address, Verb.READ)
        stored = await self._read_existing_document(found.table, _build_document_key(found, document_id, partition))
        condition.check_if_match(stored.etag)
        return FoundDocument(stored, condition.is_not_modified(stored.etag))

    async def create(self, address: TableAddress, body: dict[str, Any], *, body_size_bytes: int = 0) -> WrittenDocument:
        """Store a new document; an id is generated if it is missing.

        Args:
            address: address of the table.
            body: the document as JSON object.
            body_size_bytes: size of the request body in bytes; a large document is validated in a worker thread.

        Raises:
            WorkspaceError: INVALID naming invalid properties; TOO_LARGE ``DOCUMENT_TOO_LARGE``; CONFLICT
                ``DOCUMENT_EXISTS``.
        """
        document, draft = await self._runtime.run_in_thread_if_large(
            body_size_bytes, _build_document_and_draft, self._runtime, body
        )
        found = await self._tables.require_exposed_table(address, Verb.CREATE)
        partition = read_partition_key(document, found.partition_key_path)
        if isinstance(partition, Missing):
            raise _build_missing_partition_key_error(found.partition_key_path)
        found.require_document_access()
        key = DocumentKey(draft.key.id, partition)
        etag = await self._store.create(found.table, key, draft.text)
        return WrittenDocument(key, StoredDocument(draft.text, etag), found.partition_key_path)

    async def replace(
        self,
        address: TableAddress,
        document_id: str,
        partition: PartitionValue,
        body: Mapping[str, Any],
        condition: Condition,
        *,
        body_size_bytes: int = 0,
    ) -> StoredDocument:
        """Replace a stored JSON document.

        The body must contain the partition key; ``partition`` must be equal to it or ``MISSING``. ``body_size_bytes``
        is the size of the request body in bytes.

        Raises:
            WorkspaceError: INVALID naming invalid properties; TOO_LARGE ``DOCUMENT_TOO_LARGE``; NOT_FOUND
                ``DOCUMENT_NOT_FOUND``; PRECONDITION_FAILED.
        """
        require_valid_document_id(document_id, "documentId")
        document, draft = await self._runtime.run_in_thread_if_large(
            body_size_bytes, _build_document_and_draft, self._runtime, {"id": document_id, **body}, document_id
        )
        found = await self._tables.require_exposed_table(address, Verb.REPLACE)
        written = _check_partition_and_build_draft(
            found, draft, read_partition_key(document, found.partition_key_path), partition
        )
        found.require_document_access()
        etag = await self._find_etag_for_conditional_write(found.table, written.key, condition)
        return StoredDocument(written.text, await self._store.replace(found.table, written.key, written.text, etag))

    async def delete(
        self, address: TableAddress, document_id: str, partition: PartitionValue, condition: Condition
    ) -> None:
        """Delete a stored JSON document.

        Raises:
            WorkspaceError: NOT_FOUND ``DOCUMENT_NOT_FOUND``; PRECONDITION_FAILED.
        """
        require_valid_document_id(document_id, "documentId")
        found = await self._tables.require_exposed_table(address, Verb.DELETE)
        key = _build_document_key(found, document_id, partition)
        etag = await self._find_etag_for_conditional_write(found.table, key, condition)
        await self._store.delete(found.table, key, etag)

    async def _find_etag_for_conditional_write(
        self, table: Table, key: DocumentKey, condition: Condition
    ) -> str | None:
        """Return the ETag of the only version that a conditional write may replace.

        Return None if the write may replace any version.
        """
        if condition.is_empty or condition.single_etag is not None:
            return condition.single_etag
        stored = await self._read_existing_document(table, key)
        condition.check_write_allowed(stored.etag)
        return stored.etag

    async def _read_existing_document(self, table: Table, key: DocumentKey) -> StoredDocument:
        stored = await self._store.read(table, key)
        if stored is None:
            raise build_document_not_found_error()
        return stored


def _build_document_and_draft(
    runtime: Runtime, body: dict[str, Any], document_id: str | None = None
) -> tuple[dict[str, Any], DocumentDraft]:
    document = build_document_to_store(body, runtime)
    if document_id is not None and document["id"] != document_id:
        raise build_invalid_field_error("id", "differs from the document id in the URL")
    return document, serialise_document_draft(document, MISSING)


def _build_document_key(exposed: ExposedTable, document_id: str, partition: PartitionValue) -> DocumentKey:
    if isinstance(partition, Missing):
        if exposed.partition_key_path != ID_PATH:
            raise _build_missing_partition_key_error(exposed.partition_key_path)
        partition = document_id
    exposed.require_document_access()
    return DocumentKey(document_id, partition)


def _check_partition_and_build_draft(
    exposed: ExposedTable, draft: DocumentDraft, body_partition: PartitionValue, query_partition: PartitionValue
) -> DocumentDraft:
    field = exposed.partition_key_path[1:].replace("/", ".")
    if isinstance(body_partition, Missing):
        if isinstance(query_partition, Missing):
            raise _build_missing_partition_key_error(exposed.partition_key_path)
        raise build_invalid_field_error(field, "is missing; the partition key of a document cannot change")
    if not isinstance(query_partition, Missing) and format_partition_key(query_partition) != format_partition_key(
        body_partition
    ):
        raise build_invalid_field_error(
            field, "differs from partitionKey; the partition key of a document cannot change"
        )
    return DocumentDraft(DocumentKey(draft.key.id, body_partition), draft.text)


def _build_missing_partition_key_error(partition_key_path: str) -> Exception:
    rule = f"is required; the table is partitioned on {partition_key_path}"
    return build_invalid_field_error("partitionKey", rule, code="PARTITION_KEY_REQUIRED")
