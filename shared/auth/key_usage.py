"""Notes when API keys were last used: beside the requests that use them, never in their way."""

import asyncio
import contextvars
from datetime import datetime
from typing import Final

from shared.auth.ports import ApiKey, CredentialStore
from shared.observability import logs

EVERY_SECONDS: Final = 60
"""How accurate a last use is."""
WRITE_SECONDS: Final = 15.0
MOST_WAITING: Final = 1_000
"""Keys whose last use waits to be written; of any more the next use is noted."""

_LOG = logs.get_logger("auth")


class KeyUsageRecorder:
    """Writes the last uses of keys one after the other; what cannot be written is left out, and the log told once.

    Args:
        store: where they are kept.
        write_seconds: how long one may take.
    """

    def __init__(self, store: CredentialStore, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._store = store
        self._write_seconds = write_seconds
        self._noted: dict[str, datetime] = {}
        self._waiting: dict[str, datetime] = {}
        self._writing: asyncio.Task[None] | None = None
        self._fails = False

    def record(self, key: ApiKey, at: datetime) -> None:
        """Note a use, unless one of about the same time is noted; returns at once and raises nothing."""
        last = self._noted.get(key.key_id, key.last_used_at)
        if last is not None and (at - last).total_seconds() < EVERY_SECONDS:
            return
        if len(self._waiting) >= MOST_WAITING:
            return
        self._noted[key.key_id] = self._waiting[key.key_id] = at
        if self._writing is None:
            # In a context of its own: what it does belongs to no request.
            write = asyncio.get_running_loop().create_task
            self._writing = write(self._write_all(), context=contextvars.Context())

    async def close(self) -> None:
        """Return when nothing waits any more."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                key_id, at = self._waiting.popitem()
                await self._write(key_id, at)
        finally:
            self._writing = None

    async def _write(self, key_id: str, at: datetime) -> None:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._store.touch_key(key_id, at)
        except Exception as error:  # noqa: BLE001  whatever it is, nobody waits for this
            if not self._fails:
                _LOG.warning("the last use of keys cannot be noted", extra=logs.fields(error=type(error).__name__))
            self._fails = True
        else:
            self._fails = False
