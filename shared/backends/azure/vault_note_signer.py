"""The key that signs checkpoints, in Key Vault; one version for good, since verifiers hold its public key."""

from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.backends.azure.key_vault import KeyVersion, Vault, answering
from shared.errors import Kind, WorkspaceError

_WHAT: Final = "the key that signs checkpoints"


class VaultNoteSigner:
    """The NoteSigner port over a key of a vault.

    Args:
        vault: where it is.
        key: the key's name, whose oldest enabled version signs, or ``name/version``.
    """

    def __init__(self, vault: Vault, key: str) -> None:
        self._vault = vault
        self._name, _, self._wanted = key.partition("/")
        self._version: KeyVersion | None = None

    async def sign(self, message: bytes) -> bytes:
        """Return the signature over SHA-256 of a message, r and s as 64 bytes."""
        version = await self._pinned()
        return await answering(
            lambda: self._vault.sign(self._name, version.version, message), "CHECKPOINTS_UNAVAILABLE", _WHAT
        )

    async def public_key(self) -> bytes:
        """Return the public key as DER SubjectPublicKeyInfo."""
        return (await self._pinned()).public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    async def _pinned(self) -> KeyVersion:
        if self._version is None:
            versions = await answering(lambda: self._vault.versions(self._name), "CHECKPOINTS_UNAVAILABLE", _WHAT)
            fitting = [version for version in versions if self._wanted in ("", version.version)]
            if not fitting:
                raise WorkspaceError(
                    Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", f"{_WHAT} has no such enabled version"
                )
            self._version = fitting[0]
        return self._version
