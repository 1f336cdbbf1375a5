"""Documentation of replies about containers and documents of data stores."""

from typing import Any, Final, TypedDict

from functions.conditions import READ_CONDITIONS, WRITE_CONDITIONS
from shared.catalog.models import DataClass
from shared.http.operation_docs import NO_CONTENT, NOT_MODIFIED, STATE, DocumentedReply, OperationDocs


class ContainerShown(TypedDict):
    """A container that exists in the account (`provisioned`), is declared in the workspace (`Declared`), or both."""

    name: str
    partitionKeyPath: str
    dataClass: DataClass | None
    Declared: bool
    provisioned: bool


class DocumentList(TypedDict):
    """A page of documents; `continuationToken` is null on the last page."""

    documents: list[dict[str, Any]]
    count: int
    continuationToken: str | None


_WRITTEN: Final = {"name": "workorders", "partitionKeyPath": "/line", "dataClass": "operational"}
_CONTAINER: Final = {**_WRITTEN, "Declared": True, "provisioned": True}
_BY_OTHERS: Final = {**_CONTAINER, "name": "scratch", "dataClass": None, "Declared": False}
_DOCUMENT: Final = {"id": "wo-1042", "line": "l1", "state": "open", "quantity": 500}
_LOCATION: Final = {"Location": "URL of the document, with its partition key."}

LISTED = OperationDocs(
    (DocumentedReply(200, "The containers, sorted by name.", list[ContainerShown], [_CONTAINER, _BY_OTHERS]),)
)
CREATED = OperationDocs(
    (DocumentedReply(201, "The new container.", ContainerShown, _CONTAINER),), error_statuses=(409,), example=_WRITTEN
)
DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409,))

_PAGE: Final = {"documents": [_DOCUMENT], "count": 1, "continuationToken": None}
DOCUMENTS_LISTED = OperationDocs((DocumentedReply(200, "A page of documents.", DocumentList, _PAGE),), listed=False)
DOCUMENT_CREATED = OperationDocs(
    (DocumentedReply(201, "The stored document.", dict[str, Any], _DOCUMENT, headers={**STATE, **_LOCATION}),),
    error_statuses=(409,),
    example=_DOCUMENT,
    listed=False,
)
DOCUMENT_READ = OperationDocs(
    (DocumentedReply(200, "The document.", dict[str, Any], _DOCUMENT, headers=STATE), NOT_MODIFIED),
    error_statuses=(412,),
    headers=READ_CONDITIONS,
    listed=False,
)
DOCUMENT_REPLACED = OperationDocs(
    (DocumentedReply(200, "The stored document.", dict[str, Any], _DOCUMENT, headers=STATE),),
    error_statuses=(412,),
    headers=WRITE_CONDITIONS,
    example=_DOCUMENT,
    listed=False,
)
DOCUMENT_DELETED = OperationDocs((NO_CONTENT,), error_statuses=(412,), headers=WRITE_CONDITIONS, listed=False)
