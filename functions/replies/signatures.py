"""Documentation of the replies of the operation that lists signatures."""

from datetime import datetime
from typing import Final, TypedDict

from pydantic import with_config

from functions.replies.provenance import SIGNATURE_EXAMPLE
from shared.http.operation_docs import DocumentedReply, OperationDocs


@with_config(extra="allow")
class ListedSignature(TypedDict):
    """Signature with the chain and the record of its decision. A decision about a warm query has no scope."""

    UserID: str
    PrintedName: str
    Meaning: str
    Statement: str | None
    SignedAt: datetime
    AuthTime: datetime
    AuthMethods: list[str]
    RecordHash: str
    target: str
    scopeKey: str | None
    recordID: str


class ListedSignatures(TypedDict):
    """Page of the list of signatures."""

    signatures: list[ListedSignature]
    cursor: str | None


_LISTED: Final = {
    **SIGNATURE_EXAMPLE,
    "target": "DomainAmendments",
    "scopeKey": "line-1",
    "recordID": "000000000002",
}
LISTED = OperationDocs(
    (DocumentedReply(200, "The signatures of the page.", ListedSignatures, {"signatures": [_LISTED], "cursor": None}),)
)
