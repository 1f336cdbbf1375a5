"""Signed notes and checkpoints of C2SP (signed-note, tlog-checkpoint), signature type 0x02: ECDSA over P-256.

This module needs only the standard library and ``cryptography``.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ECDSA_TYPE: Final = b"\x02"
MAX_NOTE_BYTES: Final = 1_000_000
_DASH: Final = "\u2014 "
_HASH_BYTES: Final = 32
_LINES: Final = 3


class NoteError(ValueError):
    """Exception for a note or a verifier key that is invalid or not trusted."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """Public key of a signer.

    Attributes:
        name: name of the key, which signature lines contain.
        spki: public key as DER SubjectPublicKeyInfo.
    """

    name: str
    spki: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a verifier key from a line ``name+id+base64``.

        Raises:
            NoteError: if the form, the signature type or the curve is wrong, or the id does not match the key.
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

    def parse_public_key(self) -> ec.EllipticCurvePublicKey:
        """Parse ``spki`` and return the public key.

        Raises:
            NoteError: if ``spki`` is not a P-256 key.
        """
        try:
            key = serialization.load_der_public_key(self.spki)
        except ValueError:
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


def build_key_name(workspace_id: str) -> str:
    """Return the name of the key that signs a workspace's checkpoints, such as ``oi-provenance/plant``."""
    return f"oi-provenance/{quote(workspace_id, safe='')}"


def build_checkpoint_origin(workspace_id: str, target: str, scope_key: str = "") -> str:
    """Return the origin (first line) of a chain's checkpoints, such as ``oi-provenance/plant/DomainEvents/line-1``.

    Args:
        workspace_id: the workspace's id; the origin begins with the name of its key (:func:`build_key_name`).
        target: target of the chain.
        scope_key: scope key of the chain; the origin contains it percent-encoded. Empty for a chain without a scope.
    """
    scope = f"/{quote(scope_key, safe='')}" if scope_key else ""
    return f"{build_key_name(workspace_id)}/{target}{scope}"


def format_note(text: str, key: VerifierKey, signature: bytes) -> bytes:
    """Format a signed note: a text and one signature line.

    Args:
        text: signed text, which ends in a newline.
        key: key that made the signature.
        signature: ECDSA signature as DER, over the SHA-256 of the text.
    """
    return f"{text}\n".encode() + format_signature_line(key, signature)


def format_signature_line(key: VerifierKey, signature: bytes) -> bytes:
    """Format a signature (ECDSA, DER) as a line of a signed note; a note can have several signature lines."""
    return f"{_DASH}{key.name} {base64.b64encode(key.key_id + signature).decode()}\n".encode()


def verify_note_and_get_text(note: bytes, key: VerifierKey) -> str:
    """Verify that a key signed a note, and return the signed text.

    Raises:
        NoteError: if the bytes are not a note, or the key's signature is missing or wrong.
    """
    text, lines = _split_note_into_text_and_signature_lines(note)
    signatures = [signature for line in lines if (signature := _find_signature_of_key(line, key)) is not None]
    if not signatures:
        raise NoteError(f"the checkpoint is not signed by {key.name}")
    try:
        for signature in signatures:
            key.parse_public_key().verify(signature, text.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise NoteError("the signature of the checkpoint is not valid") from None
    return text


def find_signer_key(note: bytes, keys: Sequence[VerifierKey]) -> VerifierKey | None:
    """Return the first of the given keys whose signature line a note contains; None if no key signed the note.

    The signature is not verified.

    Raises:
        NoteError: if the bytes are not a signed note.
    """
    _, lines = _split_note_into_text_and_signature_lines(note)
    return next((key for key in keys if any(_find_signature_of_key(line, key) is not None for line in lines)), None)


def verify_and_parse_checkpoint(note: bytes, key: VerifierKey, origin: str) -> CheckpointContent:
    """Verify the signature and the origin of a checkpoint and return its content.

    Raises:
        NoteError: if the checkpoint is not signed by the key, is malformed, or has another origin.
    """
    checkpoint = _parse_checkpoint(verify_note_and_get_text(note, key))
    if checkpoint.origin != origin:
        raise NoteError(f"the checkpoint belongs to {checkpoint.origin}, not to {origin}")
    return checkpoint


def _split_note_into_text_and_signature_lines(note: bytes) -> tuple[str, Sequence[str]]:
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
    return text + "\n", signatures.split("\n")[:-1]


def _decode_base64(text: str) -> bytes:
    """Decode base64 in canonical form.

    Other spellings of the same bytes are rejected, so that every changed character is detected.
    """
    decoded = base64.b64decode(text, validate=True)
    if base64.b64encode(decoded).decode() != text:
        raise ValueError("the base64 text is not canonical: the unused bits of its last character must be zero")
    return decoded


def _find_signature_of_key(line: str, key: VerifierKey) -> bytes | None:
    """Return the DER signature in a signature line of a note, if ``key`` made it; return None for another key."""
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
    return decoded[4:] if (name, decoded[:4]) == (key.name, key.key_id) else None


def _parse_checkpoint(text: str) -> CheckpointContent:
    lines = text.split("\n")[:-1]
    if len(lines) < _LINES or not all(lines):
        raise NoteError("the signed note does not contain a checkpoint")
    origin, size, encoded = lines[:_LINES]
    canonical_size = size.isascii() and size.isdigit() and str(int(size)) == size
    try:
        root = _decode_base64(encoded)
    except ValueError:
        raise NoteError("the checkpoint has no root hash") from None
    if not canonical_size or len(root) != _HASH_BYTES:
        raise NoteError("the signed note does not contain a checkpoint")
    return CheckpointContent(origin, int(size), root)
