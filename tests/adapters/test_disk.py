"""Tests that every adapter of the port Disk meets the same contract."""

from pathlib import Path

import pytest

from shared.backends.embedded.disk import FolderDisk
from shared.disk_space.guard import DiskGuard, DiskState, UnlimitedDisk
from shared.disk_space.ports import Disk


@pytest.fixture(params=["azure", "embedded"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return UnlimitedDisk() if request.param == "azure" else FolderDisk(tmp_path)


async def test_the_disk_usage_is_plausible(disk: Disk) -> None:
    """A disk reports either no usage at all, or at most as many free bytes as total bytes."""
    usage = await disk.read_usage()
    assert usage is None or 0 <= usage.free <= usage.total


async def test_with_a_reserve_of_zero_every_disk_has_space(disk: Disk) -> None:
    """With a reserve of zero, every disk has enough space."""
    assert await DiskGuard(disk, 0).read_disk_state() is DiskState.OK


async def test_reading_the_disk_usage_of_a_missing_folder_raises_an_error(tmp_path: Path) -> None:
    """Reading the disk usage of a missing folder raises an error."""
    with pytest.raises(OSError, match="missing"):
        await FolderDisk(tmp_path / "missing").read_usage()
