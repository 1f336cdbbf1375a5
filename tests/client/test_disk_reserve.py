"""Tests of the file that reserves disk space."""

import errno
import os
from pathlib import Path

import pytest
from oi.disk_reserve import DiskReserve

SIZE = 2**20


def test_a_reserve_occupies_disk_space_until_it_is_released(tmp_path: Path) -> None:
    """A reserve occupies its size on the disk, until it is released."""
    path = tmp_path / "reserve"
    reserve = DiskReserve(path, SIZE)
    for _ in range(2):
        reserve.create_if_missing()
        assert reserve.is_present
        assert path.stat().st_blocks * 512 >= SIZE
    for _ in range(2):
        reserve.release()
        assert not path.exists()


def test_a_reserve_without_room_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk has too little space for a reserve, the error says so and the space stays free."""

    def raise_disk_full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", raise_disk_full)
    with pytest.raises(OSError, match="The disk has less than 1 MiB of free space") as raised:
        DiskReserve(tmp_path / "reserve", SIZE).create_if_missing()
    assert (raised.value.errno, list(tmp_path.iterdir())) == (errno.ENOSPC, [])
