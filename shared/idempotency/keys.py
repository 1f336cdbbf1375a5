"""Idempotency keys: a repeated request with the same key gets the append id of the first request.

A key that was used for another request is rejected.
"""

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
    """First request with an idempotency key, which claims the key.

    Attributes:
        fingerprint: hash of the first request with the key.
        append_id: id with which its record is appended, so that it is appended only once.
    """

    fingerprint: str
    append_id: str


class IdempotencyStore(Protocol):
    """Store of idempotency keys and the requests that claim them."""

    async def claim(self, key: str, wanted: Claim, at: datetime, forget_before: datetime) -> Claim:
        """Store a request as the first one with a key, unless an unexpired claim exists; return the stored claim.

        Concurrent calls with one key all get the same claim.

        Args:
            key: hash from :func:`hash_key`.
            wanted: claim of the current request.
            at: current time.
            forget_before: claims from before this time have expired.
        """
        ...

    async def forget(self, key: str, append_id: str) -> None:
        """Delete the claim of a key if it has this append id."""
        ...


class IdempotencyKeys:
    """Map from the idempotency keys of callers to append ids."""

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
            WorkspaceError: INVALID with the field ``Idempotency-Key`` if the key is too long or has invalid characters;
                UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED`` if the key was used for another request.
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
        WorkspaceError: INVALID with the field ``Idempotency-Key`` if the key is too long or has invalid characters.
    """
    if not key.strip() or len(key) > MAX_KEY_LENGTH or not key.isprintable():
        raise invalid("Idempotency-Key", f"must have 1 to {MAX_KEY_LENGTH} printable characters")
    return hashlib.sha256(f"{caller}\n{operation}\n{key}".encode()).hexdigest()


def new_claim(request: bytes) -> Claim:
    """Build the claim of a request, with a new append id."""
    return Claim(hashlib.sha256(request).hexdigest(), uuid.uuid4().hex)


def reject_reuse(claim: Claim, wanted: Claim) -> None:
    """Reject a key that was used for another request.

    Raises:
        WorkspaceError: UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED`` if the fingerprints differ.
    """
    if claim.fingerprint != wanted.fingerprint:
        detail = "This Idempotency-Key was used for another request; use a new key."
        raise WorkspaceError(Kind.UNPROCESSABLE, "IDEMPOTENCY_KEY_REUSED", detail)
