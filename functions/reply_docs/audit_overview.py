"""Documentation of the replies of the handler modules `audit_overview`, `receipts` and `signatures`."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from pydantic import with_config

from functions.conditions import KNOWN_VERSION
from functions.reply_docs.provenance_events import PENDING_AMENDMENT, SIGNATURE_EXAMPLE, Amendment, DamagedRecord
from shared.http.operation_docs import BYTES_FORM, ETAG, NOT_MODIFIED, TEXT_FORM, DocumentedReply, OperationDocs
from shared.provenance.ports import Target


class AuditScope(TypedDict):
    """A chain of the audit log. `scopeKey` is null if the target has one chain for the whole workspace."""

    scopeKey: str | None
    target: Target
    records: int
    firstAt: datetime | None
    lastAt: datetime | None
    lastRecordID: str | None
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

    amendments: list[Amendment | DamagedRecord]
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


class CheckpointJwk(TypedDict):
    """A public key that verifies checkpoints, as a JWK (RFC 7517); `kid` is its id in signatures, lowercase hex."""

    kty: str
    crv: str
    x: str
    y: str
    kid: str
    use: str
    alg: str


class CheckpointJwkSet(TypedDict):
    """The public keys that verify checkpoints: the current key, and retired keys whose signatures are trusted."""

    keys: list[CheckpointJwk]


_JWK: Final = {
    "kty": "EC",
    "crv": "P-256",
    "x": "zw5KRCVvv8WkOXXcT9QfHp6gqpcsFcHMeMGVxb5rVnk",
    "y": "4GJtHaTn8FElrvdRNCW6RVYmWbIjsRAbVbAQ5rKhvSA",
    "kid": "1f0c9a7e",
    "use": "sig",
    "alg": "ES256",
}
VERIFIER_KEY: Final = OperationDocs(
    (
        DocumentedReply(
            200,
            "The current public key as a line of text, or the set of all trusted keys as `format` selects.",
            CheckpointJwkSet,
            {"keys": [_JWK]},
            {"text/plain": TEXT_FORM, "application/cose-key-set": BYTES_FORM},
        ),
    ),
    error_statuses=(409, 503),
)
RECEIPT_FILE: Final = OperationDocs(
    (
        DocumentedReply(
            200,
            "The receipt: a COSE_Sign1 with the proof in its unprotected header; the payload, the root of the Merkle "
            "tree, is detached.",
            forms={"application/cose": BYTES_FORM},
            headers={**ETAG, "Content-Disposition": "Name of the file."},
        ),
        NOT_MODIFIED,
    ),
    error_statuses=(404, 409),
    headers=KNOWN_VERSION,
)


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


_LISTED_SIGNATURE: Final = {
    **SIGNATURE_EXAMPLE,
    "target": "DomainAmendments",
    "scopeKey": "line-1",
    "recordID": "000000000002",
}
SIGNATURES_LISTED = OperationDocs(
    (
        DocumentedReply(
            200, "The signatures of the page.", ListedSignatures, {"signatures": [_LISTED_SIGNATURE], "cursor": None}
        ),
    )
)
