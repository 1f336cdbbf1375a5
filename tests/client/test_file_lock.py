"""Tests of the file lock with a fake of the module `msvcrt` of Windows."""

import errno
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import oi.file_lock
import pytest


def lock_on_windows(errors: list[int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock a file and release it.

    Args:
        errors: numbers of the errors with which the first attempts to lock the file fail; each attempt removes one.
        folder: folder of the file.
        monkeypatch: replaces the platform and `msvcrt`.
    """

    def lock_or_fail(_descriptor: int, _mode: int, _length: int) -> None:
        if errors:
            raise OSError(errors.pop(0), "The file is locked.")

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=lock_or_fail, LK_LOCK=1))
    with monkeypatch.context() as windows:
        windows.setattr(sys, "platform", "win32")
        module = runpy.run_path(oi.file_lock.__file__)
    with module["lock_file"](folder / "lock"):
        assert not errors


def test_the_lock_waits_as_long_as_another_process_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, which fails after ten seconds, the lock waits again until the other process releases the file."""
    lock_on_windows([errno.EDEADLK] * 3, tmp_path, monkeypatch)


def test_another_error_of_the_lock_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, an error that does not mean that the file is locked is raised at once."""
    with pytest.raises(OSError, match="locked") as failed:
        lock_on_windows([errno.EBADF, errno.EBADF], tmp_path, monkeypatch)
    assert failed.value.errno == errno.EBADF
