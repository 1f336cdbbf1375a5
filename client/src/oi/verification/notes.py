"""Signed notes and checkpoints of C2SP (signed-note, tlog-checkpoint), signature type 0x02: ECDSA over P-256.

This module needs only the standard library and ``cryptography`` because the offline verifier uses it.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from oi.verification.hash_rule import RECORD_ID_DIGITS

ECDSA_TYPE: Final = b"\x02"
MAX_NOTE_BYTES: Final = 1_000_000
_DASH: Final = "\u2014 "
_HASH_BYTES: Final = 32
_LINES: Final = 3


class NoteError(ValueError):
    """A note or a verifier key is invalid or not trusted."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """Public key that verifies signed notes.

    Attributes:
        name: name of the key on the signature lines of notes; empty for a key from a COSE or JWK set.
        spki: public key as DER SubjectPublicKeyInfo.
    """

    name: str
    spki: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a verifier key from a line ``name+id+base64``.

        Raises:
            NoteError: the form, the signature type or the curve is wrong, or the id does not match the key.
        """
        try:
            name, key_id, encoded = text.strip().split("+", 2)
            decoded = _decode_base64(encoded)
        except ValueError:
            raise NoteError("a verifier key must have the form name+id+key") from None
        if decoded[:1] != ECDSA_TYPE:
            raise NoteError("the verifier key must have signature type 0x02 (ECDSA)")
        key = cls(name, decoded[1:])
        key.parse_public_key()
        if key.key_id.hex() != key_id:
            raise NoteError("the id of the verifier key does not match the key")
        return key

    @property
    def key_id(self) -> bytes:
        """Id of the key: the first four bytes of the SHA-256 of ``spki``."""
        return hashlib.sha256(self.spki).digest()[:4]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of ``spki`` as hexadecimal digits; a forged key can have the same short id, but not this digest."""
        return hashlib.sha256(self.spki).hexdigest()

    def parse_public_key(self) -> ec.EllipticCurvePublicKey:
        """Parse ``spki`` and return the public key.

        Raises:
            NoteError: ``spki`` is not a P-256 key.
        """
        try:
            key = serialization.load_der_public_key(self.spki)
        except (ValueError, UnsupportedAlgorithm):
            raise NoteError("the verifier key is not a public key") from None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise NoteError("the verifier key is not on the curve P-256")
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(ECDSA_TYPE + self.spki).decode()}"


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """Content of a signed checkpoint.

    Attributes:
        origin: name of the chain in checkpoints, see :func:`build_checkpoint_origin`.
        size: number of records that the checkpoint covers.
        root: Merkle root of these records (RFC 6962), 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """Text of the checkpoint that is signed: origin, size and root on one line each."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """Checkpoint that was opened with the known keys.

    Either known keys signed it, and their signatures are valid; or only unknown keys signed it. In the second case the
    content is not trusted: it can only reveal faults.

    Attributes:
        content: content of the checkpoint.
        signers: the known keys that signed it; empty if only unknown keys did.
        unknown_key: id of the unknown key that the first signature states, as hexadecimal digits; empty if a known key
            signed the checkpoint. The unknown key may be a retired key of the workspace.
    """

    content: CheckpointContent
    signers: Sequence[VerifierKey]
    unknown_key: str


def build_key_name(workspace_id: str) -> str:
    """Return the name of the key that signs a workspace's checkpoints."""
    return f"oi-provenance/{quote(workspace_id, safe='')}"


def build_checkpoint_origin(workspace_id: str, target: str, scope_key: str = "") -> str:
    """Return the origin (first line) of a chain's checkpoints, such as ``oi-provenance/plant/DomainEvents/line-1``.

    Args:
        workspace_id: id of the workspace, such as ``plant``.
        target: container of the chain, such as ``DomainEvents``.
        scope_key: scope of the chain, which is percent-encoded; empty for a chain of the whole workspace.
    """
    scope = f"/{quote(scope_key, safe='')}" if scope_key else ""
    return f"{build_key_name(workspace_id)}/{target}{scope}"


def format_signature_line(key: VerifierKey, signature: bytes) -> bytes:
    """Format a signature as one signature line of a signed note."""
    return f"{_DASH}{key.name} {base64.b64encode(key.key_id + signature).decode()}\n".encode()


def verify_and_parse_checkpoint(
    note: bytes, keys: Sequence[VerifierKey], workspace: str, target: str, scope_key: str
) -> OpenedCheckpoint:
    """Verify the origin of a checkpoint, and its signature if its key is known.

    Args:
        note: checkpoint as a signed note.
        keys: trusted public keys, at least one; keys with the name of another workspace do not count.
        workspace: id of the workspace.
        target: container of the chain.
        scope_key: scope of the chain; empty if it has none.

    Raises:
        NoteError: the signature of a trusted key is wrong, no key of the workspace can have signed the checkpoint, or
            the checkpoint is malformed or belongs to another chain.
    """
    text, signatures = _split_note_text_and_signatures(note)
    name = build_key_name(workspace)
    by_known = [(key, signature) for key in keys for signature in signatures if signature.has_key_and_name(key, name)]
    for key, signature in by_known:
        _verify_signature(text, key, signature)
    unknown = "" if by_known else _require_unknown_key_id(signatures, keys, name)
    checkpoint, origin = _parse_checkpoint(text), build_checkpoint_origin(workspace, target, scope_key)
    if checkpoint.origin != origin:
        raise NoteError(f"the checkpoint belongs to {checkpoint.origin}, not to {origin}")
    return OpenedCheckpoint(checkpoint, list(dict.fromkeys(key for key, _ in by_known)), unknown)


def describe_unknown_key(key_id: str) -> str:
    """Return the reason why a checkpoint whose signature states an unknown key could not be verified."""
    return f"the signature of the checkpoint states the unknown key {key_id}; pass the set of all keys with --key"


@dataclass(frozen=True, slots=True)
class _NoteSignature:
    """Signature line of a note.

    Attributes:
        key_name: name of the key.
        key_id: id of the key, four bytes.
        signature: the signature; it is not verified yet.
    """

    key_name: str
    key_id: bytes
    signature: bytes

    def has_key_and_name(self, key: VerifierKey, key_name: str) -> bool:
        """Return whether the signature line names ``key``: with the key's id, and with ``key_name`` as the name.

        A key that has a name itself must have the same name.
        """
        return self.key_id == key.key_id and self.key_name == key_name and key.name in ("", key_name)


def _verify_signature(signed_text: str, key: VerifierKey, signature: _NoteSignature) -> None:
    try:
        key.parse_public_key().verify(signature.signature, signed_text.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise NoteError("the signature of the checkpoint is not valid") from None


def _require_unknown_key_id(signatures: Sequence[_NoteSignature], keys: Sequence[VerifierKey], key_name: str) -> str:
    """Return the id, in hexadecimal digits, of the unknown key that the first signature with this name states.

    Raises:
        NoteError: no signature has this name, or a signature states the id of a trusted key, but with another name.
    """
    trusted = {key.key_id for key in keys}
    unknown = [each.key_id for each in signatures if each.key_name == key_name and each.signature]
    if not unknown or any(each.key_id in trusted for each in signatures):
        raise NoteError(f"the checkpoint is not signed by a trusted key of {key_name}")
    return unknown[0].hex()


def _split_note_text_and_signatures(note: bytes) -> tuple[str, Sequence[_NoteSignature]]:
    """Return the text and the signatures of a signed note.

    Raises:
        NoteError: the bytes are not a signed note.
    """
    try:
        decoded = note.decode()
    except UnicodeDecodeError:
        raise NoteError("the checkpoint is not UTF-8") from None
    text, blank, signatures = decoded.rpartition("\n\n")
    control = any(ord(character) < ord(" ") and character != "\n" for character in decoded)
    if len(note) > MAX_NOTE_BYTES or not blank or not signatures.endswith("\n") or control:
        raise NoteError(
            "the checkpoint is not a signed note; a signed note has text, an empty line and signature lines"
        )
    return text + "\n", [_parse_signature(line) for line in signatures.split("\n")[:-1]]


def _decode_base64(text: str) -> bytes:
    """Decode canonical base64.

    Reject every other encoding of the same bytes, so that any changed character is detected.

    Raises:
        ValueError: the text is not canonical base64.
    """
    decoded = base64.b64decode(text, validate=True)
    if base64.b64encode(decoded).decode() != text:
        raise ValueError("the base64 text is not canonical: the unused bits of its last character must be zero")
    return decoded


def _parse_signature(line: str) -> _NoteSignature:
    """Parse a signature line of a note.

    Raises:
        NoteError: the line is not a signature line.
    """
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not encoded:
        raise NoteError(
            "the checkpoint is not a signed note; a signed note has text, an empty line and signature lines"
        )
    try:
        decoded = _decode_base64(encoded)
    except ValueError:
        raise NoteError(
            "the checkpoint is not a signed note; a signed note has text, an empty line and signature lines"
        ) from None
    return _NoteSignature(name, decoded[:4], decoded[4:])


def _parse_checkpoint(text: str) -> CheckpointContent:
    lines = text.split("\n")[:-1]
    if len(lines) < _LINES or not all(lines):
        raise NoteError("the signed note does not contain a checkpoint")
    origin, size, encoded = lines[:_LINES]
    is_number = size.isascii() and size.isdigit() and len(size) <= RECORD_ID_DIGITS
    try:
        root = _decode_base64(encoded)
    except ValueError:
        raise NoteError("the checkpoint has no root hash") from None
    if not is_number or str(int(size)) != size or len(root) != _HASH_BYTES:
        raise NoteError("the signed note does not contain a checkpoint")
    return CheckpointContent(origin, int(size), root)
