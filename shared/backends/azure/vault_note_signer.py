"""The key that signs checkpoints, in Key Vault: a version of it for long, while all enabled ones verify."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.backends.azure.key_vault import KeyVersion, Vault, answering
from shared.errors import Kind, WorkspaceError
from shared.observability import logs

FRESH_SECONDS: Final = 300.0
_CODE: Final = "CHECKPOINTS_UNAVAILABLE"
_WHAT: Final = "the key that signs checkpoints"
_LOG = logs.logger("key_vault")


class VaultNoteSigner:
    """The NoteSigner port over a key of a vault.

    What any of its versions signed is trusted, until that version is disabled in the vault.

    Args:
        vault: where it is.
        key: the key's name, whose oldest enabled version signs, or ``name/version``.
    """

    def __init__(self, vault: Vault, key: str) -> None:
        self._vault = vault
        self._name, _, self._wanted = key.partition("/")
        self._versions: list[KeyVersion] = []
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def sign(self, message: bytes) -> bytes:
        """Return the signature over SHA-256 of a message, r and s as 64 bytes."""
        version = await self._signs()
        return await answering(lambda: self._vault.sign(self._name, version.version, message), _CODE, _WHAT)

    async def public_key(self) -> bytes:
        """Return the public key as DER SubjectPublicKeyInfo."""
        return _spki(await self._signs())

    async def trusted_keys(self, *, reload: bool = False) -> Sequence[bytes]:
        """Return the public keys of all enabled versions."""
        return [_spki(version) for version in await self._current(reload=reload)]

    async def _signs(self) -> KeyVersion:
        for version in await self._current():
            if self._wanted in ("", version.version):
                return version
        raise _none_enabled()

    async def _current(self, *, reload: bool = False) -> list[KeyVersion]:
        """Return the enabled versions, oldest first; those known before while the vault does not answer."""
        asked = time.monotonic()
        async with self._reading:
            if asked - self._read_at > FRESH_SECONDS or (reload and self._read_at < asked):
                await self._read(reload=reload)
        if not self._versions:
            raise _none_enabled()
        return self._versions

    async def _read(self, *, reload: bool) -> None:
        try:
            versions = await answering(lambda: self._vault.versions(self._name), _CODE, _WHAT)
        except WorkspaceError:
            if reload or not self._versions:
                raise
            _LOG.warning("the versions of the checkpoint key are not read reload")
        else:
            self._versions = versions
        self._read_at = time.monotonic()


def _spki(version: KeyVersion) -> bytes:
    return version.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _none_enabled() -> WorkspaceError:
    return WorkspaceError(Kind.UNAVAILABLE, _CODE, f"{_WHAT} has no such enabled version")
