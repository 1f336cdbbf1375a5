"""Documentation of replies about audit events, chains, checkpoints and proofs."""

from datetime import datetime
from typing import Any, Final, NotRequired, TypedDict

from shared.http.operation_docs import TEXT_FORM, DocumentedReply, OperationDocs


class AuditEvent(TypedDict):
    """A stored audit event."""

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


class Verdict(TypedDict):
    """Result of a verification."""

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
    """A signed checkpoint of a chain (C2SP tlog-checkpoint)."""

    origin: str
    size: int
    rootHash: str
    lastHash: str
    timestamp: datetime
    signedNote: str


class InclusionProof(TypedDict):
    """Proof that a checkpoint covers a record (RFC 6962)."""

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
    "x-provenance-ignored": "Names of ignored parameters: unknown ones, and invalid numbers and dates.",
}
RECEIPT = {"Link": "URL of the checkpoint that will cover the record."}

WRITTEN = OperationDocs(
    (DocumentedReply(201, "The stored record.", AuditEvent, EVENT_EXAMPLE, headers=RECEIPT),),
    error_statuses=(422,),
    example={**_WRITTEN, "ScopeKey": "line-1"},
)
# With target=DomainAmendments, the same routes return amendments, so the type is not only AuditEvent.
QUERIED = OperationDocs(
    (DocumentedReply(200, "Records, newest first.", list[dict[str, Any]], [EVENT_EXAMPLE], headers=SCANNED),)
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
            list[dict[str, Any]],
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
VERIFIER_KEY = OperationDocs(
    (DocumentedReply(200, "The public key as a line of text.", forms={"text/plain": TEXT_FORM}),),
    error_statuses=(409, 503),
)
