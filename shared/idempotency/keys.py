"""Idempotency keys: a repeated request gets the first one's answer, a different one under the same key is refused."""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.errors import Kind, WorkspaceError, invalid
from shared.timestamps import now

REMEMBERED = timedelta(hours=24)
MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Claim:
    """What a key stands for.

    Attributes:
        fingerprint: of the request that came first.
        append_id: under which its record is appended, once.
    """

    fingerprint: str
    append_id: str


class IdempotencyStore(Protocol):
    """Remembers keys."""

    async def claim(self, key: str, wanted: Claim, at: datetime, forget_before: datetime) -> Claim:
        """Return what a key stands for: the claim made since a time, else the wanted one, now stored.

        Of several calls at once one claim wins and all get it.
        """
        ...

    async def forget(self, key: str, append_id: str) -> None:
        """Make a key free again, if it still stands for this append id."""
        ...


class IdempotencyKeys:
    """Turns a caller's key into an append id."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store

    async def append_id(self, caller: str, operation: str, key: str, request: bytes) -> str:
        """Return the append id of a request; the same for each repeat within 24 hours.

        Args:
            caller: whose key it is.
            operation: what is asked for.
            key: as the caller gives it, not empty.
            request: everything that makes the request what it is.

        Raises:
            WorkspaceError: INVALID naming ``Idempotency-Key``; UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED``.
        """
        name, wanted, at = hash_key(caller, operation, key), new_claim(request), now()
        claim = await self._store.claim(name, wanted, at, at - REMEMBERED)
        reject_reuse(claim, wanted)
        return claim.append_id

    async def forget(self, caller: str, operation: str, key: str, append_id: str) -> None:
        """Make a key free again: what was asked for with it was refused, and nothing is appended under its id."""
        await self._store.forget(hash_key(caller, operation, key), append_id)


def hash_key(caller: str, operation: str, key: str) -> str:
    """Return the name that a caller's key is remembered by; it tells nobody the key.

    Raises:
        WorkspaceError: INVALID naming ``Idempotency-Key``.
    """
    if not key.strip() or len(key) > MAX_KEY_LENGTH or not key.isprintable():
        raise invalid("Idempotency-Key", f"1 to {MAX_KEY_LENGTH} printable characters are expected")
    return hashlib.sha256(f"{caller}\n{operation}\n{key}".encode()).hexdigest()


def new_claim(request: bytes) -> Claim:
    """Return what a key is to stand for: a request, by everything that makes it what it is."""
    return Claim(hashlib.sha256(request).hexdigest(), uuid.uuid4().hex)


def reject_reuse(claim: Claim, wanted: Claim) -> None:
    """Return when a key stands for the request that comes with it.

    Raises:
        WorkspaceError: UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED``.
    """
    if claim.fingerprint != wanted.fingerprint:
        detail = "This Idempotency-Key was used for another request."
        raise WorkspaceError(Kind.UNPROCESSABLE, "IDEMPOTENCY_KEY_REUSED", detail)
