"""Verification of receipts (RFC 9942), which prove that an audit chain contains a record.

Like ``export``, this module shares no code with the service; it also needs ``cbor2``. It accepts only the exact
encoding that the service writes, so that every change to a receipt is detected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from oi.counts import format_count
from oi.verification.export import describe_record_fault_or_empty
from oi.verification.hash_rule import format_record_id
from oi.verification.merkle import hash_leaf, hash_node
from oi.verification.notes import CheckpointContent, VerifierKey

MAX_RECEIPT_BYTES: Final = 65_536
MAX_PATH: Final = 63
_SIGN1_TAG: Final = 18
_HASH_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_ALGORITHM, _KEY_ID, _CLAIMS, _TREE_ALGORITHM, _PROOFS = 1, 4, 15, 395, 396
_ES256, _RFC9162_SHA256 = -7, 1
_ISSUER, _SUBJECT = 1, 2
_INCLUSION, _CONSISTENCY = -1, -2


class ReceiptError(ValueError):
    """The receipt is malformed, or does not match the record or the keys."""


class UnknownKeyError(ReceiptError):
    """None of the trusted keys has the key id that the receipt names."""


@dataclass(frozen=True, slots=True)
class RecordReceipt:
    """Parsed receipt of a record; its signature is not verified yet.

    Attributes:
        protected: protected header, encoded as CBOR.
        signature: ECDSA signature, r and s as 64 bytes.
        key_id: id of the key that signed the receipt.
        issuer: base URL of the service at the time of the signature.
        subject: name of the chain in its checkpoints (origin).
        size: number of leaves of the signed Merkle tree.
        index: position of the record's leaf, from 0.
        path: audit path: the hashes that lead from the leaf to the root.
    """

    protected: bytes
    signature: bytes
    key_id: bytes
    issuer: str
    subject: str
    size: int
    index: int
    path: Sequence[bytes]

    @property
    def record_id(self) -> str:
        """RecordID of the record that the receipt proves, computed from the position of its leaf."""
        return format_record_id(self.index + 1)

    def compute_root(self, leaf_data: bytes) -> bytes:
        """Compute the Merkle root from a record's leaf and the audit path of the receipt (RFC 9162 section 2.1.3.2).

        Raises:
            ReceiptError: the audit path has the wrong length for a tree of this size.
        """
        node, place, last = hash_leaf(leaf_data), self.index, self.size - 1
        for step in self.path:
            if last == 0:
                raise ReceiptError(f"the proof has too many hashes for a tree of {format_count(self.size, 'record')}")
            if place & 1 or place == last:
                node = hash_node(step, node)
                while not place & 1 and place:
                    place, last = place >> 1, last >> 1
            else:
                node = hash_node(node, step)
            place, last = place >> 1, last >> 1
        if last:
            raise ReceiptError(f"the proof has too few hashes for a tree of {format_count(self.size, 'record')}")
        return node

    def verify_signature(self, merkle_root: bytes, keys: Sequence[VerifierKey]) -> None:
        """Verify the receipt's signature, which covers a Merkle root.

        Raises:
            UnknownKeyError: no trusted key has the key id that the receipt names.
            ReceiptError: the signature does not match the root, or the key has the name of another workspace.
        """
        stated = [key for key in keys if key.key_id == self.key_id]
        if not stated:
            raise UnknownKeyError(
                f"the receipt states the unknown key {self.key_id.hex()}; pass the set of all keys with --key"
            )
        workspace = "/".join(self.subject.split("/")[:2])
        named = [key for key in stated if key.name in ("", workspace)]
        if not named:
            raise ReceiptError(f"the key {self.key_id.hex()} belongs to {stated[0].name}, not to {self.subject}")
        half = _SIGNATURE_BYTES // 2
        parts = int.from_bytes(self.signature[:half], "big"), int.from_bytes(self.signature[half:], "big")
        signed = cbor2.dumps(["Signature1", self.protected, b"", merkle_root])
        try:
            for key in named:
                key.parse_public_key().verify(encode_dss_signature(*parts), signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise ReceiptError("the signature does not match the Merkle root computed from record and proof") from None


class _ProtectedHeader(NamedTuple):
    """Parsed protected header of a receipt; the attributes are those of `RecordReceipt`."""

    key_id: bytes
    issuer: str
    subject: str


class _InclusionProof(NamedTuple):
    """Parsed inclusion proof of a receipt.

    Attributes:
        tree_size: number of leaves of the signed Merkle tree.
        leaf_index: position of the record's leaf, from 0.
        audit_path: hashes that lead from the leaf to the root.
    """

    tree_size: int
    leaf_index: int
    audit_path: Sequence[bytes]


def parse_receipt(content: bytes) -> RecordReceipt:
    """Parse the receipt of a record.

    Raises:
        ReceiptError: the receipt does not have the encoding that the service writes.
    """
    if len(content) > MAX_RECEIPT_BYTES:
        raise ReceiptError(f"the file is not a receipt: it has more than {MAX_RECEIPT_BYTES} bytes")
    message = decode_preferred_cbor(content, "the receipt")
    if not isinstance(message, cbor2.CBORTag) or message.tag != _SIGN1_TAG:
        raise ReceiptError("the receipt is not a COSE_Sign1 with tag 18")
    protected, unprotected, payload, signature = _require_array(message.value, 4, "the COSE_Sign1")
    if payload is not None:
        raise ReceiptError("the receipt must not contain its payload, the Merkle root")
    if not isinstance(signature, bytes) or len(signature) != _SIGNATURE_BYTES:
        raise ReceiptError("the signature of the receipt must have 64 bytes")
    key_id, issuer, subject = _parse_protected_header(protected)
    size, index, path = _parse_inclusion_proof(unprotected)
    proofs = {_PROOFS: {_INCLUSION: [cbor2.dumps([size, index, list(path)])]}}
    # Python compares 396.0 and 396 as equal, so the form is compared as bytes.
    if cbor2.dumps(cbor2.CBORTag(_SIGN1_TAG, [protected, proofs, None, signature])) != content:
        raise ReceiptError("the receipt does not have the exact CBOR encoding that the service writes")
    return RecordReceipt(protected, signature, key_id, issuer, subject, size, index, path)


def verify_record_by_receipt(receipt: RecordReceipt, record: Mapping[str, Any], keys: Sequence[VerifierKey]) -> None:
    """Verify with a receipt that the audit chain contains a record.

    Args:
        receipt: parsed receipt.
        record: the record with its ``Hash``.
        keys: trusted public keys of the workspace.

    Raises:
        UnknownKeyError: no trusted key has the key id that the receipt names.
        ReceiptError: the record was changed, the receipt belongs to another record, or the proof or signature is wrong.
    """
    reason = describe_record_fault_or_empty(record)
    if reason:
        raise ReceiptError(reason)
    if record.get("RecordID") != receipt.record_id:
        raise ReceiptError(f"the receipt is for the record {receipt.record_id}, not for {record.get('RecordID')}")
    receipt.verify_signature(receipt.compute_root(bytes.fromhex(str(record["Hash"]))), keys)


def verify_receipt_for_checkpoint(
    content: bytes, record_id: str, leaf_data: bytes, checkpoint: CheckpointContent, keys: Sequence[VerifierKey]
) -> None:
    """Verify with a receipt that a checkpoint covers a record.

    Args:
        content: encoded receipt.
        record_id: RecordID of the record.
        leaf_data: ``Hash`` of the record, 32 bytes.
        checkpoint: content of the checkpoint.
        keys: trusted public keys of the workspace.

    Raises:
        UnknownKeyError: no trusted key has the key id that the receipt names.
        ReceiptError: the receipt is malformed, or does not match the record, the checkpoint or the keys.
    """
    receipt = parse_receipt(content)
    if receipt.record_id != record_id:
        raise ReceiptError(f"the receipt is for the record {receipt.record_id}, not for {record_id}")
    if (receipt.size, receipt.subject) != (checkpoint.size, checkpoint.origin):
        raise ReceiptError("the receipt is for another checkpoint")
    root = receipt.compute_root(leaf_data)
    if root != checkpoint.root:
        raise ReceiptError("the root hash computed from the proof differs from the root hash in the checkpoint")
    receipt.verify_signature(root, keys)


def decode_preferred_cbor(content: bytes, content_name: str) -> Any:
    """Decode CBOR that has the preferred encoding: no indefinite lengths, shortest numbers, no bytes after the end.

    Args:
        content: the encoded bytes.
        content_name: name of the encoded content, for error messages.

    Raises:
        ReceiptError: the content is not CBOR, or does not have the preferred encoding.
    """
    try:
        value = cbor2.loads(content)
        is_preferred = cbor2.dumps(value) == content
    except (cbor2.CBORError, EOFError, TypeError, ValueError, RecursionError):
        raise ReceiptError(f"{content_name} is not CBOR") from None
    if not is_preferred:
        raise ReceiptError(f"{content_name} is not CBOR in preferred form, or further bytes follow")
    return value


def _require_array(value: Any, length: int, content_name: str) -> Sequence[Any]:
    """Return an array of the given length; otherwise raise a ReceiptError that contains ``content_name``."""
    if not isinstance(value, list | tuple) or len(value) != length:
        raise ReceiptError(f"{content_name} must be an array of {length} items")
    return value


def _parse_protected_header(encoded_header: Any) -> _ProtectedHeader:
    """Parse the protected header of a receipt."""
    header = (
        decode_preferred_cbor(encoded_header, "the protected header") if isinstance(encoded_header, bytes) else None
    )
    labels = {_ALGORITHM, _KEY_ID, _CLAIMS, _TREE_ALGORITHM}
    if not isinstance(header, Mapping) or set(header) != labels:
        raise ReceiptError("the protected header of the receipt must have exactly the labels 1, 4, 15 and 395")
    claims = header[_CLAIMS]
    if (header[_ALGORITHM], header[_TREE_ALGORITHM]) != (_ES256, _RFC9162_SHA256):
        raise ReceiptError("the algorithms of the receipt must be ES256 and RFC9162_SHA256")
    if not isinstance(header[_KEY_ID], bytes):
        raise ReceiptError("the key id of the receipt must be a byte string")
    if not isinstance(claims, Mapping) or set(claims) != {_ISSUER, _SUBJECT}:
        raise ReceiptError("the claims of the receipt must be exactly issuer and subject")
    issuer, subject = claims[_ISSUER], claims[_SUBJECT]
    if not isinstance(issuer, str) or not isinstance(subject, str):
        raise ReceiptError("issuer and subject of the receipt must be text")
    return _ProtectedHeader(header[_KEY_ID], issuer, subject)


def _parse_inclusion_proof(unprotected_header: Any) -> _InclusionProof:
    """Parse the unprotected header of a receipt, which must contain exactly one inclusion proof."""
    proofs = (
        unprotected_header.get(_PROOFS)
        if isinstance(unprotected_header, Mapping) and len(unprotected_header) == 1
        else None
    )
    if isinstance(proofs, Mapping) and set(proofs) == {_CONSISTENCY}:
        raise ReceiptError("the receipt contains a consistency proof; an inclusion proof is required")
    if not isinstance(proofs, Mapping) or set(proofs) != {_INCLUSION}:
        raise ReceiptError(
            "the unprotected header of the receipt must contain exactly one inclusion proof and nothing else"
        )
    [proof] = _require_array(proofs[_INCLUSION], 1, "the list of proofs")
    if not isinstance(proof, bytes):
        raise ReceiptError("the inclusion proof must be a byte string")
    size, index, path = _require_array(decode_preferred_cbor(proof, "the proof"), 3, "the proof")
    if type(size) is not int or type(index) is not int or not 0 <= index < size < 1 << MAX_PATH:
        raise ReceiptError("the inclusion proof must have a tree size, and a record index below that size")
    if not isinstance(path, list | tuple) or len(path) > MAX_PATH:
        raise ReceiptError(f"the path of the inclusion proof must be an array of at most {MAX_PATH} hashes")
    if not all(isinstance(step, bytes) and len(step) == _HASH_BYTES for step in path):
        raise ReceiptError("each hash in the path of the inclusion proof must have 32 bytes")
    return _InclusionProof(size, index, path)
