"""Idempotency keys for requests that append an audit record: a repeated request appends nothing.

Requests with the same key get the same append id, which identifies the record. A different request with the same key is
rejected.

Keys are separate for each caller and each HTTP method. A key that a caller has used for one route is therefore rejected
for another route with the same method, and accepted for a request with another method. Requests whose replies are
stored (``shared.idempotency.replies``) have separate keys, too.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.runtime import SYSTEM_RUNTIME, Runtime

RETENTION = timedelta(hours=24)
MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim of an idempotency key by the first request with the key.

    Attributes:
        fingerprint: hash of the first request with the key.
        append_id: id with which the audit record of the request is appended, so that it is appended only once.
    """

    fingerprint: str
    append_id: str

    def is_repeated_by(self, new_claim: "Claim") -> bool:
        """Return whether a later claim of the same key is of a repeated request."""
        return self.fingerprint == new_claim.fingerprint and self.append_id != new_claim.append_id


@dataclass(frozen=True, slots=True)
class ReservedId:
    """Append id that belongs to an idempotency key.

    Attributes:
        append_id: id with which the audit record of the request is appended.
        is_first: True if the request is the first one with the key; if False, the record is possibly stored already.
    """

    append_id: str
    is_first: bool


class IdempotencyStore(Protocol):
    """Store of idempotency keys, and of the requests that claim the keys."""

    async def store_or_get_claim(self, key_hash: str, new_claim: Claim, at: datetime, forget_before: datetime) -> Claim:
        """Store a request's claim of a key, unless an unexpired claim is stored already; return the stored claim.

        Concurrent calls with the same key all get the same claim. If it is the claim of another call with the same
        fingerprint, the store also records that a repeated request has got it, see :meth:`delete_claim`.

        Args:
            key_hash: hash from :func:`hash_key`.
            new_claim: claim of the current request.
            at: current time.
            forget_before: claims that were stored before this time have expired.
        """
        ...

    async def delete_claim(self, key_hash: str, append_id: str) -> None:
        """Delete the claim of an idempotency key if it has this append id, and no repeated request got this id.

        Do nothing if a later request has claimed the key.
        """
        ...


class IdempotencyKeys:
    """Registry of the callers' idempotency keys. It gives each key an append id, which identifies one audit record."""

    def __init__(self, store: IdempotencyStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._runtime = runtime

    async def claim_append_id(
        self, caller_id: str, http_method: str, idempotency_key: str, request_bytes: bytes
    ) -> ReservedId:
        """Return the append id for a request's idempotency key; a repeated request within 24 hours gets the same id.

        Args:
            caller_id: id of the caller; each caller has separate keys.
            http_method: HTTP method of the request; each method has separate keys.
            idempotency_key: the caller's key; not empty.
            request_bytes: bytes of all parts of the request that must be equal in a repeated request.

        Raises:
            WorkspaceError: INVALID with the field ``Idempotency-Key`` if the key is too long or has invalid characters;
                UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED`` if the key was used for another request.
        """
        name, wanted, at = (
            hash_key(caller_id, http_method, idempotency_key),
            build_claim(request_bytes, self._runtime.new_id()),
            self._runtime.now(),
        )
        claim = await self._store.store_or_get_claim(name, wanted, at, at - RETENTION)
        reject_reused_key(claim, wanted)
        return ReservedId(claim.append_id, is_first=claim.append_id == wanted.append_id)

    async def release_key(self, caller_id: str, http_method: str, idempotency_key: str, append_id: str) -> None:
        """Release the key of a rejected request, which is the first one with the key and has appended nothing.

        Do nothing if a repeated request has got the append id meanwhile, because it possibly appends the record.
        """
        await self._store.delete_claim(hash_key(caller_id, http_method, idempotency_key), append_id)


def hash_key(caller_id: str, http_method: str, idempotency_key: str) -> str:
    """Return the hash of a caller's idempotency key, which is stored instead of the key.

    Raises:
        WorkspaceError: INVALID with the field ``Idempotency-Key`` if the key is too long or has invalid characters.
    """
    if not idempotency_key.strip() or len(idempotency_key) > MAX_KEY_LENGTH or not idempotency_key.isprintable():
        raise build_invalid_field_error("Idempotency-Key", f"must have 1 to {MAX_KEY_LENGTH} printable characters")
    return hashlib.sha256(f"{caller_id}\n{http_method}\n{idempotency_key}".encode()).hexdigest()


def build_claim(request_bytes: bytes, append_id: str) -> Claim:
    """Build the claim of an idempotency key by a request; its fingerprint is a hash of the request."""
    return Claim(hashlib.sha256(request_bytes).hexdigest(), append_id)


def reject_reused_key(claim: Claim, new_claim: Claim) -> None:
    """Reject an idempotency key that was used for another request.

    Raises:
        WorkspaceError: UNPROCESSABLE ``IDEMPOTENCY_KEY_REUSED`` if the fingerprints differ.
    """
    if claim.fingerprint != new_claim.fingerprint:
        detail = "This Idempotency-Key was used for another request; use a new key."
        raise WorkspaceError(Kind.UNPROCESSABLE, "IDEMPOTENCY_KEY_REUSED", detail)
