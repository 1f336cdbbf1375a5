"""Secrets of webhook endpoints: creation, encryption for the store, and signatures (Standard Webhooks 1.0)."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
MIN_KEY_LENGTH: Final = 32
_NONCE_BYTES: Final = 12

type KeyMaterial = Callable[[], Awaitable[bytes]]


class SecretVault:
    """Creates the signing secrets of webhook endpoints, and encrypts them for the store with AES-256-GCM.

    Args:
        material: returns the secret from which the encryption key is derived, the same on all instances.
        runtime: clock, randomness and threads.
    """

    def __init__(self, material: KeyMaterial, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._material = material
        self._runtime = runtime
        self._cipher: AESGCM | None = None

    def create_secret(self) -> str:
        """Return a new secret: ``whsec_`` and the base64 form of 32 random bytes."""
        return PREFIX + b64encode(self._runtime.random_bytes(SECRET_BYTES)).decode()

    async def encrypt(self, endpoint_id: str, secret: str) -> str:
        """Encrypt a secret; the result can be decrypted only for the same endpoint.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOK_KEY_UNAVAILABLE`` if the key is missing or too short.
        """
        nonce = self._runtime.random_bytes(_NONCE_BYTES)
        cipher = await self._load_cipher()
        return b64encode(nonce + cipher.encrypt(nonce, secret.encode(), endpoint_id.encode())).decode()

    async def decrypt(self, endpoint_id: str, encrypted_secret: str) -> str:
        """Decrypt the stored secret of an endpoint.

        Raises:
            WorkspaceError: UNAVAILABLE ``WEBHOOK_KEY_UNAVAILABLE`` if the key is missing or too short, or if the secret
                was encrypted with another key.
        """
        content = b64decode(encrypted_secret)
        cipher = await self._load_cipher()
        try:
            return cipher.decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], endpoint_id.encode()).decode()
        except InvalidTag:
            detail = "The secret was encrypted with another key; restore WEBHOOK_SECRET_KEY, or rotate the secret."
            raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOK_KEY_UNAVAILABLE", detail) from None

    async def _load_cipher(self) -> AESGCM:
        if self._cipher is None:
            material = await self._material()
            if len(material) < MIN_KEY_LENGTH:
                detail = f"WEBHOOK_SECRET_KEY must have at least {MIN_KEY_LENGTH} characters."
                raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOK_KEY_UNAVAILABLE", detail)
            key = HKDF(hashes.SHA256(), SECRET_BYTES, salt=None, info=b"oi-webhook-secrets/v1").derive(material)
            self._cipher = AESGCM(key)
        return self._cipher


def build_signature_header(secrets: Sequence[str], message_id: str, epoch_seconds: int, body: bytes) -> str:
    """Return the header ``webhook-signature``: one signature for each secret, separated by spaces.

    Args:
        secrets: signing secrets of the endpoint, with the prefix ``whsec_``.
        message_id: the header ``webhook-id``.
        epoch_seconds: the header ``webhook-timestamp``, in seconds since 1970.
        body: body of the request.
    """
    content = f"{message_id}.{epoch_seconds}.".encode() + body
    digests = (hmac.digest(b64decode(secret.removeprefix(PREFIX)), content, hashlib.sha256) for secret in secrets)
    return " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests)
