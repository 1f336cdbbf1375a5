"""COSE encoding of signed Merkle roots, receipts and public keys (RFC 9052, and RFC 9942 with RFC9162_SHA256)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from shared.provenance.notes import NoteError, VerifierKey

SIGN1_TAG: Final = 18
ES256: Final = -7
RFC9162_SHA256: Final = 1
COORDINATE_BYTES: Final = 32

_ALGORITHM, _KEY_ID, _CLAIMS, _TREE_ALGORITHM, _PROOFS = 1, 4, 15, 395, 396
_ISSUER, _SUBJECT = 1, 2
_INCLUSION, _CONSISTENCY = -1, -2
_KEY_TYPE, _KEY_KEY_ID, _KEY_ALGORITHM, _CURVE, _X, _Y = 1, 2, 3, -1, -2, -3
_EC2: Final = 2
_P256: Final = 1


@dataclass(frozen=True, slots=True)
class RootSignature:
    """COSE signature over the root of a Merkle tree. It is stored as a COSE_Sign1 without a proof.

    Attributes:
        protected: protected header, encoded as CBOR.
        signature: ECDSA signature, r and s as 64 bytes.
    """

    protected: bytes
    signature: bytes

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Parse a stored signature.

        Raises:
            NoteError: if the content is not what :meth:`encode` returns for a signature.
        """
        try:
            message = cbor2.loads(content, allow_indefinite=False, allow_duplicate_keys=False)
            protected, unprotected, payload, signature = message.value
        except (cbor2.CBORError, AttributeError, TypeError, ValueError):
            raise NoteError("the signature over the Merkle root of the checkpoint is damaged") from None
        has_valid_parts = (
            isinstance(protected, bytes) and isinstance(signature, bytes) and len(signature) == 2 * COORDINATE_BYTES
        )
        found = cls(protected, signature)
        # Comparing with the encoding rejects every other form: other tags, trailing bytes, longer integers.
        if not has_valid_parts or unprotected or payload is not None or found.encode() != content:
            raise NoteError("the signature over the Merkle root of the checkpoint is damaged")
        return found

    def encode(self) -> bytes:
        """Encode the signature as COSE_Sign1 with a detached payload and without a proof."""
        return self._encode_with_header({})

    def encode_inclusion_receipt(self, tree_size: int, leaf_index: int, audit_path: Sequence[bytes]) -> bytes:
        """Encode a receipt of inclusion (RFC 9942 section 5.2).

        Args:
            tree_size: number of the tree's leaves.
            leaf_index: index of the record's leaf, from 0.
            audit_path: audit path of the leaf.
        """
        return self._encode_with_header(
            {_PROOFS: {_INCLUSION: [cbor2.dumps([tree_size, leaf_index, list(audit_path)])]}}
        )

    def encode_growth_receipt(self, old_tree_size: int, tree_size: int, consistency_path: Sequence[bytes]) -> bytes:
        """Encode a receipt of consistency (RFC 9942 section 5.3); this signature must sign the larger tree's root.

        Args:
            old_tree_size: number of the smaller tree's leaves.
            tree_size: number of the larger tree's leaves.
            consistency_path: hashes of the consistency proof.
        """
        return self._encode_with_header(
            {_PROOFS: {_CONSISTENCY: [cbor2.dumps([old_tree_size, tree_size, list(consistency_path)])]}}
        )

    def read_key_id(self) -> bytes:
        """Return the id of the key that made the signature.

        Raises:
            NoteError: if the protected header has no key id.
        """
        try:
            key_id = cbor2.loads(self.protected)[_KEY_ID]
        except (cbor2.CBORError, LookupError, TypeError):
            key_id = None
        if not isinstance(key_id, bytes):
            raise NoteError("the signature over the Merkle root of the checkpoint has no key id")
        return key_id

    def verify(self, root: bytes, key: VerifierKey) -> None:
        """Verify that a key signed the root of a Merkle tree with this signature.

        Raises:
            NoteError: if the key did not sign this root.
        """
        half = len(self.signature) // 2
        parts = int.from_bytes(self.signature[:half]), int.from_bytes(self.signature[half:])
        signed = build_signed_bytes(self.protected, root)
        try:
            key.parse_public_key().verify(encode_dss_signature(*parts), signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise NoteError("the signature over the Merkle root of the checkpoint is not valid") from None

    def _encode_with_header(self, unprotected_header: dict[int, Any]) -> bytes:
        return cbor2.dumps(cbor2.CBORTag(SIGN1_TAG, [self.protected, unprotected_header, None, self.signature]))


def build_protected_header(key_id: bytes, issuer: str, subject: str) -> bytes:
    """Encode the protected header of a signature over a Merkle root as CBOR.

    Args:
        key_id: id of the key that signs.
        issuer: base URL of the service.
        subject: name of the chain in its checkpoints (origin).
    """
    claims = {_ISSUER: issuer, _SUBJECT: subject}
    return cbor2.dumps({_ALGORITHM: ES256, _KEY_ID: key_id, _CLAIMS: claims, _TREE_ALGORITHM: RFC9162_SHA256})


def build_signed_bytes(protected_header: bytes, root: bytes) -> bytes:
    """Encode the bytes that a key signs for a Merkle root: the Sig_structure of COSE_Sign1 (RFC 9052 section 4.4).

    Args:
        protected_header: protected header from :func:`build_protected_header`.
        root: root of the Merkle tree.
    """
    return cbor2.dumps(["Signature1", protected_header, b"", root])


def encode_key_set(keys: Sequence[VerifierKey]) -> bytes:
    """Encode public keys as a COSE_KeySet (RFC 9052 section 7)."""
    return cbor2.dumps([_build_cose_key(key) for key in keys])


def compute_content_etag(content: bytes) -> str:
    """Compute the ETag of a receipt or a key set from its content."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _build_cose_key(key: VerifierKey) -> dict[int, Any]:
    numbers = key.parse_public_key().public_numbers()
    return {
        _KEY_TYPE: _EC2,
        _KEY_KEY_ID: key.key_id,
        _KEY_ALGORITHM: ES256,
        _CURVE: _P256,
        _X: numbers.x.to_bytes(COORDINATE_BYTES),
        _Y: numbers.y.to_bytes(COORDINATE_BYTES),
    }
