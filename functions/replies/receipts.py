"""Documentation of the replies with receipts."""

from typing import Final, TypedDict

from functions.conditions import KNOWN_VERSION
from shared.http.operation_docs import BYTES_FORM, ETAG, NOT_MODIFIED, TEXT_FORM, DocumentedReply, OperationDocs


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
