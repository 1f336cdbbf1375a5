"""Documentation of the replies of the handler modules `containers` and `table_documents`."""

from datetime import datetime
from typing import Final, TypedDict

from pydantic import with_config

from functions.conditions import CHANGE_CONDITIONS, READ_CONDITIONS
from shared.catalog.models import DatabaseAccess, DataClass, Verb
from shared.http.operation_docs import (
    DEFINITION,
    IDEMPOTENT,
    NO_CONTENT,
    NOT_MODIFIED,
    STATE,
    DocumentedReply,
    OperationDocs,
)


class ContainerDescription(TypedDict):
    """A container that exists in Cosmos DB (`provisioned`), is declared in the workspace (`Declared`), or both."""

    name: str
    partitionKeyPath: str
    dataClass: DataClass | None
    Declared: bool
    provisioned: bool


class DeclaredContainer(TypedDict):
    """A declared container; `expose` lists the operations on its documents that callers may use.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    name: str
    partitionKeyPath: str
    dataClass: DataClass
    expose: list[Verb]
    provisioned: bool


class ContainerRecord(DeclaredContainer):
    """The catalog record of a container. `etag` is the value for If-Match, including the quotes."""

    Declared: bool
    createdAt: datetime
    updatedAt: datetime
    editedBy: str


class DeclaredDatabase(TypedDict):
    """A database of a data store, with its declared containers."""

    lookup: str
    access: DatabaseAccess
    containers: list[DeclaredContainer]


class DeclaredStore(TypedDict):
    """A data store with its databases."""

    lookup: str
    databases: list[DeclaredDatabase]


class DataStoreList(TypedDict):
    """The data stores (Cosmos DB accounts) of the workspace."""

    dataStores: list[DeclaredStore]


@with_config(extra="allow")
class Document(TypedDict):
    """A document of a table: its id and the properties that its author chose."""

    id: str


class DocumentList(TypedDict):
    """A page of documents; `continuationToken` is null on the last page."""

    documents: list[Document]
    count: int
    continuationToken: str | None


_WRITTEN: Final = {"name": "workorders", "partitionKeyPath": "/line", "dataClass": "operational"}
_CONTAINER: Final = {**_WRITTEN, "Declared": True, "provisioned": True}
_BY_OTHERS: Final = {**_CONTAINER, "name": "scratch", "dataClass": None, "Declared": False}
_DOCUMENT: Final = {"id": "wo-1042", "line": "l1", "state": "open", "quantity": 500}
_LOCATION: Final = {"Location": "URL of the document, with its partition key."}

LISTED = OperationDocs(
    (DocumentedReply(200, "The containers, sorted by name.", list[ContainerDescription], [_CONTAINER, _BY_OTHERS]),)
)
CREATED = OperationDocs(
    (DocumentedReply(201, "The new container.", ContainerDescription, _CONTAINER),),
    error_statuses=(409,),
    example=_WRITTEN,
    headers=IDEMPOTENT,
)
DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), headers=CHANGE_CONDITIONS)

_DECLARED: Final = {
    **_WRITTEN,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "expose": ["list", "read"],
    "provisioned": True,
}
_RECORD: Final = {
    **_DECLARED,
    "Declared": True,
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
    "editedBy": "admin@plant-a.example",
}
_STORE: Final = {
    "lookup": "mes",
    "databases": [{"lookup": "orders", "access": "granted", "containers": [_DECLARED]}],
}
STORES_LISTED = OperationDocs((DocumentedReply(200, "The data stores.", DataStoreList, {"dataStores": [_STORE]}),))
RECORD_READ = OperationDocs((DocumentedReply(200, "The record.", ContainerRecord, _RECORD, headers=DEFINITION),))
RECORD_PUT = OperationDocs(
    (DocumentedReply(200, "The changed record.", ContainerRecord, _RECORD, headers=DEFINITION),),
    error_statuses=(409, 412),
    example={"expose": ["list", "read"]},
    headers=CHANGE_CONDITIONS,
)

_PAGE: Final = {"documents": [_DOCUMENT], "count": 1, "continuationToken": None}
DOCUMENTS_LISTED = OperationDocs((DocumentedReply(200, "A page of documents.", DocumentList, _PAGE),), listed=False)
DOCUMENT_CREATED = OperationDocs(
    (DocumentedReply(201, "The stored document.", Document, _DOCUMENT, headers={**STATE, **_LOCATION}),),
    error_statuses=(409,),
    example=_DOCUMENT,
    listed=False,
)
DOCUMENT_READ = OperationDocs(
    (DocumentedReply(200, "The document.", Document, _DOCUMENT, headers=STATE), NOT_MODIFIED),
    error_statuses=(412,),
    headers=READ_CONDITIONS,
    listed=False,
)
DOCUMENT_REPLACED = OperationDocs(
    (DocumentedReply(200, "The stored document.", Document, _DOCUMENT, headers=STATE),),
    error_statuses=(412,),
    headers=CHANGE_CONDITIONS,
    example=_DOCUMENT,
    listed=False,
)
DOCUMENT_DELETED = OperationDocs((NO_CONTENT,), error_statuses=(412,), headers=CHANGE_CONDITIONS, listed=False)
