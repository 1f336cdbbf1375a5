"""Record of the times at which API keys were last used.

Separate from ``authenticator`` because authentication itself only reads.
"""

import asyncio
import contextvars
from datetime import datetime
from typing import Final

from shared.auth.ports import ApiKey, CredentialStore
from shared.observability import logs

ACCURACY_SECONDS: Final = 60
"""Minimum time between two writes of an API key's last use."""
WRITE_SECONDS: Final = 15.0
MAX_WAITING: Final = 1_000
"""Maximum number of API keys whose last use waits to be written; further uses are not recorded."""

_LOG = logs.get_logger("auth")


class KeyUsageRecorder:
    """Background writer of the times at which API keys were last used.

    A failed write is skipped, and only the first failure is logged.

    Args:
        store: storage of the keys.
        write_seconds: timeout of one write in seconds.
    """

    def __init__(self, store: CredentialStore, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._store = store
        self._write_seconds = write_seconds
        self._recorded: dict[str, datetime] = {}
        self._waiting: dict[str, datetime] = {}
        self._writing: asyncio.Task[None] | None = None
        self._is_failing = False

    def record(self, key: ApiKey, at: datetime) -> None:
        """Record a use of an API key unless a recent use is recorded; return at once and never raise."""
        last = self._recorded.get(key.key_id, key.last_used_at)
        if last is not None and (at - last).total_seconds() < ACCURACY_SECONDS:
            return
        if len(self._waiting) >= MAX_WAITING:
            return
        self._recorded[key.key_id] = self._waiting[key.key_id] = at
        if self._writing is None:
            # A new context, because the write belongs to no request.
            write = asyncio.get_running_loop().create_task
            self._writing = write(self._write_all(), context=contextvars.Context())

    async def close(self) -> None:
        """Wait until all recorded uses are written."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                key_id, at = self._waiting.popitem()
                await self._write_last_use(key_id, at)
        finally:
            self._writing = None

    async def _write_last_use(self, key_id: str, at: datetime) -> None:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._store.store_last_use(key_id, at)
        except Exception as error:  # noqa: BLE001  no request waits for this write
            if not self._is_failing:
                _LOG.warning(
                    "the time of an API key's last use could not be stored",
                    extra=logs.fields(error=type(error).__name__),
                )
            self._is_failing = True
        else:
            self._is_failing = False
