"""Signing keys in Key Vault: for access tokens and for checkpoints.

To rotate a key, create a new version of it in the vault. The enabled versions are read every :data:`FRESH_SECONDS`.
While the vault cannot be reached, the versions that were read last remain in use.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.auth.jose import compute_thumbprint, to_jwk
from shared.auth.ports import MAX_MINUTES
from shared.backends.azure.key_vault import KeyVersion, Vault, call_vault
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.timestamps import now

SETTLING: Final = timedelta(hours=1)
"""Time for which a new version is published before it signs, so that verifiers with cached public keys know it."""

OUTLIVED: Final = timedelta(minutes=MAX_MINUTES) + timedelta(hours=1)
"""Time for which a version is published after its successor began to sign; then its last token has expired."""

FRESH_SECONDS: Final = 300.0
_TOKEN_KEY: Final = "the key that signs tokens"  # noqa: S105  part of error messages
_NOTE_KEY: Final = "the key that signs checkpoints"
_LOG = logs.get_logger("key_vault")


class VaultSigningKey:
    """The SigningKey port over a key of a vault.

    After a version is disabled in the vault, every instance stops using it within
    :data:`FRESH_SECONDS`.

    Args:
        vault: the vault that holds the key.
        name: name of the key, on the curve P-256.
        clock: returns the current time.
    """

    def __init__(self, vault: Vault, name: str, *, clock: Callable[[], datetime] = now) -> None:
        self._vault = vault
        self._name = name
        self._clock = clock
        self._versions: list[KeyVersion] = []
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._signs: KeyVersion | None = None

    async def key_id(self) -> str:
        # The next signature must be made with the version of this id, even if the versions are read in between.
        self._signs = signing_version(await self._read_current_versions(), self._clock())
        return compute_thumbprint(self._signs.public)

    async def sign(self, message: bytes) -> bytes:
        version = self._signs or signing_version(await self._read_current_versions(), self._clock())
        return await call_vault(
            lambda: self._vault.sign(self._name, version.version, message), "SIGNING_KEY_UNAVAILABLE", _TOKEN_KEY
        )

    async def public_keys(self) -> Sequence[Mapping[str, Any]]:
        versions, at = await self._read_current_versions(), self._clock()
        signs = signing_version(versions, at)
        others = [version for version in published_versions(versions, at) if version is not signs]
        return [to_jwk(version.public) for version in (signs, *others)]

    async def _read_current_versions(self) -> list[KeyVersion]:
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            async with self._reading:
                if time.monotonic() - self._read_at > FRESH_SECONDS:
                    await self._read()
        return self._versions

    async def _read(self) -> None:
        try:
            versions = await call_vault(lambda: self._vault.versions(self._name), "SIGNING_KEY_UNAVAILABLE", _TOKEN_KEY)
        except WorkspaceError:
            if not self._versions:
                raise
            _LOG.warning("cannot refresh the versions of the signing key")
        else:
            if not versions:
                raise WorkspaceError(
                    Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE", f"{_TOKEN_KEY} has no enabled version"
                )
            self._versions = versions
        self._read_at = time.monotonic()


def signing_version(versions: Sequence[KeyVersion], at: datetime) -> KeyVersion:
    """Return the version that signs: the newest that is published long enough for all verifiers to know it.

    If none is, the oldest version signs.
    """
    settled = [version for version in versions if version.created_at + SETTLING <= at]
    return settled[-1] if settled else versions[0]


def published_versions(versions: Sequence[KeyVersion], at: datetime) -> list[KeyVersion]:
    """Return the versions whose tokens may still be valid, oldest first."""
    successors = [*versions[1:], None]
    return [
        version
        for version, successor in zip(versions, successors, strict=True)
        if successor is None or successor.created_at + SETTLING + OUTLIVED > at
    ]


class VaultNoteSigner:
    """The NoteSigner port over a key of a vault.

    Signatures of all enabled versions are trusted.

    Args:
        vault: the vault that holds the key.
        key: ``name/version`` of the key that signs; or its name only, then the oldest enabled version signs.
    """

    def __init__(self, vault: Vault, key: str) -> None:
        self._vault = vault
        self._name, _, self._wanted = key.partition("/")
        self._versions: list[KeyVersion] = []
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def sign(self, message: bytes) -> bytes:
        version = await self._signing_version()
        return await call_vault(
            lambda: self._vault.sign(self._name, version.version, message), "CHECKPOINTS_UNAVAILABLE", _NOTE_KEY
        )

    async def public_key(self) -> bytes:
        return _to_spki(await self._signing_version())

    async def trusted_keys(self, *, reload: bool = False) -> Sequence[bytes]:
        return [_to_spki(version) for version in await self._read_current_versions(reload=reload)]

    async def _signing_version(self) -> KeyVersion:
        for version in await self._read_current_versions():
            if self._wanted in ("", version.version):
                return version
        raise _no_enabled_version_error()

    async def _read_current_versions(self, *, reload: bool = False) -> list[KeyVersion]:
        requested_at = time.monotonic()
        async with self._reading:
            if requested_at - self._read_at > FRESH_SECONDS or (reload and self._read_at < requested_at):
                await self._read(reload=reload)
        if not self._versions:
            raise _no_enabled_version_error()
        return self._versions

    async def _read(self, *, reload: bool) -> None:
        try:
            versions = await call_vault(lambda: self._vault.versions(self._name), "CHECKPOINTS_UNAVAILABLE", _NOTE_KEY)
        except WorkspaceError:
            if reload or not self._versions:
                raise
            _LOG.warning("cannot refresh the versions of the checkpoint key")
        else:
            self._versions = versions
        self._read_at = time.monotonic()


def _to_spki(version: KeyVersion) -> bytes:
    return version.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _no_enabled_version_error() -> WorkspaceError:
    detail = f"The configured version of {_NOTE_KEY} is missing or disabled in Key Vault; enable or replace it."
    return WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail)
