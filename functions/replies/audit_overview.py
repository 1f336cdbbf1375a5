"""Documentation of the replies of the operations on the audit log across scopes."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from functions.replies.provenance import PENDING_AMENDMENT, Amendment
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.provenance.ports import Target


class AuditScope(TypedDict):
    """A chain of the audit log. The chain of a workspace target has no scope."""

    scopeKey: str | None
    target: Target
    records: int
    firstAt: datetime | None
    lastAt: datetime | None
    lastRecordID: str
    checkpointSize: int
    pendingAmendments: int
    lastVerifiedAt: datetime | None
    lastVerdict: Literal["valid", "broken"] | None


class AuditScopes(TypedDict):
    """Page of the list of all audit chains."""

    scopes: list[AuditScope]
    cursor: str | None


class PendingAmendments(TypedDict):
    """Page of the list of pending amendments."""

    amendments: list[Amendment]
    cursor: str | None


_AT: Final = "2026-01-05T08:00:00.000000Z"
_SCOPE: Final[dict[str, Any]] = {
    "scopeKey": "line-1",
    "target": "DomainAmendments",
    "records": 42,
    "firstAt": _AT,
    "lastAt": _AT,
    "lastRecordID": "000000000042",
    "checkpointSize": 42,
    "pendingAmendments": 3,
    "lastVerifiedAt": _AT,
    "lastVerdict": "valid",
}
SCOPES_LISTED = OperationDocs(
    (DocumentedReply(200, "The chains of the page.", AuditScopes, {"scopes": [_SCOPE], "cursor": None}),)
)
PENDING_LISTED = OperationDocs(
    (
        DocumentedReply(
            200,
            "The pending amendments of the page, as stored.",
            PendingAmendments,
            {"amendments": [PENDING_AMENDMENT], "cursor": None},
        ),
    )
)
