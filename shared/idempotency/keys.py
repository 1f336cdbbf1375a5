"""Idempotency keys, which give a repeated request the id of its first append; reuse for another request is rejected."""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.errors import Kind, WorkspaceError, invalid
from shared.timestamps import now

RETENTION = timedelta(hours=24)
MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Claim:
    """The request that a key belongs to.

    Attributes:
        fingerprint: hash of the first request with the key.
        append_id: id with which its record is appended, so that it is appended only once.
    """

    fingerprint: str
    append_id: str


class IdempotencyStore(Protocol):
    """Store of claimed keys."""

    async def claim(self, key: str, wanted: Claim, at: datetime, forget_before: datetime) -> Claim:
        """Store a claim for a key, unless it has one that is not expired; return the stored claim.

        Concurrent calls all receive the same claim.
        """
        ...

    async def forget(self, key: str, append_id: str) -> None:
        """Delete the claim of a key if it has this append id."""
        ...


class IdempotencyKeys:
    """Maps the keys of callers to append ids."""

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store

    async def append_id(self, caller: str, operation: str, key: str, request: bytes) -> str:
        """Return the append id of a request; it is the same for each repetition within 24 hours.

        Args:
            caller: id of the caller; each caller has separate keys.
            operation: name of the operation; each operation has separate keys.
            key: the caller's key; not empty.
            request: all parts of the request that must be equal in a repetition.

        Raises:
            WorkspaceError: INVALID naming ``Idempotency-Key``; UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED``.
        """
        name, wanted, at = hash_key(caller, operation, key), new_claim(request), now()
        claim = await self._store.claim(name, wanted, at, at - RETENTION)
        reject_reuse(claim, wanted)
        return claim.append_id

    async def forget(self, caller: str, operation: str, key: str, append_id: str) -> None:
        """Release the key of a rejected request, for which nothing was appended."""
        await self._store.forget(hash_key(caller, operation, key), append_id)


def hash_key(caller: str, operation: str, key: str) -> str:
    """Return a hash of a caller's key, which is stored instead of the key.

    Raises:
        WorkspaceError: INVALID naming ``Idempotency-Key``.
    """
    if not key.strip() or len(key) > MAX_KEY_LENGTH or not key.isprintable():
        raise invalid("Idempotency-Key", f"must have 1 to {MAX_KEY_LENGTH} printable characters")
    return hashlib.sha256(f"{caller}\n{operation}\n{key}".encode()).hexdigest()


def new_claim(request: bytes) -> Claim:
    """Return a new claim for a request."""
    return Claim(hashlib.sha256(request).hexdigest(), uuid.uuid4().hex)


def reject_reuse(claim: Claim, wanted: Claim) -> None:
    """Reject a key that was used for another request.

    Raises:
        WorkspaceError: UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED`` if the fingerprints differ.
    """
    if claim.fingerprint != wanted.fingerprint:
        detail = "This Idempotency-Key was used for another request; use a new key."
        raise WorkspaceError(Kind.UNPROCESSABLE, "IDEMPOTENCY_KEY_REUSED", detail)
