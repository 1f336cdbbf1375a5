"""Documentation of replies about amendments."""

from datetime import datetime
from typing import Any, Final, Literal, NotRequired, TypedDict

from functions.replies.provenance import RECEIPT, SCANNED
from shared.http.operation_docs import TEXT_FORM, DocumentedReply, OperationDocs


class Amendment(TypedDict):
    """A stored amendment."""

    RecordID: str
    ScopeKey: str
    EntityType: str
    EntityID: str
    OriginalRecord: dict[str, Any]
    AmendedRecord: dict[str, Any]
    ChangedFields: list[str]
    ReasonCategory: str
    ReasonText: str
    AmendedBy: str
    AmendedAt: datetime
    Status: Literal["pending", "approved"]
    PreviousHash: str
    Hash: str


class Transition(TypedDict):
    """A stored approval or rejection of an amendment."""

    RecordID: str
    ScopeKey: str
    EntityType: str
    EntityID: str
    AmendmentID: str
    Status: Literal["approved", "rejected"]
    ApprovedBy: NotRequired[str]
    ApprovedAt: NotRequired[datetime]
    RejectedBy: NotRequired[str]
    RejectedAt: NotRequired[datetime]
    RejectionReason: NotRequired[str]
    Meaning: Literal["approval", "rejection"]
    PreviousHash: str
    Hash: str


class ReasonCategories(TypedDict):
    """Reason categories that an amendment may use."""

    categories: list[str]


_AT = "2026-01-05T08:00:00.000000Z"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_WHERE = {"ScopeKey": "line-1", "EntityType": "Batch", "EntityID": "B-7"}
_LINK = {"PreviousHash": _HASH, "Hash": _HASH}
_WRITTEN: Final[dict[str, Any]] = {
    **_WHERE,
    "OriginalRecord": {"yield": 91},
    "AmendedRecord": {"yield": 19},
    "ChangedFields": ["yield"],
    "ReasonCategory": "other",
    "ReasonText": "Digits were swapped.",
}
_PENDING = {
    **_WRITTEN,
    "RecordID": "000000000001",
    "AmendedBy": "editor@plant-a.example",
    "AmendedAt": _AT,
    "Status": "pending",
    **_LINK,
}
_APPROVED = {
    "RecordID": "000000000002",
    **_WHERE,
    "AmendmentID": "000000000001",
    "Status": "approved",
    "ApprovedBy": "admin@plant-a.example",
    "ApprovedAt": _AT,
    "Meaning": "approval",
    **_LINK,
}
_REJECTED = {
    "RecordID": "000000000002",
    **_WHERE,
    "AmendmentID": "000000000001",
    "Status": "rejected",
    "RejectedBy": "admin@plant-a.example",
    "RejectedAt": _AT,
    "RejectionReason": "The reading was right.",
    "Meaning": "rejection",
    **_LINK,
}

CREATED = OperationDocs(
    (DocumentedReply(201, "The stored amendment.", Amendment, _PENDING, headers=RECEIPT),),
    error_statuses=(422,),
    example=_WRITTEN,
)
QUERIED = OperationDocs(
    (
        DocumentedReply(
            200, "Amendments and decisions, newest first.", list[Amendment | Transition], [_PENDING], headers=SCANNED
        ),
    )
)
CHAIN = OperationDocs(
    (
        DocumentedReply(
            200,
            "Amendments and decisions about the entity, oldest first.",
            list[Amendment | Transition],
            [_PENDING, _APPROVED],
            {"text/html": TEXT_FORM},
            SCANNED,
        ),
    )
)
CATEGORIES = OperationDocs(
    (DocumentedReply(200, "The reason categories.", ReasonCategories, {"categories": ["sensor-drift", "other"]}),)
)
APPROVED = OperationDocs(
    (DocumentedReply(200, "The stored approval.", Transition, _APPROVED, headers=RECEIPT),), error_statuses=(409, 422)
)
REJECTED = OperationDocs(
    (DocumentedReply(200, "The stored rejection.", Transition, _REJECTED, headers=RECEIPT),),
    error_statuses=(409, 422),
    example={"ScopeKey": "line-1", "RejectionReason": "The reading was right."},
)
