"""Stored replies to requests with an idempotency key, for requests that do more than append one audit record.

Each caller and each HTTP method has separate keys. These keys are also separate from the keys of requests that append
one record (``shared.idempotency.keys``).

A reply can contain a secret that the service shows only once. The reply is stored encrypted for 24 hours; the
encryption key is derived from the caller's idempotency key.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shared.errors import Kind, WorkspaceError
from shared.idempotency.keys import RETENTION, Claim, build_claim, hash_key, reject_reused_key
from shared.runtime import SYSTEM_RUNTIME, Runtime

LEASE: Final = timedelta(seconds=5)
"""Duration of a lease. If a process dies, its lease expires after this time, and a repeated request does the work."""

WAIT_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_SALT_BYTES, _NONCE_BYTES = 16, 12
MAYBE_DONE: Final = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.INTERNAL})
"""Kinds of errors after which part of the work is possibly done; after other errors, no work was done."""


type Work = Callable[[str], Awaitable[bytes]]
"""Function that does the work of a request: its argument identifies the request, and its result is the reply."""


@dataclass(frozen=True, slots=True)
class BeginResult:
    """State of an idempotency key when a request with the key begins.

    Attributes:
        claim: claim of the key by the first request with the key.
        reply: the stored reply; None until the work is done.
        owns_lease: True if this request has the lease and must do the work.
    """

    claim: Claim
    reply: bytes | None
    owns_lease: bool


class IdempotentReplyStore(Protocol):
    """Store of the leases and replies of requests with an idempotency key.

    ``key_hash`` is the hash of the key (:func:`shared.idempotency.keys.hash_key`); ``lease_id`` is the id of a lease.

    Methods raise ``WorkspaceError`` UNAVAILABLE, code ``IDEMPOTENCY_UNAVAILABLE``, if the store does not respond.
    """

    async def claim_and_lease_key(
        self,
        key_hash: str,
        new_claim: Claim,
        lease_id: str,
        at: datetime,
        lease_until: datetime,
        forget_before: datetime,
    ) -> BeginResult:
        """Claim an idempotency key for a request, and try to lease the key.

        If the key has an unexpired claim, this claim stays. Of several concurrent calls, one gets the lease. After the
        lease has expired, the next call gets it. No call gets a lease if a reply is stored, or if the claim belongs to
        a different request.

        Args:
            key_hash: hash of the key.
            new_claim: claim of the current request.
            lease_id: id of the lease, if the current request gets it.
            at: current time.
            lease_until: end of the lease.
            forget_before: claims that were stored before this time have expired.
        """
        ...

    async def renew_lease(self, key_hash: str, lease_id: str, lease_until: datetime) -> None:
        """Extend the lease of an idempotency key; do nothing if the caller no longer holds the lease."""
        ...

    async def try_save_reply(self, key_hash: str, lease_id: str, encrypted_reply: bytes) -> bool:
        """Store the encrypted reply of a request; return False if another process has taken the lease meanwhile."""
        ...

    async def release_lease(self, key_hash: str, lease_id: str, *, deletes_claim: bool) -> None:
        """End the caller's lease of an idempotency key; do nothing if the lease has passed to another caller.

        With ``deletes_claim``, also delete the claim.
        """
        ...


class IdempotentReplies:
    """Executes the work of a request with an idempotency key once; repeated requests get the stored reply.

    Args:
        store: store of the leases and replies.
        runtime: clock, randomness and threads.
    """

    def __init__(self, store: IdempotentReplyStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._runtime = runtime

    async def run_once_and_get_reply(
        self, caller_id: str, http_method: str, idempotency_key: str, request_bytes: bytes, handle_request: Work
    ) -> bytes:
        """Call ``handle_request`` for the first request with an idempotency key.

        Return the stored reply for each repeated request.

        Args:
            caller_id: id of the caller; each caller has separate keys.
            http_method: HTTP method of the request; each method has separate keys.
            idempotency_key: the caller's key; not empty.
            request_bytes: bytes of all parts of the request that must be equal in a repeated request.
            handle_request: does the work and returns the reply. Its argument is an id that stays the same if the work
                is repeated after a crash; the work must be idempotent for an id.

        Raises:
            WorkspaceError: INVALID with the field ``Idempotency-Key`` if the key is too long or has invalid characters;
                UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED`` if the key was used for another request; CONFLICT
                ``IDEMPOTENCY_KEY_IN_USE`` if the first request takes too long; any error of the work. If the first
                request is rejected before a repeat runs, the caller may use the key for another request.
        """
        name, wanted = (
            hash_key(caller_id, http_method, idempotency_key),
            build_claim(request_bytes, self._runtime.new_id()),
        )
        secret = f"{caller_id}\n{idempotency_key}"
        deadline = self._runtime.monotonic() + WAIT_SECONDS
        reply: bytes | None = None
        while self._runtime.monotonic() < deadline:
            lease, at = self._runtime.new_id(), self._runtime.now()
            begun = await self._store.claim_and_lease_key(name, wanted, lease, at, at + LEASE, at - RETENTION)
            reject_reused_key(begun.claim, wanted)
            if begun.reply is not None:
                return await self._runtime.run_in_thread(_decrypt_reply, begun.reply, secret, name)
            if begun.owns_lease:
                if reply is None:
                    is_first = begun.claim.append_id == wanted.append_id
                    reply = await self._handle_request_under_lease(
                        name, lease, begun.claim.append_id, handle_request, is_first=is_first
                    )
                if await self._store.try_save_reply(
                    name, lease, await self._runtime.run_in_thread(self._encrypt_reply, reply, secret, name)
                ):
                    return reply
                # A repeat has taken the lease. Its reply is returned, or this one is stored if the repeat fails.
            await self._runtime.sleep(_POLL_SECONDS)
        if reply is not None:
            return reply
        detail = "The first request with this Idempotency-Key is still in progress; retry later."
        raise WorkspaceError(Kind.CONFLICT, "IDEMPOTENCY_KEY_IN_USE", detail)

    async def derive_secret_seed(self, caller_id: str, idempotency_key: str, append_id: str) -> bytes:
        """Derive 32 secret bytes, the same in every attempt of a request.

        Only a caller who has the idempotency key can compute these bytes.

        Args:
            caller_id: id of the caller.
            idempotency_key: the caller's idempotency key.
            append_id: argument of the work in :meth:`run_once_and_get_reply`.
        """
        return await self._runtime.run_in_thread(
            _derive_secret_bytes, f"{caller_id}\n{idempotency_key}", append_id.encode()
        )

    async def _handle_request_under_lease(
        self, key_hash: str, lease_id: str, append_id: str, handle_request: Work, *, is_first: bool
    ) -> bytes:
        try:
            async with self._renew_lease_until_done(key_hash, lease_id):
                return await handle_request(append_id)
        except BaseException as error:
            # An earlier attempt with the key has possibly done the work.
            nothing_done = is_first and isinstance(error, WorkspaceError) and error.kind not in MAYBE_DONE
            with contextlib.suppress(WorkspaceError):
                await self._store.release_lease(key_hash, lease_id, deletes_claim=nothing_done)
            raise

    @asynccontextmanager
    async def _renew_lease_until_done(self, key_hash: str, lease_id: str) -> AsyncIterator[None]:
        async def renew_repeatedly() -> None:
            while True:
                await self._runtime.sleep(LEASE.total_seconds() / 4)
                with contextlib.suppress(WorkspaceError):
                    await self._store.renew_lease(key_hash, lease_id, self._runtime.now() + LEASE)

        task = asyncio.create_task(renew_repeatedly())
        try:
            yield
        finally:
            task.cancel()

    def _encrypt_reply(self, reply: bytes, secret: str, key_hash: str) -> bytes:
        salt, nonce = self._runtime.random_bytes(_SALT_BYTES), self._runtime.random_bytes(_NONCE_BYTES)
        return salt + nonce + AESGCM(_derive_secret_bytes(secret, salt)).encrypt(nonce, reply, key_hash.encode())


def _decrypt_reply(encrypted: bytes, secret: str, key_hash: str) -> bytes:
    salt, nonce = encrypted[:_SALT_BYTES], encrypted[_SALT_BYTES:][:_NONCE_BYTES]
    text = encrypted[_SALT_BYTES + _NONCE_BYTES :]
    try:
        return AESGCM(_derive_secret_bytes(secret, salt)).decrypt(nonce, text, key_hash.encode())
    except InvalidTag as error:
        detail = "The reply that is stored for this Idempotency-Key cannot be decrypted."
        raise WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", detail) from error


def _derive_secret_bytes(secret: str, salt: bytes) -> bytes:
    # A caller's key can be easy to guess, so each guess must cost memory and time (RFC 7914).
    return hashlib.scrypt(secret.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)
