"""Tests of the file that reserves disk space."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from oi.gateway.disk_reserve import DiskReserve

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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_reserve_without_room_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """If the disk has too little space for a reserve, the error says so and the space stays free."""
    monkeypatch.setattr(os, "posix_fallocate", build_failing_allocation(code))
    with pytest.raises(OSError, match=f"1 MiB of disk space cannot be reserved in .*: {os.strerror(code)}"):
        DiskReserve(tmp_path / "reserve", SIZE).create_if_missing()
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_allocation_gets_a_written_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file system cannot allocate space, the reserve is written."""
    monkeypatch.setattr(os, "posix_fallocate", build_failing_allocation(errno.EOPNOTSUPP))
    reserve = DiskReserve(tmp_path / "reserve", SIZE)
    reserve.create_if_missing()
    assert reserve.is_present


def build_failing_allocation(code: int) -> Callable[..., None]:
    """Return a function that fails with an error number of the operating system."""

    def fail(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    return fail
