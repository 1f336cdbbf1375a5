"""Tests of the file that reserves disk space."""

import errno
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

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


def test_a_system_without_allocation_gets_a_written_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the operating system has no function that allocates space, the reserve is written."""
    monkeypatch.delattr(os, "posix_fallocate")
    reserve = DiskReserve(tmp_path / "reserve", SIZE)
    reserve.create_if_missing()
    assert reserve.is_present


@pytest.mark.parametrize(("free", "is_tried"), [(SIZE // 2, False), (0, True)])
def test_a_reserve_does_not_take_the_rest_of_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, *, is_tried: bool
) -> None:
    """A reserve is not begun if the file system states too little free space; a file system may state nothing."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1))
    reserve = DiskReserve(tmp_path / "reserve", SIZE)
    with nullcontext() if is_tried else pytest.raises(OSError, match=r"cannot be reserved in .*: No space left"):
        reserve.create_if_missing()
    assert reserve.is_present == is_tried


def test_a_sparse_reserve_is_discarded(tmp_path: Path) -> None:
    """A reserve that was restored as a sparse file is deleted, since it reserves nothing; others stay."""
    path, reserve = tmp_path / "reserve", DiskReserve(tmp_path / "reserve", SIZE)
    reserve.create_if_missing()
    reserve.discard_if_sparse()
    assert reserve.is_present
    path.unlink()
    path.touch()
    os.truncate(path, SIZE)
    reserve.discard_if_sparse()
    assert not reserve.is_present


def build_failing_allocation(code: int) -> Callable[..., None]:
    """Return a function that fails with an error number of the operating system."""

    def fail(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    return fail
