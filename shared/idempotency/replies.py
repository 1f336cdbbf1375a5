"""Stored replies to requests with an idempotency key whose work is more than one append to a chain.

An answer may hold a secret that is shown once. It is kept encrypted, under a key that only the caller's own
idempotency key gives, and forgotten after 24 hours.
"""

import asyncio
import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shared.errors import Kind, WorkspaceError
from shared.idempotency.keys import REMEMBERED, Claim, hash_key, new_claim, reject_reuse
from shared.timestamps import now

LEASE: Final = timedelta(seconds=5)
"""How long a process that says nothing more is taken to be at work; after that a repeat does the work."""

PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_SALT_BYTES, _NONCE_BYTES = 16, 12
MAYBE_DONE: Final = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.INTERNAL})
"""After these failures part of the work may be done; after all others nothing is."""


type Work = Callable[[str], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class BeginResult:
    """What a store says when a request begins.

    Attributes:
        claim: what the key stands for.
        answer: kept when the request ended; None before.
        mine: this request is the one to do the work.
    """

    claim: Claim
    reply: bytes | None
    owns_lease: bool


class IdempotentReplyStore(Protocol):
    """Remembers who does the work of a request, and its answer.

    Methods raise ``WorkspaceError`` UNAVAILABLE, code ``IDEMPOTENCY_UNAVAILABLE``, when the store does not answer.
    """

    async def begin(
        self, name: str, wanted: Claim, lease: str, at: datetime, until: datetime, forget_before: datetime
    ) -> BeginResult:
        """Claim a name made since a time, or find it claimed; of several at once one gets the lease.

        A lease that ran out is given to the next who asks; a name with an answer has no lease to give.
        """
        ...

    async def renew(self, name: str, lease: str, until: datetime) -> None:
        """Make a lease last longer, if it is still held."""
        ...

    async def finish(self, name: str, lease: str, answer: bytes) -> bool:
        """Keep the answer; False when the lease went to somebody else, and nothing is kept."""
        ...

    async def release(self, name: str, lease: str, *, forget: bool) -> None:
        """Give the lease up, if it is still held: the next may do the work; with ``forget`` the name is free again."""
        ...


class IdempotentReplies:
    """Does the work of a request once, and gives its answer again.

    Args:
        store: remembers.
    """

    def __init__(self, store: IdempotentReplyStore) -> None:
        self._store = store

    async def run_once(self, caller: str, operation: str, key: str, request: bytes, work: Work) -> bytes:
        """Return the answer of a request, from the work or as it was kept.

        Args:
            caller: whose key it is.
            operation: what is asked for.
            key: as the caller gives it, not empty.
            request: everything that makes the request what it is.
            work: makes the answer. It receives an id that stays the same when the work must be done again because
                a process ended in the middle of it, and does nothing twice under the same id.

        Raises:
            WorkspaceError: INVALID naming ``Idempotency-Key``; UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED``; CONFLICT
                ``IDEMPOTENCY_KEY_IN_USE`` when the first request takes too long; and what the work raises: a refusal
                leaves the key free.
        """
        name, wanted = hash_key(caller, operation, key), new_claim(request)
        secret = f"{caller}\n{key}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            lease, at = uuid.uuid4().hex, now()
            begun = await self._store.begin(name, wanted, lease, at, at + LEASE, at - REMEMBERED)
            reject_reuse(begun.claim, wanted)
            if begun.reply is not None:
                return await asyncio.to_thread(_opened, begun.reply, secret, name)
            if begun.owns_lease:
                answer = await self._worked(name, lease, begun.claim.append_id, work)
                if await self._store.finish(name, lease, await asyncio.to_thread(_sealed, answer, secret, name)):
                    return answer
                # Somebody took over; what they answer counts.
            await asyncio.sleep(_POLL_SECONDS)
        detail = "The first request with this Idempotency-Key is still under way; ask again."
        raise WorkspaceError(Kind.CONFLICT, "IDEMPOTENCY_KEY_IN_USE", detail)

    async def _worked(self, name: str, lease: str, append_id: str, work: Work) -> bytes:
        try:
            async with self._renewing(name, lease):
                return await work(append_id)
        except BaseException as error:
            refused = isinstance(error, WorkspaceError) and error.kind not in MAYBE_DONE
            with contextlib.suppress(WorkspaceError):
                await self._store.release(name, lease, forget=refused)
            raise

    @asynccontextmanager
    async def _renewing(self, name: str, lease: str) -> AsyncIterator[None]:
        async def renew() -> None:
            while True:
                await asyncio.sleep(LEASE.total_seconds() / 4)
                with contextlib.suppress(WorkspaceError):
                    await self._store.renew(name, lease, now() + LEASE)

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            task.cancel()


def _sealed(answer: bytes, secret: str, name: str) -> bytes:
    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    return salt + nonce + AESGCM(_key(secret, salt)).encrypt(nonce, answer, name.encode())


def _opened(sealed: bytes, secret: str, name: str) -> bytes:
    salt, nonce, text = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:][:_NONCE_BYTES], sealed[_SALT_BYTES + _NONCE_BYTES :]
    try:
        return AESGCM(_key(secret, salt)).decrypt(nonce, text, name.encode())
    except InvalidTag as error:
        raise WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", "The kept answer cannot be read.") from error


def _key(secret: str, salt: bytes) -> bytes:
    # A caller's key may be easy to guess: each guess is to cost memory and time (RFC 7914).
    return hashlib.scrypt(secret.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)
