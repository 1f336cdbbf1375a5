"""HTTP operations on the JSON documents of tables: list, create, read, replace, delete.

A table is a Cosmos DB container of the workspace; its catalog record lists the operations that callers may use.
"""

from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from functions.conditions import parse_conditional_headers
from functions.reply_docs import containers as replies
from shared.auth.rights import AccessRight
from shared.data_stores.documents import WrittenDocument
from shared.data_stores.models import MISSING, PartitionValue, StoredDocument
from shared.data_stores.partition_keys import ID_PATH, require_valid_partition_key
from shared.data_stores.tables import TableAddress
from shared.errors import WorkspaceError
from shared.http.messages import JSON, Reply
from shared.http.operations import MIB, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.text_formats.serialisation import serialise_json
from shared.text_formats.strict_json import parse_json
from shared.validation.whole_numbers import parse_whole_number
from shared.wiring import services

GROUP = Group("table-documents")
TABLE: Final = "oi-api/data-stores/{store}/databases/{database}/tables/{table}"
DOCUMENT: Final = TABLE + "/{documentId}"
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000

type Document = dict[str, Any]


class KeyType(StrEnum):
    """Encoding of a partition key in the query string."""

    STRING = "string"
    JSON = "json"


class PartitionQuery(BaseModel):
    """Query parameters that select a partition."""

    model_config = ConfigDict(extra="ignore")

    # Declared before partition_key, because the validator of partition_key reads its value.
    key_type: KeyType = Field(
        KeyType.STRING,
        alias="partitionKeyType",
        description="`json` if partitionKey is JSON: a number, true, false or null. Default: `string`.",
    )
    partition_key: str | None = Field(None, alias="partitionKey", description="Value of the partition key.")

    @field_validator("partition_key")
    @classmethod
    def _check_partition_key(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is not None and "key_type" in info.data:
            _parse_partition_key(text, info.data["key_type"])
        return text

    def get_partition_key_value(self) -> PartitionValue:
        """Return the value of the partition key, or ``MISSING`` if the request contains none."""
        return MISSING if self.partition_key is None else _parse_partition_key(self.partition_key, self.key_type)


def _parse_partition_key(key_text: str, key_type: KeyType) -> PartitionValue:
    try:
        return require_valid_partition_key(
            parse_json(key_text.encode()) if key_type is KeyType.JSON else key_text, "partitionKey"
        )
    except WorkspaceError as error:
        raise ValueError(error.detail.removeprefix("partitionKey: ")) from None


def _parse_limit(text: Any) -> int:
    return parse_whole_number(text, MAX_LIMIT)


class ListQuery(PartitionQuery):
    """Query parameters of a list of documents."""

    limit: Annotated[int, BeforeValidator(_parse_limit)] = Field(
        DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Maximum number of documents in a page."
    )
    continuation_token: str | None = Field(
        None,
        alias="continuationToken",
        description="Token from the previous page; it is valid only for the same table and partition key.",
    )


@GROUP.endpoint(
    "GET",
    TABLE,
    right=AccessRight.DOCUMENT_READ,
    query=ListQuery,
    unknown=UnknownNames.IGNORE,
    docs=replies.DOCUMENTS_LISTED,
)
async def list_documents(call: Call[ListQuery, Any]) -> Reply:
    """List the documents of a table, of one partition or of all partitions."""
    query = call.query
    page = await services().data_stores.documents.list(
        _get_table_address(call), query.get_partition_key_value(), query.limit, query.continuation_token
    )
    token = serialise_json(page.continuation)
    # The stored JSON texts are joined without parsing, which saves time.
    body = b'{"documents":[%b],"count":%d,"continuationToken":%b}' % (b",".join(page.texts), len(page.texts), token)
    return Reply(200, body, {"Content-Type": JSON})


@GROUP.endpoint(
    "POST",
    TABLE,
    right=AccessRight.DOCUMENT_WRITE,
    body=dict[str, Any],
    body_limit=2 * MIB,
    unknown=UnknownNames.IGNORE,
    docs=replies.DOCUMENT_CREATED,
)
async def create_document(call: Call[Any, Document]) -> Reply:
    """Create a document; the service assigns an id if the document has none."""
    created = await services().data_stores.documents.create(
        _get_table_address(call), call.body, body_size_bytes=len(call.request.body)
    )
    return _build_document_reply(created.stored, 201, {"Location": _build_document_url(call, created)})


@GROUP.endpoint(
    "GET",
    DOCUMENT,
    right=AccessRight.DOCUMENT_READ,
    query=PartitionQuery,
    unknown=UnknownNames.IGNORE,
    docs=replies.DOCUMENT_READ,
)
async def read_document(call: Call[PartitionQuery, Any]) -> Reply:
    """Return a document."""
    condition = parse_conditional_headers(call.request)
    stored, is_current = await services().data_stores.documents.read(
        _get_table_address(call), call.path["documentId"], call.query.get_partition_key_value(), condition
    )
    return Reply(304, b"", {"ETag": stored.etag}) if is_current else _build_document_reply(stored)


@GROUP.endpoint(
    "PUT",
    DOCUMENT,
    right=AccessRight.DOCUMENT_WRITE,
    query=PartitionQuery,
    body=dict[str, Any],
    body_limit=2 * MIB,
    unknown=UnknownNames.IGNORE,
    docs=replies.DOCUMENT_REPLACED,
)
async def replace_document(call: Call[PartitionQuery, Document]) -> Reply:
    """Replace an existing document."""
    condition = parse_conditional_headers(call.request)
    stored = await services().data_stores.documents.replace(
        _get_table_address(call),
        call.path["documentId"],
        call.query.get_partition_key_value(),
        call.body,
        condition,
        body_size_bytes=len(call.request.body),
    )
    return _build_document_reply(stored)


@GROUP.endpoint(
    "DELETE",
    DOCUMENT,
    right=AccessRight.DOCUMENT_WRITE,
    query=PartitionQuery,
    unknown=UnknownNames.IGNORE,
    docs=replies.DOCUMENT_DELETED,
)
async def delete_document(call: Call[PartitionQuery, Any]) -> Reply:
    """Delete a document."""
    condition = parse_conditional_headers(call.request)
    await services().data_stores.documents.delete(
        _get_table_address(call), call.path["documentId"], call.query.get_partition_key_value(), condition
    )
    return Reply(204)


def _get_table_address(call: Call[Any, Any]) -> TableAddress:
    return TableAddress(call.path["store"], call.path["database"], call.path["table"])


def _build_document_reply(stored: StoredDocument, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, stored.text, {"Content-Type": JSON, "ETag": stored.etag, **(headers or {})})


def _build_document_url(call: Call[Any, Any], written: WrittenDocument) -> str:
    names = (quote(call.path[name], safe="") for name in ("store", "database", "table"))
    store, database, table = names
    path = f"/oi-api/data-stores/{store}/databases/{database}/tables/{table}/{quote(written.key.id, safe='')}"
    if written.partition_path == ID_PATH:
        return path
    value = written.key.partition
    if isinstance(value, str):
        return f"{path}?{urlencode({'partitionKey': value})}"
    return f"{path}?{urlencode({'partitionKey': orjson.dumps(value).decode(), 'partitionKeyType': 'json'})}"
