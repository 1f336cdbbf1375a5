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
        if not key.strip() or len(key) > MAX_KEY_LENGTH or not key.isprintable():
            raise invalid("Idempotency-Key", f"1 to {MAX_KEY_LENGTH} printable characters are expected")
        fingerprint = hashlib.sha256(request).hexdigest()
        name = hashlib.sha256(f"{caller}\n{operation}\n{key}".encode()).hexdigest()
        at = now()
        claim = await self._store.claim(name, Claim(fingerprint, uuid.uuid4().hex), at, at - REMEMBERED)
        if claim.fingerprint != fingerprint:
            detail = "This Idempotency-Key was used for another request."
            raise WorkspaceError(Kind.UNPROCESSABLE, "IDEMPOTENCY_KEY_REUSED", detail)
        return claim.append_id
