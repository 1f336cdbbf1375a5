"""Tests of the rejection of new data on a nearly full disk."""

import pytest

from shared.disk_space.guard import CACHE_SECONDS, DiskGuard, DiskState
from shared.disk_space.ports import DiskUsage
from shared.errors import Kind, WorkspaceError
from tests.virtual_time import VirtualTime

GB = 1_000_000_000


class MovableDisk:
    """Fake disk whose usage a test sets.

    Attributes:
        usage: current usage, or an exception that each read raises.
        reads: number of reads.
    """

    def __init__(self, total: int, free: int) -> None:
        self.usage: DiskUsage | OSError | None = DiskUsage(total, free)
        self.reads = 0

    async def read_usage(self) -> DiskUsage | None:
        """Return the disk usage that the test has set; if it is an exception, raise it."""
        self.reads += 1
        if isinstance(self.usage, OSError):
            raise self.usage
        return self.usage


@pytest.mark.parametrize(
    ("total", "free", "reserve", "state"),
    [
        (500 * GB, 2 * GB, None, DiskState.OK),
        (500 * GB, 2 * GB - 1, None, DiskState.NEARLY_FULL),
        (500 * GB, GB, None, DiskState.NEARLY_FULL),
        (500 * GB, GB - 1, None, DiskState.FULL),
        (GB, GB // 5, None, DiskState.OK),
        (GB, GB // 10 - 1, None, DiskState.FULL),
        (GB, GB // 2 - 1, GB // 2, DiskState.FULL),
        (500 * GB, 0, 0, DiskState.OK),
    ],
)
async def test_a_disk_is_full_below_the_reserve(total: int, free: int, reserve: int | None, state: DiskState) -> None:
    """A disk is full below the reserve of free space, and nearly full below twice the reserve."""
    assert await DiskGuard(MovableDisk(total, free), reserve).read_disk_state() is state


async def test_new_data_is_rejected_until_space_is_free() -> None:
    """A full disk rejects new data with STORAGE_FULL; a second after space is free, it accepts data again."""
    time, disk = VirtualTime(), MovableDisk(500 * GB, 0)
    guard = DiskGuard(disk, runtime=time.runtime)
    with pytest.raises(WorkspaceError) as caught:
        await guard.require_disk_space()
    assert (caught.value.kind, caught.value.code) == (Kind.STORAGE_FULL, "STORAGE_FULL")
    assert caught.value.members == {"retryAfter": 60}
    disk.usage = DiskUsage(500 * GB, 400 * GB)
    time.advance(CACHE_SECONDS)
    await guard.require_disk_space()


async def test_the_disk_usage_is_read_once_a_second() -> None:
    """Calls within a second share one read of the disk usage."""
    time, disk = VirtualTime(), MovableDisk(500 * GB, 400 * GB)
    guard = DiskGuard(disk, runtime=time.runtime)
    for _ in range(10):
        await guard.require_disk_space()
    assert disk.reads == 1
    time.advance(CACHE_SECONDS)
    await guard.require_disk_space()
    assert disk.reads == 2


async def test_the_last_state_stays_if_the_disk_usage_cannot_be_read() -> None:
    """If the disk usage cannot be read, the last known state is returned, because stores report their own failures."""
    time, disk = VirtualTime(), MovableDisk(500 * GB, 0)
    guard = DiskGuard(disk, runtime=time.runtime)
    assert await guard.read_disk_state() is DiskState.FULL
    disk.usage = OSError("stale file handle")
    time.advance(CACHE_SECONDS)
    assert await guard.read_disk_state() is DiskState.FULL


async def test_stores_without_a_limit_are_never_full() -> None:
    """Stores without a limit accept everything."""
    disk = MovableDisk(0, 0)
    disk.usage = None
    assert await DiskGuard(disk, 10 * GB).read_disk_state() is DiskState.OK
