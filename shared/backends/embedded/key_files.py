"""Private keys and secrets in files that only their owner can read, and public keys in files that all can read.

Each file is created on first use. If several processes use a missing file at the same time, one process creates the
file and the others read it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.auth.jose import compute_thumbprint, to_jwk
from shared.backends.embedded import durable_files
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

_SECRET_BYTES: Final = 32
_COORDINATE_BYTES: Final = 32
_ID_DIGITS: Final = 16

type PublicKeyId = str
"""First 16 hex digits of the SHA-256 of a public key (DER)."""

_LOG = logs.get_logger("key_files")


class FileSecret:
    """Secret of random bytes in a file; calling the object returns the secret.

    Args:
        path: file that contains the secret.
        error_code: code of the error that is raised if the file cannot be used.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, error_code: str, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._path = path
        self._code = error_code
        self._secret = b""

    async def __call__(self) -> bytes:
        """Return the random bytes of the secret; the file is read at the first call.

        Raises:
            WorkspaceError: UNAVAILABLE if the file cannot be read or created.
        """
        if not self._secret:
            try:
                self._secret = await self._runtime.run_in_thread(load_or_create_secret, self._path, self._runtime)
            except OSError as error:
                _LOG.exception("the file of a secret cannot be used", extra=logs.fields(file=self._path.name))
                detail = f"The secret in {self._path.name} cannot be used; restore the file and its permissions."
                raise WorkspaceError(Kind.UNAVAILABLE, self._code, detail) from error
        return self._secret


class FileSigningKey:
    """Implementation of SigningKey: signs access tokens with the private key in a PEM file.

    Args:
        path: file of the private key.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._path = path
        self._key: ec.EllipticCurvePrivateKey | None = None

    async def get_key_id(self) -> str:
        return compute_thumbprint((await self._load_private_key()).public_key())

    async def sign(self, message: bytes) -> bytes:
        return _sign_message(await self._load_private_key(), message)

    async def load_public_keys(self, *, reload: bool = False) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002  nothing is cached
        return [to_jwk((await self._load_private_key()).public_key())]

    async def _load_private_key(self) -> ec.EllipticCurvePrivateKey:
        if self._key is None:
            try:
                self._key = await self._runtime.run_in_thread(_load_or_create_private_key, self._path)
            except (OSError, ValueError) as error:
                _LOG.exception("the key that signs tokens cannot be used")
                detail = "The key that signs tokens cannot be used; restore the key file and its permissions."
                raise WorkspaceError(Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE", detail) from error
        return self._key


class FileNoteSigner:
    """Implementation of NoteSigner: signs checkpoints of audit chains with the private key in a PEM file.

    Before a key signs for the first time, its public key is stored in a folder next to the file, so that checkpoints
    can still be verified after the key is replaced. Every process notices a replaced file at its next signature.

    Args:
        path: file of the private key.
        checkpoint_folder: folder of the checkpoints. If it contains checkpoints, a missing key file is an error;
            otherwise the file is created.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, checkpoint_folder: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._path = path
        self._notes = checkpoint_folder
        self._loaded: tuple[tuple[int, ...], ec.EllipticCurvePrivateKey] | None = None

    async def sign(self, message: bytes) -> bytes:
        return _sign_message(await self._runtime.run_in_thread(self._load_current_key_and_convert_errors), message)

    async def load_public_key_der(self) -> bytes:
        return _to_der_public_key(
            (await self._runtime.run_in_thread(self._load_current_key_and_convert_errors)).public_key()
        )

    async def load_trusted_keys_der(self, *, reload: bool = False) -> Sequence[bytes]:  # noqa: ARG002  nothing is cached
        return await self._runtime.run_in_thread(self._read_trusted_public_keys)

    def _read_trusted_public_keys(self) -> list[bytes]:
        published = [
            spki
            for path in sorted(get_public_key_folder(self._path).glob("*.pem"))
            if (spki := _find_public_key_der(path))
        ]
        try:
            current = _to_der_public_key(self._load_current_key_and_convert_errors().public_key())
        except WorkspaceError:
            # Existing checkpoints can be verified although the signing key is missing.
            if published:
                return published
            raise
        return list(dict.fromkeys([current, *published]))

    def _load_current_key_and_convert_errors(self) -> ec.EllipticCurvePrivateKey:
        try:
            return self._load_or_create_current_key()
        except ValueError:
            raise _build_signing_key_error("is not a valid P-256 private key") from None
        except OSError as error:
            _LOG.exception("the file of the key that signs checkpoints cannot be used")
            detail = "The key that signs checkpoints cannot be used; restore the key file and its permissions."
            raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail) from error

    def _load_or_create_current_key(self) -> ec.EllipticCurvePrivateKey:
        try:
            return self._reload_key_if_changed()
        except FileNotFoundError:
            if self._has_checkpoints():
                raise _build_signing_key_error("is missing, although checkpoints signed with it exist") from None
            create_private_key_file_if_missing(self._path)
            return self._reload_key_if_changed()

    def _reload_key_if_changed(self) -> ec.EllipticCurvePrivateKey:
        status = self._path.stat()
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._loaded is None or self._loaded[0] != version:
            key = load_private_key(self._path)
            store_public_key(self._path, key.public_key())
            self._loaded = version, key
        return self._loaded[1]

    def _has_checkpoints(self) -> bool:
        return self._notes.is_dir() and any(self._notes.iterdir())


def load_or_create_secret(path: Path, runtime: Runtime = SYSTEM_RUNTIME) -> bytes:
    """Return the secret that a file contains; if the file does not exist, create it with random bytes.

    Raises:
        OSError: the file cannot be read or created, or has less than 32 bytes, so that the secret could be guessed.
    """
    if not path.exists():
        draft = durable_files.write_temporary_file(path, runtime.random_bytes(_SECRET_BYTES), 0o600)
        durable_files.try_move_temporary_file_to_new_path(path, draft, path.parent)
    secret = path.read_bytes()
    if len(secret) < _SECRET_BYTES:
        raise OSError(f"the secret in {path} must have at least {_SECRET_BYTES} bytes; restore or delete the file")
    return secret


def load_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Load the private key in a PEM file.

    Raises:
        ValueError: the file does not contain a P-256 private key.
        OSError: the file cannot be read.
    """
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} does not contain a private key in PEM format: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(f"{path} does not contain a P-256 private key")  # noqa: TRY004  wrong content, not a wrong type
    return key


def create_private_key_file_if_missing(path: Path) -> None:
    """Create a PEM file with a new P-256 private key, unless the file exists."""
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    durable_files.try_move_temporary_file_to_new_path(
        path, durable_files.write_temporary_file(path, pem, 0o600), path.parent
    )


def rotate_checkpoint_key(private_key_path: Path) -> PublicKeyId:
    """Replace the key that signs checkpoints by a new key; return the id of the new public key.

    The old and the new public key are stored before the replacement, so that all checkpoints remain verifiable.

    Args:
        private_key_path: file of the private key.

    Raises:
        ValueError: the file does not contain a P-256 private key.
        OSError: the folder cannot be written.
    """
    if private_key_path.exists():
        store_public_key(private_key_path, load_private_key(private_key_path).public_key())
    draft = private_key_path.with_name(f"{private_key_path.name}.next")
    draft.unlink(missing_ok=True)
    create_private_key_file_if_missing(draft)
    public = load_private_key(draft).public_key()
    store_public_key(private_key_path, public)
    draft.replace(private_key_path)
    durable_files.fsync_folders_up_to(private_key_path, private_key_path.parent)
    return _compute_public_key_id(public)


def get_public_key_folder(private_key_path: Path) -> Path:
    """Return the folder next to a private key file for its current and all earlier public keys."""
    return private_key_path.with_name(f"{private_key_path.stem}s")


def store_public_key(private_key_path: Path, public_key: ec.EllipticCurvePublicKey) -> None:
    """Store a public key in the folder that belongs to a private key file."""
    target = get_public_key_folder(private_key_path) / f"{_compute_public_key_id(public_key)}.pem"
    if not target.exists():
        pem = public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        durable_files.try_move_temporary_file_to_new_path(
            target, durable_files.write_temporary_file(target, pem, 0o444), private_key_path.parent
        )


def _load_or_create_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        create_private_key_file_if_missing(path)
    return load_private_key(path)


def _sign_message(key: ec.EllipticCurvePrivateKey, message: bytes) -> bytes:
    der = key.sign(message, ec.ECDSA(hashes.SHA256()))
    return b"".join(part.to_bytes(_COORDINATE_BYTES) for part in decode_dss_signature(der))


def _find_public_key_der(path: Path) -> bytes | None:
    """Read the public key of a file; return None if the file contains no public key."""
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except (OSError, ValueError):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return _to_der_public_key(key)
    _LOG.warning("a file in the folder of checkpoint keys is not a public key", extra=logs.fields(file=path.name))
    return None


def _compute_public_key_id(key: ec.EllipticCurvePublicKey) -> PublicKeyId:
    return hashlib.sha256(_to_der_public_key(key)).hexdigest()[:_ID_DIGITS]


def _to_der_public_key(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _build_signing_key_error(reason: str) -> WorkspaceError:
    _LOG.error("the key that signs checkpoints cannot be used", extra=logs.fields(cause=reason))
    detail = f"The key that signs checkpoints {reason}; restore or replace it to sign again."
    return WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail)
