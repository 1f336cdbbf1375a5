"""Documentation of the replies of the handler modules `provenance_events` and `amendments`."""

from datetime import datetime
from typing import Any, Final, Literal, NotRequired, TypedDict

from pydantic import with_config

from shared.http.operation_docs import IDEMPOTENT, TEXT_FORM, DocumentedReply, OperationDocs


@with_config(extra="allow")
class AuditEvent(TypedDict):
    """A stored audit event; further properties are part of the record and of its hash."""

    RecordID: str
    Timestamp: datetime
    UserID: str
    ActionType: str
    EntityType: str
    EntityID: str
    NodeID: NotRequired[str]
    BeforeState: NotRequired[dict[str, Any]]
    AfterState: NotRequired[dict[str, Any]]
    Name: NotRequired[str]
    Description: NotRequired[str]
    PreviousHash: str
    Hash: str


class DamagedRecord(TypedDict):
    """Placeholder for a damaged record, with the stored text and the stored hash, which does not match.

    Only the list of pending amendments adds `ScopeKey`.
    """

    RecordID: str
    Damaged: Literal[True]
    Content: str
    Hash: str
    ScopeKey: NotRequired[str]


type ChainRecord = AuditEvent | Amendment | Transition | DamagedRecord
"""A record of a chain; the chain of a scope's amendments has amendments and decisions, all others have events."""


class Verdict(TypedDict):
    """Result of a verification: `ChainValid` for the chain, `Valid` for the requested record (else null).

    `BrokenAt` is the RecordID of the first damaged or missing record, and `Reason` describes the damage. `ForkDetected`
    is true if two records follow the same record. `Record` is the requested record, and `RecomputedHash` is the hash
    of its content. `Empty` is true if there was nothing to verify.
    """

    Valid: bool | None
    ChainValid: bool
    Empty: bool
    Record: dict[str, Any] | None
    RecomputedHash: str | None
    BrokenAt: str | None
    ForkDetected: bool
    Reason: str | None
    Target: str


class Checkpoint(TypedDict):
    """A signed checkpoint of an audit chain (C2SP tlog-checkpoint)."""

    origin: str
    size: int
    rootHash: str
    lastHash: str
    timestamp: datetime
    signedNote: str


class InclusionProof(TypedDict):
    """Merkle proof that a checkpoint covers an audit record (RFC 6962)."""

    leafIndex: int
    size: int
    hashes: list[str]


ConsistencyProof = TypedDict("ConsistencyProof", {"from": int, "size": int, "hashes": list[str]})
"""Proof that a checkpoint extends an earlier one (RFC 6962)."""

_AT = "2026-01-05T08:00:00.000000Z"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_WRITTEN: Final[dict[str, Any]] = {
    "ActionType": "SetpointChanged",
    "EntityType": "Pump",
    "EntityID": "rig-1",
    "BeforeState": {"setpoint": 4.0},
    "AfterState": {"setpoint": 4.2},
}
EVENT_EXAMPLE = {
    **_WRITTEN,
    "RecordID": "000000000001",
    "Timestamp": _AT,
    "UserID": "editor@plant-a.example",
    "PreviousHash": _HASH,
    "Hash": _HASH,
}
_VERDICT = {
    "Valid": None,
    "ChainValid": True,
    "Empty": False,
    "Record": None,
    "RecomputedHash": None,
    "BrokenAt": None,
    "ForkDetected": False,
    "Reason": "The chain is sound: 42 records verified.",
    "Target": "PlatformConfig",
}
_CHECKPOINT = {
    "origin": "oi-provenance/plant-a/PlatformConfig",
    "size": 42,
    "rootHash": "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
    "lastHash": _HASH,
    "timestamp": _AT,
    "signedNote": "oi-provenance/plant-a/PlatformConfig\n42\nn4bQ...\n\n\u2014 oi-provenance/plant-a c2ln...\n",
}
SCANNED = {
    "x-provenance-scanned": "Number of records read for this reply.",
    "x-provenance-has-more": "`true` if more records match than the reply contains.",
    "x-provenance-target": "Container of the chain.",
    "x-provenance-ignored": "Names of ignored parameters: unknown ones, invalid numbers and dates, and empty filters.",
    "x-provenance-damaged": "RecordIDs of up to 100 damaged records, shown as placeholders; missing if there are none.",
}
RECEIPT = {"Link": "URL of the checkpoint that will cover the record."}

WRITTEN = OperationDocs(
    (DocumentedReply(201, "The stored record.", AuditEvent, EVENT_EXAMPLE, headers=RECEIPT),),
    error_statuses=(422,),
    example={**_WRITTEN, "ScopeKey": "line-1"},
    headers=IDEMPOTENT,
)
QUERIED = OperationDocs(
    (DocumentedReply(200, "Records, newest first.", list[ChainRecord], [EVENT_EXAMPLE], headers=SCANNED),)
)
VERIFIED = OperationDocs(
    (DocumentedReply(200, "The result of the verification.", Verdict, _VERDICT),),
    error_statuses=(404, 409, 504),
    example={"ScopeKey": "line-1"},
)
EXPORTED = OperationDocs(
    (
        DocumentedReply(
            200,
            "Records, oldest first, as a file.",
            list[ChainRecord],
            [EVENT_EXAMPLE],
            {"text/csv": TEXT_FORM},
            {**SCANNED, "Content-Disposition": "Name of the file."},
        ),
    )
)
CHECKPOINT = OperationDocs(
    (DocumentedReply(200, "The newest checkpoint.", Checkpoint, _CHECKPOINT),), error_statuses=(404,)
)
PROOF = OperationDocs(
    (
        DocumentedReply(
            200,
            "The proof.",
            InclusionProof | ConsistencyProof,
            {"leafIndex": 0, "size": 42, "hashes": ["n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="]},
        ),
    ),
    error_statuses=(404,),
)


@with_config(extra="allow")
class Amendment(TypedDict):
    """A stored amendment. The record can have further properties; its hash covers them, too."""

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


@with_config(extra="allow")
class RecordSignature(TypedDict):
    """Electronic signature of a decision. `RecordHash` is the `Hash` of the amendment that is decided."""

    UserID: str
    PrintedName: str
    Meaning: str
    Statement: str | None
    SignedAt: datetime
    AuthTime: datetime
    AuthMethods: list[str]
    RecordHash: str


@with_config(extra="allow")
class Transition(TypedDict):
    """A stored approval or rejection of an amendment; further properties are part of the record and of its hash."""

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
    Signature: NotRequired[RecordSignature]
    PreviousHash: str
    Hash: str


type AmendmentRecord = Amendment | Transition | DamagedRecord
"""A record of the chain of a scope's amendments."""


class ReasonCategories(TypedDict):
    """Reason categories that an amendment may use."""

    categories: list[str]


_AMENDED_ENTITY = {"ScopeKey": "line-1", "EntityType": "Batch", "EntityID": "B-7"}
_LINK = {"PreviousHash": _HASH, "Hash": _HASH}
_AMENDMENT: Final[dict[str, Any]] = {
    **_AMENDED_ENTITY,
    "OriginalRecord": {"yield": 91},
    "AmendedRecord": {"yield": 19},
    "ChangedFields": ["yield"],
    "ReasonCategory": "other",
    "ReasonText": "Digits were swapped.",
}
PENDING_AMENDMENT = {
    **_AMENDMENT,
    "RecordID": "000000000001",
    "AmendedBy": "editor@plant-a.example",
    "AmendedAt": _AT,
    "Status": "pending",
    **_LINK,
}
SIGNATURE_EXAMPLE: Final[dict[str, Any]] = {
    "UserID": "admin@plant-a.example",
    "PrintedName": "Ada Adams",
    "Meaning": "approval",
    "Statement": "Checked against the logbook.",
    "SignedAt": _AT,
    "AuthTime": "2026-01-05T07:59:30.000000Z",
    "AuthMethods": ["key"],
    "RecordHash": _HASH,
}
_APPROVED_AMENDMENT = {
    "RecordID": "000000000002",
    **_AMENDED_ENTITY,
    "AmendmentID": "000000000001",
    "Status": "approved",
    "ApprovedBy": "admin@plant-a.example",
    "ApprovedAt": _AT,
    "Meaning": "approval",
    "Signature": SIGNATURE_EXAMPLE,
    **_LINK,
}
_REJECTED_AMENDMENT = {
    "RecordID": "000000000002",
    **_AMENDED_ENTITY,
    "AmendmentID": "000000000001",
    "Status": "rejected",
    "RejectedBy": "admin@plant-a.example",
    "RejectedAt": _AT,
    "RejectionReason": "The reading was right.",
    "Meaning": "rejection",
    **_LINK,
}

AMENDMENT_CREATED = OperationDocs(
    (DocumentedReply(201, "The stored amendment.", Amendment, PENDING_AMENDMENT, headers=RECEIPT),),
    error_statuses=(422,),
    example=_AMENDMENT,
    headers=IDEMPOTENT,
)
AMENDMENTS_QUERIED = OperationDocs(
    (
        DocumentedReply(
            200,
            "Amendments and decisions, newest first.",
            list[AmendmentRecord],
            [PENDING_AMENDMENT],
            headers=SCANNED,
        ),
    )
)
AMENDMENT_CHAIN = OperationDocs(
    (
        DocumentedReply(
            200,
            "Amendments and decisions about the entity, oldest first.",
            list[AmendmentRecord],
            [PENDING_AMENDMENT, _APPROVED_AMENDMENT],
            {"text/html": TEXT_FORM},
            SCANNED,
        ),
    )
)
REASON_CATEGORIES = OperationDocs(
    (DocumentedReply(200, "The reason categories.", ReasonCategories, {"categories": ["sensor-drift", "other"]}),)
)
AMENDMENT_APPROVED = OperationDocs(
    (DocumentedReply(200, "The stored approval.", Transition, _APPROVED_AMENDMENT, headers=RECEIPT),),
    error_statuses=(409, 422),
    example={"signature": {"meaning": "approval", "statement": "Checked against the logbook."}},
    headers=IDEMPOTENT,
)
AMENDMENT_REJECTED = OperationDocs(
    (DocumentedReply(200, "The stored rejection.", Transition, _REJECTED_AMENDMENT, headers=RECEIPT),),
    error_statuses=(409, 422),
    example={
        "ScopeKey": "line-1",
        "RejectionReason": "The reading was right.",
        "signature": {"meaning": "rejection"},
    },
    headers=IDEMPOTENT,
)
