"""Guard that rejects new telemetry while the disk is nearly full, so that space remains for other data.

On Azure, storage is practically unlimited, so the guard rejects nothing.
"""

import asyncio
from enum import StrEnum
from typing import Final

from shared.disk_space.ports import Disk, DiskUsage
from shared.errors import Kind, WorkspaceError
from shared.observability import logs, metrics
from shared.runtime import SYSTEM_RUNTIME, Runtime

DEFAULT_RESERVE: Final = 1_000_000_000
"""Bytes that new data leaves free by default; on a small disk, a tenth of the disk."""
CACHE_SECONDS: Final = 1.0
READ_SECONDS: Final = 5.0
RETRY_AFTER_SECONDS: Final = 60
_SMALL_DISK_SHARE: Final = 10
_WARNING_FACTOR: Final = 2

_LOG = logs.get_logger("disk_space")


class DiskState(StrEnum):
    """State of the disk's free space; values other than `OK` appear as warnings in the readiness check."""

    OK = "OK"
    NEARLY_FULL = "DISK_NEARLY_FULL"
    FULL = "DISK_FULL"


class DiskGuard:
    """Rejects new data before the disk is full, so that a reserve of free space remains.

    The reserve is for data that was accepted before: events on their way to the archive and the query table, audit
    records, and checkpoints.

    Args:
        disk: reads the usage of the disk.
        reserved_bytes: number of bytes that new data must leave free (the reserve); None for 1 GB, or for a tenth of a
            disk below 10 GB.
        runtime: clock, randomness and threads.
    """

    def __init__(self, disk: Disk, reserved_bytes: int | None = None, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._disk = disk
        self._reserve = reserved_bytes
        self._runtime = runtime
        self._lock = asyncio.Lock()
        self._state = DiskState.OK
        self._read_at = float("-inf")

    async def read_disk_state(self) -> DiskState:
        """Return the state of the disk; it is at most a second old.

        If the disk does not respond, the previous state is returned; the stores then report the failure.
        """
        if not self._is_state_fresh():
            async with self._lock:
                if not self._is_state_fresh():
                    await self._refresh_state()
        return self._state

    async def require_disk_space(self) -> None:
        """Check that the disk has space for new data.

        Raises:
            WorkspaceError: STORAGE_FULL ``STORAGE_FULL``.
        """
        if await self.read_disk_state() is DiskState.FULL:
            metrics.count("workspace.disk.refusals")
            raise WorkspaceError(
                Kind.STORAGE_FULL,
                "STORAGE_FULL",
                "The disk of the service is nearly full. Nothing of this request is stored; send it again after an "
                "operator has freed space.",
                retryAfter=RETRY_AFTER_SECONDS,
            )

    def _is_state_fresh(self) -> bool:
        return self._runtime.monotonic() - self._read_at < CACHE_SECONDS

    async def _refresh_state(self) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                usage = await self._disk.read_usage()
        except OSError as error:
            _LOG.warning("the usage of the disk cannot be read: %s", error)
        else:
            self._set_state(_derive_disk_state(usage, self._reserve), usage)
        self._read_at = self._runtime.monotonic()

    def _set_state(self, state: DiskState, usage: DiskUsage | None) -> None:
        if state is not self._state:
            details = {"free": usage.free, "total": usage.total} if usage else {}
            _LOG.warning("the state of the disk is now %s", state, extra=logs.fields(**details))
        self._state = state


def _derive_disk_state(usage: DiskUsage | None, reserved_bytes: int | None) -> DiskState:
    if usage is None:
        return DiskState.OK
    reserve = min(DEFAULT_RESERVE, usage.total // _SMALL_DISK_SHARE) if reserved_bytes is None else reserved_bytes
    if usage.free < reserve:
        return DiskState.FULL
    return DiskState.NEARLY_FULL if usage.free < _WARNING_FACTOR * reserve else DiskState.OK


class UnlimitedDisk:
    """Implementation of Disk without a limit: each Azure service reports by itself that its quota is used up."""

    async def read_usage(self) -> None:
        """Return None, because no disk can become full."""
        return
