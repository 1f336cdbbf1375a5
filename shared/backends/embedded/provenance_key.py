"""The key that signs checkpoints, as a PEM file that only its owner can read, and beside it what verifies."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.backends.embedded import durable_files
from shared.backends.embedded.signing_key import load_private, new_private
from shared.errors import Kind, WorkspaceError
from shared.observability import logs

_COORDINATE: Final = 32
_ID_DIGITS: Final = 16
_LOG = logs.logger("provenance")


class FileNoteSigner:
    """The NoteSigner port over a file; made on first use, by whichever process comes first.

    The public key of each key that ever signed stays in a folder beside it, so that a replaced key's notes can still be
    verified. A file that is replaced is met at once by all processes.

    Args:
        path: the file.
        notes: folder of the checkpoints; once something is in it a missing file is not made reload.
    """

    def __init__(self, path: Path, notes: Path) -> None:
        self._path = path
        self._notes = notes
        self._loaded: tuple[tuple[int, ...], ec.EllipticCurvePrivateKey] | None = None

    async def sign(self, message: bytes) -> bytes:
        """Return the signature over SHA-256 of a message, r and s as 64 bytes."""
        der = (await asyncio.to_thread(self._current)).sign(message, ec.ECDSA(hashes.SHA256()))
        return b"".join(part.to_bytes(_COORDINATE) for part in decode_dss_signature(der))

    async def public_key(self) -> bytes:
        """Return the public key as DER SubjectPublicKeyInfo."""
        return _spki((await asyncio.to_thread(self._current)).public_key())

    async def trusted_keys(self, *, reload: bool = False) -> Sequence[bytes]:  # noqa: ARG002  nothing is kept
        """Return the public keys that ever signed."""
        return await asyncio.to_thread(self._trusted)

    def _trusted(self) -> list[bytes]:
        kept = [spki for path in sorted(public_keys(self._path).glob("*.pem")) if (spki := _public(path))]
        try:
            current = _spki(self._current().public_key())
        except WorkspaceError:
            # Notes can be verified while the key that signs is gone.
            if kept:
                return kept
            raise
        return list(dict.fromkeys([current, *kept]))

    def _current(self) -> ec.EllipticCurvePrivateKey:
        try:
            return self._unchanged()
        except FileNotFoundError:
            if self._has_signed():
                raise _refused("is missing, and checkpoints are there that it signed") from None
            new_private(self._path)
            return self._unchanged()
        except ValueError:
            raise _refused("is none") from None

    def _unchanged(self) -> ec.EllipticCurvePrivateKey:
        status = self._path.stat()
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._loaded is None or self._loaded[0] != stamp:
            key = load_private(self._path)
            publish(self._path, key.public_key())
            self._loaded = stamp, key
        return self._loaded[1]

    def _has_signed(self) -> bool:
        return self._notes.is_dir() and any(self._notes.iterdir())


def rotate(path: Path) -> str:
    """Replace the key that signs checkpoints by a new one, and return the first digits of its SHA-256.

    The public keys of both are on disk before: whoever meets a note of either can verify it.

    Raises:
        ValueError: the file holds no P-256 private key.
        OSError: the folder cannot be written.
    """
    if path.exists():
        publish(path, load_private(path).public_key())
    draft = path.with_name(f"{path.name}.next")
    draft.unlink(missing_ok=True)
    new_private(draft)
    public = load_private(draft).public_key()
    publish(path, public)
    draft.replace(path)
    durable_files.sync_folders(path, path.parent)
    return _name(public)


def public_keys(path: Path) -> Path:
    """Return the folder of the public keys of a key's file."""
    return path.with_name(f"{path.stem}s")


def publish(path: Path, key: ec.EllipticCurvePublicKey) -> None:
    """Keep a public key beside the file of the key that signs."""
    kept = public_keys(path) / f"{_name(key)}.pem"
    if not kept.exists():
        pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        durable_files.create(kept, durable_files.written(kept, pem, 0o444), path.parent)


def _public(path: Path) -> bytes:
    """Return the public key of a file, empty when it is none."""
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except (OSError, ValueError):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return _spki(key)
    _LOG.warning("a file beside the checkpoint key holds no public key", extra=logs.fields(file=path.name))
    return b""


def _name(key: ec.EllipticCurvePublicKey) -> str:
    return hashlib.sha256(_spki(key)).hexdigest()[:_ID_DIGITS]


def _spki(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _refused(why: str) -> WorkspaceError:
    _LOG.error("the key that signs checkpoints is not to be used", extra=logs.fields(cause=why))
    detail = f"The key that signs checkpoints {why}; nothing is signed until it is put back or replaced."
    return WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail)
