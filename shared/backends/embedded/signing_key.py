"""The token signing key as a PEM file that only its owner can read."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from shared.auth.jose import compute_thumbprint, to_jwk
from shared.backends.embedded import durable_files

_COORDINATE = 32


class FileSigningKey:
    """The SigningKey port over a file; made on first use, by whichever process comes first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key: ec.EllipticCurvePrivateKey | None = None

    async def key_id(self) -> str:
        """Return the key's JWK thumbprint."""
        return compute_thumbprint((await self._private_key()).public_key())

    async def sign(self, message: bytes) -> bytes:
        """Return the ES256 signature, 64 bytes."""
        der = (await self._private_key()).sign(message, ec.ECDSA(hashes.SHA256()))
        return b"".join(part.to_bytes(_COORDINATE) for part in decode_dss_signature(der))

    async def public_keys(self) -> Sequence[Mapping[str, Any]]:
        """Return the one public key."""
        return [to_jwk((await self._private_key()).public_key())]

    async def _private_key(self) -> ec.EllipticCurvePrivateKey:
        if self._key is None:
            self._key = await asyncio.to_thread(_load_or_create, self._path)
        return self._key


def _load_or_create(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        new_private(path)
    return load_private(path)


def load_private(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key of a PEM file.

    Raises:
        ValueError: it holds no P-256 private key.
        OSError: it cannot be read.
    """
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(f"{path} holds no P-256 private key")  # noqa: TRY004  the content is wrong, not a type
    return key


def new_private(path: Path) -> None:
    """Make a key in a PEM file, unless there is one."""
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # Of several processes one wins, and none reads half a file.
    durable_files.create(path, durable_files.written(path, pem, 0o600), path.parent)
