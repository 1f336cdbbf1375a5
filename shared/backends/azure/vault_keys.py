"""Signing keys in Azure Key Vault: for access tokens, and for checkpoints of audit chains.

To rotate a key, create a new version of the key in the vault. The enabled versions are read every
:data:`FRESH_SECONDS`. While the vault cannot be reached, the versions that were read last remain in use, and a request
waits at most :data:`WAIT_SECONDS` for newer ones.
"""

import asyncio
import contextvars
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.auth.jose import compute_thumbprint, to_jwk
from shared.auth.ports import MAX_MINUTES
from shared.backends.azure.key_vault import KeyVersion, Vault, call_vault
from shared.backends.azure.shared_attempts import SharedAttempts
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

SETTLING: Final = timedelta(hours=1)
"""Time for which a key version is published before it signs, so that verifiers with cached keys know it."""

OUTLIVED: Final = timedelta(minutes=MAX_MINUTES) + timedelta(hours=1)
"""Time for which a key version is published after its successor begins to sign; then all its tokens have expired."""

FRESH_SECONDS: Final = 300.0
"""Age in seconds at which the enabled versions of a key are read again."""

RELOAD_SECONDS: Final = 10.0
"""Age in seconds at which the versions of a key are read again if a token names an unknown version."""

EMPTY_SECONDS: Final = 1.0
"""Age in seconds at which the versions of a key without an enabled version are read again."""

WAIT_SECONDS: Final = 1.0
"""Maximum wait in seconds for a new list of versions, while the versions that were read last can be used."""
_TOKEN_KEY: Final = "the key that signs tokens"  # noqa: S105  part of error messages
_NOTE_KEY: Final = "the key that signs checkpoints"
_LOG = logs.get_logger("key_vault")


class VaultSigningKey:
    """Implementation of SigningKey: signs access tokens with a key in Azure Key Vault.

    After a version is disabled in the vault, every instance stops using it at its next successful read of the versions,
    normally within :data:`FRESH_SECONDS`.

    Args:
        vault: vault that contains the key.
        name: name of the key in the vault; a key on the curve P-256.
        runtime: clock, randomness and threads.
    """

    def __init__(self, vault: Vault, name: str, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._vault = vault
        self._name = name
        self._versions = _EnabledVersions(vault, name, "SIGNING_KEY_UNAVAILABLE", _TOKEN_KEY, runtime)
        self._signs: KeyVersion | None = None
        self._runtime = runtime

    async def get_key_id(self) -> str:
        # The next signature must be made with the version of this id, even if the versions are read in between.
        self._signs = select_signing_version(await self._read_current_versions(), self._runtime.now())
        return compute_thumbprint(self._signs.public)

    async def sign(self, message: bytes) -> bytes:
        version = self._signs or select_signing_version(await self._read_current_versions(), self._runtime.now())
        return await call_vault(
            lambda: self._vault.sign(self._name, version.version, message), "SIGNING_KEY_UNAVAILABLE", _TOKEN_KEY
        )

    async def load_public_keys(self, *, reload: bool = False) -> Sequence[Mapping[str, Any]]:
        versions, at = await self._read_current_versions(reload=reload), self._runtime.now()
        signs = select_signing_version(versions, at)
        others = [version for version in select_versions_to_publish(versions, at) if version is not signs]
        return [to_jwk(version.public) for version in (signs, *others)]

    async def _read_current_versions(self, *, reload: bool = False) -> list[KeyVersion]:
        versions = await self._versions.get(reload=reload)
        if not versions:
            raise WorkspaceError(
                Kind.UNAVAILABLE,
                "SIGNING_KEY_UNAVAILABLE",
                f"In Key Vault, {_TOKEN_KEY} has no enabled version; enable or create one.",
            )
        return versions


def select_signing_version(versions: Sequence[KeyVersion], at: datetime) -> KeyVersion:
    """Return the key version that signs: the newest that may sign and has been valid for at least :data:`SETTLING`.

    If no version has been valid for so long, return the oldest version that may sign. If no version may sign, select
    from all versions by the same rule; Key Vault then refuses the signature.
    """
    valid = [version for version in versions if version.can_sign_at(at)] or versions
    settled = [version for version in valid if _compute_first_signature_time(version) <= at]
    return settled[-1] if settled else valid[0]


def select_versions_to_publish(versions: Sequence[KeyVersion], at: datetime) -> list[KeyVersion]:
    """Return the key versions to publish, oldest first: all except those whose tokens have all expired."""
    return [
        version
        for index, version in enumerate(versions)
        if not any(_has_replaced_earlier_versions(successor, at) for successor in versions[index + 1 :])
    ]


def _has_replaced_earlier_versions(version: KeyVersion, at: datetime) -> bool:
    """Return whether a version has signed for so long that all tokens of earlier versions have expired."""
    # After a version has expired, an earlier version signs again, and must be published before it signs.
    return version.can_sign_at(at + SETTLING) and _compute_first_signature_time(version) + OUTLIVED <= at


def _compute_first_signature_time(version: KeyVersion) -> datetime:
    return max(version.created_at, version.not_before or version.created_at) + SETTLING


class VaultNoteSigner:
    """Implementation of NoteSigner: signs checkpoints of audit chains with a key in Azure Key Vault.

    Signatures of all enabled versions of the key are trusted.

    Args:
        vault: vault that contains the key.
        key: ``name/version`` of the key that signs. If only the name is given, the oldest enabled version signs.
        runtime: clock, randomness and threads.
    """

    def __init__(self, vault: Vault, key: str, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._vault = vault
        self._name, _, self._wanted = key.partition("/")
        self._versions = _EnabledVersions(vault, self._name, "CHECKPOINTS_UNAVAILABLE", _NOTE_KEY, runtime)

    async def sign(self, message: bytes) -> bytes:
        version = await self._select_signing_version()
        return await call_vault(
            lambda: self._vault.sign(self._name, version.version, message), "CHECKPOINTS_UNAVAILABLE", _NOTE_KEY
        )

    async def load_public_key_der(self) -> bytes:
        return _to_der_public_key(await self._select_signing_version())

    async def load_trusted_keys_der(self, *, reload: bool = False) -> Sequence[bytes]:
        versions = await self._read_current_versions(reload=reload)
        signs = self._find_signing_version(versions)
        return [_to_der_public_key(version) for version in sorted(versions, key=lambda version: version is not signs)]

    async def _select_signing_version(self) -> KeyVersion:
        signs = self._find_signing_version(await self._read_current_versions())
        if signs is None:
            raise _build_no_enabled_version_error()
        return signs

    def _find_signing_version(self, versions: Sequence[KeyVersion]) -> KeyVersion | None:
        return next((version for version in versions if self._wanted in ("", version.version)), None)

    async def _read_current_versions(self, *, reload: bool = False) -> list[KeyVersion]:
        versions = await (self._versions.reload() if reload else self._versions.get())
        if not versions:
            raise _build_no_enabled_version_error()
        return versions


class _EnabledVersions:
    """Enabled versions of a key in Key Vault, which are cached for :data:`FRESH_SECONDS`.

    Args:
        vault: vault that contains the key.
        name: name of the key in the vault.
        error_code: code of the error if the versions cannot be read.
        key_description: description of the key for the error's message.
        runtime: clock, randomness and threads.
    """

    def __init__(self, vault: Vault, name: str, error_code: str, key_description: str, runtime: Runtime) -> None:
        self._vault = vault
        self._name = name
        self._error_code = error_code
        self._key_description = key_description
        self._runtime = runtime
        self._versions: list[KeyVersion] = []
        self._read_at = self._due_at = self._reload_due_at = float("-inf")
        self._reading = SharedAttempts()
        self._refresh: asyncio.Task[None] | None = None

    async def get(self, *, reload: bool = False) -> list[KeyVersion]:
        """Return the enabled versions, oldest first; return the known ones if the vault does not answer in time.

        Args:
            reload: True to read the versions again if they were read more than :data:`RELOAD_SECONDS` ago; otherwise,
                they are read again after :data:`FRESH_SECONDS`.

        Raises:
            WorkspaceError: UNAVAILABLE if the vault does not answer and no version is known.
        """
        requested_at = self._runtime.monotonic()
        is_due = requested_at > self._due_at or (reload and requested_at > self._reload_due_at)
        if not is_due:
            return self._versions
        if not self._versions:
            return await self.reload()
        # Other requests use the known versions meanwhile. The read continues after this request, in its own context,
        # because a vault that does not answer ends it only after all timeouts of the client.
        self._due_at, self._reload_due_at = requested_at + FRESH_SECONDS, requested_at + RELOAD_SECONDS
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.create_task(self._reload_or_keep_versions(), context=contextvars.Context())
        await asyncio.wait({self._refresh}, timeout=WAIT_SECONDS)
        return self._versions

    async def reload(self) -> list[KeyVersion]:
        """Return the versions that are enabled now, oldest first; concurrent calls share one request to the vault.

        Raises:
            WorkspaceError: UNAVAILABLE if the vault does not answer.
        """
        requested_at = self._runtime.monotonic()
        async with self._reading.hold_lock_or_raise_shared_failure():
            if self._read_at < requested_at:
                self._versions = await call_vault(
                    lambda: self._vault.list_enabled_versions(self._name), self._error_code, self._key_description
                )
                self._read_at = self._runtime.monotonic()
                self._due_at = requested_at + (FRESH_SECONDS if self._versions else EMPTY_SECONDS)
                self._reload_due_at = requested_at + RELOAD_SECONDS
        return self._versions

    async def _reload_or_keep_versions(self) -> None:
        try:
            await self.reload()
        except WorkspaceError:
            _LOG.warning("cannot refresh the versions of a key", extra=logs.fields(key=self._name))


def _to_der_public_key(version: KeyVersion) -> bytes:
    return version.public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _build_no_enabled_version_error() -> WorkspaceError:
    detail = f"The configured version of {_NOTE_KEY} is missing or disabled in Key Vault; enable or replace it."
    return WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail)
