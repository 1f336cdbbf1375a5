"""The key that signs tokens, in Key Vault; its versions take turns without a token being refused."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.auth.jose import compute_thumbprint, to_jwk
from shared.auth.ports import MAX_MINUTES
from shared.backends.azure.key_vault import KeyVersion, Vault, answering
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.timestamps import now

SETTLING: Final = timedelta(hours=1)
"""How long a new version is only published: whoever keeps a copy of the public keys has it before it signs."""

OUTLIVED: Final = timedelta(minutes=MAX_MINUTES) + timedelta(hours=1)
"""How long a version is published after the next one began to sign: its last token has ended by then."""

FRESH_SECONDS: Final = 300.0
_WHAT: Final = "the key that signs tokens"
_LOG = logs.logger("key_vault")


class VaultSigningKey:
    """The SigningKey port over a key of a vault.

    A version that is disabled in the vault neither signs nor verifies, within :data:`FRESH_SECONDS` everywhere.

    Args:
        vault: where it is.
        name: of the key, on the curve P-256.
        clock: gives the current instant.
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
        """Return the thumbprint of the version that signs now; :meth:`sign` goes on with the same one."""
        self._signs = signer(await self._current(), self._clock())
        return compute_thumbprint(self._signs.public)

    async def sign(self, message: bytes) -> bytes:
        """Return the ES256 signature, 64 bytes."""
        version = self._signs or signer(await self._current(), self._clock())
        return await answering(
            lambda: self._vault.sign(self._name, version.version, message), "SIGNING_KEY_UNAVAILABLE", _WHAT
        )

    async def public_keys(self) -> Sequence[Mapping[str, Any]]:
        """Return the public keys of all versions that sign, will sign, or may have signed what still lives."""
        versions, at = await self._current(), self._clock()
        signs = signer(versions, at)
        others = [version for version in published(versions, at) if version is not signs]
        return [to_jwk(version.public) for version in (signs, *others)]

    async def _current(self) -> list[KeyVersion]:
        """Return the enabled versions, read anew when it is time; those known while the vault does not answer."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            async with self._reading:
                if time.monotonic() - self._read_at > FRESH_SECONDS:
                    await self._read()
        return self._versions

    async def _read(self) -> None:
        try:
            versions = await answering(lambda: self._vault.versions(self._name), "SIGNING_KEY_UNAVAILABLE", _WHAT)
        except WorkspaceError:
            if not self._versions:
                raise
            _LOG.warning("the versions of the signing key are not read anew")
        else:
            if not versions:
                raise WorkspaceError(Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE", f"{_WHAT} has no enabled version")
            self._versions = versions
        self._read_at = time.monotonic()


def signer(versions: Sequence[KeyVersion], at: datetime) -> KeyVersion:
    """Return the version that signs: the newest that has settled, else the oldest."""
    settled = [version for version in versions if version.created_at + SETTLING <= at]
    return settled[-1] if settled else versions[0]


def published(versions: Sequence[KeyVersion], at: datetime) -> list[KeyVersion]:
    """Return the versions, oldest first, without those whose successor has signed for longer than a token lives."""
    successors = [*versions[1:], None]
    return [
        version
        for version, successor in zip(versions, successors, strict=True)
        if successor is None or successor.created_at + SETTLING + OUTLIVED > at
    ]
