"""Records where a local host serves, for commands over the same data directory.

A command sends an API key to the recorded address, so the record must be the host's own and the host must still run: a
port that a dead host has left may belong to another process by now. Each host therefore holds a lock on its record. The
operating system releases the lock with the process, also after ``kill -9``.
"""

import contextlib
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FOLDER = "hosts"
_SUFFIX = ".json"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class RunningHost:
    """The record of a host.

    Attributes:
        address: base address of the host, such as ``http://127.0.0.1:7071``.
        record: the file that the host has locked.
    """

    address: str
    record: Path

    def is_running(self) -> bool:
        """Return whether the host still runs, so that its port is no other process's."""
        return _read(self.record) == self


@contextlib.contextmanager
def record_host(data_dir: Path, address: str) -> Iterator[None]:
    """Record a host's address while the block runs, and remove the records of hosts that have ended.

    Raises:
        OSError: the data directory cannot be written.
    """
    folder = data_dir / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.glob("*" + _SUFFIX):
        if _read(path) is None:
            path.unlink(missing_ok=True)
    draft = folder / f"{secrets.token_hex(8)}.draft"
    record = draft.with_suffix(_SUFFIX)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"address": address}, file)
        file.flush()
        # Only now may others find it: a record is complete and locked from its first moment.
        draft.rename(record)
        try:
            yield
        finally:
            record.unlink(missing_ok=True)


def find_host(data_dir: Path) -> RunningHost | None:
    """Return a host that runs over a data directory, None if there is none."""
    records = sorted((data_dir / _FOLDER).glob("*" + _SUFFIX))
    return next((host for host in map(_read, records) if host is not None), None)


def _read(path: Path) -> RunningHost | None:
    """Return the host that holds a record, None for a stale record and for a file that is not a host's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        if not _is_own(os.fstat(descriptor), path) or not _is_locked(descriptor):
            return None
        try:
            return RunningHost(str(json.load(file)["address"]), path)
        except (ValueError, KeyError, TypeError):
            return None


def _is_own(found: os.stat_result, path: Path) -> bool:
    """Return whether only this user, or the owner of the data directory, can have written a record."""
    trusted = {os.geteuid(), path.parent.parent.stat().st_uid}
    return stat.S_ISREG(found.st_mode) and found.st_uid in trusted and not found.st_mode & _WRITABLE_BY_OTHERS


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
