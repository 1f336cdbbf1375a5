"""JSON documents in the tables (Cosmos DB containers) that the workspace makes available through the API."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from oi._async.transport import AsyncTransport
from oi.partition_keys import PartitionKey, build_partition_query_parameters
from oi.requests import build_if_match_header, parse_json_reply, quote_path_segment, require_no_content


class AsyncDocuments:
    """Reads and changes the JSON documents of one table (Cosmos DB container).

    Raises:
        NotFoundError: a name is empty, ``.`` or ``..``. Methods raise it also for such an id.
    """

    def __init__(self, transport: AsyncTransport, store: str, database: str, table: str) -> None:
        self._transport = transport
        names = [quote_path_segment(each) for each in (store, database, table)]
        self._route = "/oi-api/data-stores/{}/databases/{}/tables/{}".format(*names)

    async def list(
        self, *, partition_key: PartitionKey | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the documents of the table, page by page.

        Args:
            partition_key: return only the documents with this partition key: the text, number or boolean in the
                documents, or ``oi.NULL_KEY`` for null. If omitted, all documents are returned.
            limit: maximum number of documents in one request, at most 1,000.
        """
        partition = build_partition_query_parameters(partition_key)
        token: str | None = None
        while True:
            parameters: dict[str, Any] = {**partition, "limit": limit, "continuationToken": token}
            page = await self._transport.get_json(self._route, parameters)
            for document in page["documents"]:
                yield document
            token = page["continuationToken"]
            if token is None:
                return

    async def read(self, document_id: str, *, partition_key: PartitionKey | None = None) -> dict[str, Any]:
        """Return a document of the table.

        Args:
            document_id: id of the document.
            partition_key: partition key of the document, as in :meth:`list`; required unless the table is
                partitioned by ``/id``.
        """
        document: dict[str, Any] = await self._transport.get_json(
            self._build_document_path(document_id), build_partition_query_parameters(partition_key)
        )
        return document

    async def create(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create a document and return the stored document, which contains its id.

        Raises:
            ConflictError: a document with this id exists.
            ApiError: if its `is_outcome_unknown` is True, the document may have been created; look for the document
                before you repeat the call.
        """
        created: dict[str, Any] = parse_json_reply(await self._transport.request("POST", self._route, json=document))
        return created

    async def replace(
        self, document: Mapping[str, Any], *, partition_key: PartitionKey | None = None, etag: str | None = None
    ) -> dict[str, Any]:
        """Replace the stored document that has the same ``id`` as the new document.

        Args:
            document: the new document, including its ``id``.
            partition_key: partition key of the document, as in :meth:`list`; if omitted, it is read from the document.
            etag: replace the document only if the stored version still has this ETag.

        Raises:
            PreconditionFailedError: the stored document no longer has this ETag, because it was changed.
        """
        response = await self._transport.request(
            "PUT",
            self._build_document_path(str(document["id"])),
            params=build_partition_query_parameters(partition_key),
            json=document,
            headers=build_if_match_header(etag),
        )
        replaced: dict[str, Any] = parse_json_reply(response)
        return replaced

    async def delete(
        self, document_id: str, *, partition_key: PartitionKey | None = None, etag: str | None = None
    ) -> None:
        """Delete a document of the table.

        Args:
            document_id: id of the document.
            partition_key: partition key of the document, as in :meth:`list`; required unless the table is
                partitioned by ``/id``.
            etag: delete the document only if the stored version still has this ETag.

        Raises:
            PreconditionFailedError: the stored document no longer has this ETag, because it was changed.
        """
        response = await self._transport.request(
            "DELETE",
            self._build_document_path(document_id),
            params=build_partition_query_parameters(partition_key),
            headers=build_if_match_header(etag),
        )
        require_no_content(response)

    def _build_document_path(self, document_id: str) -> str:
        return f"{self._route}/{quote_path_segment(document_id)}"
