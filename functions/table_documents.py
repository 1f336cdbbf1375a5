"""Documents of published tables; the table's path is their collection."""

from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from functions.conditions import condition_of
from functions.replies import data_stores as replies
from shared.auth.rights import AccessRight
from shared.data_stores.documents import WrittenDocument
from shared.data_stores.models import MISSING, PartitionValue, StoredDocument
from shared.data_stores.partition_keys import ID_PATH, validate_partition_key
from shared.data_stores.tables import TableAddress
from shared.errors import WorkspaceError
from shared.http.messages import JSON, Reply, json_bytes
from shared.http.operations import MIB, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.text_formats.strict_json import parse
from shared.wiring import services

GROUP = Group("table-documents")
TABLE: Final = "oi-api/data-stores/{store}/databases/{database}/tables/{table}"
DOCUMENT: Final = TABLE + "/{documentId}"
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000

type Document = dict[str, Any]


class KeyType(StrEnum):
    """How the text of a partition key is read."""

    STRING = "string"
    JSON = "json"


class PartitionQuery(BaseModel):
    """The partition key of a request."""

    model_config = ConfigDict(extra="ignore")

    # First, since the key is read by it.
    key_type: KeyType = Field(
        KeyType.STRING,
        alias="partitionKeyType",
        description="`json` where partitionKey is JSON: a number, true, false or null.",
    )
    partition_key: str | None = Field(None, alias="partitionKey", description="Value of the partition key.")

    @field_validator("partition_key")
    @classmethod
    def _readable(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is not None and "key_type" in info.data:
            _partition(text, info.data["key_type"])
        return text

    def value(self) -> PartitionValue:
        """Return the partition key, ``MISSING`` when none is given."""
        return MISSING if self.partition_key is None else _partition(self.partition_key, self.key_type)


def _partition(text: str, key_type: KeyType) -> PartitionValue:
    try:
        return validate_partition_key(parse(text.encode()) if key_type is KeyType.JSON else text, "partitionKey")
    except WorkspaceError as error:
        raise ValueError(error.detail.removeprefix("partitionKey: ")) from None


def _digits(value: object) -> object:
    # A query parameter is text; what else Python takes for a number (1_0, " 1") is none here.
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise ValueError(f"a whole number from 1 to {MAX_LIMIT} is expected")
    return value


class ListQuery(PartitionQuery):
    """Which documents to list."""

    limit: Annotated[int, BeforeValidator(_digits)] = Field(
        DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Most documents of a page."
    )
    continuation_token: str | None = Field(
        None,
        alias="continuationToken",
        description="As the page before gave it, with the same table and partition key.",
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
    """List a table's documents, of one partition or of all."""
    query = call.query
    listed = await services().documents.list(_address(call), query.value(), query.limit, query.continuation_token)
    token = json_bytes(listed.continuation)
    # The documents go as they are stored; taking them apart would only cost time.
    body = b'{"documents":[%b],"count":%d,"continuationToken":%b}' % (b",".join(listed.texts), len(listed.texts), token)
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
    """Store a new document; an id is made where it has none."""
    written = await services().documents.create(_address(call), call.body, size=len(call.request.body))
    return _document(written.stored, 201, {"Location": _location(call, written)})


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
    asked = condition_of(call.request)
    stored, known = await services().documents.read(_address(call), call.path["documentId"], call.query.value(), asked)
    return Reply(304, b"", {"ETag": stored.etag}) if known else _document(stored)


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
    """Store a document in place of the one with its id."""
    asked = condition_of(call.request)
    stored = await services().documents.replace(
        _address(call), call.path["documentId"], call.query.value(), call.body, asked, size=len(call.request.body)
    )
    return _document(stored)


@GROUP.endpoint(
    "DELETE",
    DOCUMENT,
    right=AccessRight.DOCUMENT_WRITE,
    query=PartitionQuery,
    unknown=UnknownNames.IGNORE,
    docs=replies.DOCUMENT_DELETED,
)
async def delete_document(call: Call[PartitionQuery, Any]) -> Reply:
    """Remove a document."""
    asked = condition_of(call.request)
    await services().documents.delete(_address(call), call.path["documentId"], call.query.value(), asked)
    return Reply(204)


def _address(call: Call[Any, Any]) -> TableAddress:
    return TableAddress(call.path["store"], call.path["database"], call.path["table"])


def _document(stored: StoredDocument, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, stored.text, {"Content-Type": JSON, "ETag": stored.etag, **(headers or {})})


def _location(call: Call[Any, Any], written: WrittenDocument) -> str:
    names = (quote(call.path[name], safe="") for name in ("store", "database", "table"))
    store, database, table = names
    path = f"/oi-api/data-stores/{store}/databases/{database}/tables/{table}/{quote(written.key.id, safe='')}"
    if written.partition_path == ID_PATH:
        return path
    value = written.key.partition
    if isinstance(value, str):
        return f"{path}?{urlencode({'partitionKey': value})}"
    return f"{path}?{urlencode({'partitionKey': orjson.dumps(value).decode(), 'partitionKeyType': 'json'})}"
