"""Record files and locks of the local hosts that run on a data directory.

A command sends an API key to the address in a record file. It must therefore know that the host still runs, because
another process can listen on the port of a stopped host. Each host holds a lock on its record file. The operating
system releases the lock when the process ends, even after ``kill -9``.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from local.errors import StartError

_FOLDER = "hosts"
_SUFFIX = ".json"
_LOCK_WAIT_SECONDS = 6.0
"""Time in seconds to wait for a host that is stopping."""

_POLL_SECONDS = 0.1
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class RunningHost:
    """Record of a running host.

    Attributes:
        address: base address of the host, such as ``http://127.0.0.1:7071``.
    """

    address: str


@contextlib.contextmanager
def record_host(data_dir: Path, address: str) -> Iterator[None]:
    """Context manager that records a host's address while the block runs, and removes the records of stopped hosts.

    Raises:
        OSError: the data directory cannot be written.
    """
    folder = data_dir / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.glob("*" + _SUFFIX):
        if _read_record(path) is None:
            path.unlink(missing_ok=True)
    draft = folder / f"{secrets.token_hex(8)}.draft"
    record = draft.with_suffix(_SUFFIX)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"address": address}, file)
        file.flush()
        # The rename publishes a record that is complete and locked.
        draft.rename(record)
        try:
            yield
        finally:
            record.unlink(missing_ok=True)


def find_host(data_dir: Path) -> RunningHost | None:
    """Find a host that runs on a data directory; return None if no host runs on it."""
    records = sorted((data_dir / _FOLDER).glob("*" + _SUFFIX))
    return next((host for host in map(_read_record, records) if host is not None), None)


def _read_record(path: Path) -> RunningHost | None:
    """Return the running host that a record file describes; None if the host has stopped or the file is invalid."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        if not _is_write_protected(os.fstat(descriptor), path) or not _is_locked(descriptor):
            return None
        try:
            return RunningHost(str(json.load(file)["address"]))
        except (ValueError, KeyError, TypeError):
            return None


def _is_write_protected(found: os.stat_result, path: Path) -> bool:
    """Return whether the record file is trustworthy: only this user or the data directory's owner can write it."""
    trusted = {os.geteuid(), path.parent.parent.stat().st_uid}
    return stat.S_ISREG(found.st_mode) and found.st_uid in trusted and not found.st_mode & _WRITABLE_BY_OTHERS


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


async def claim_data_dir(data_dir: Path) -> TextIO:
    """Lock a data directory for one host. The lock ends if the returned file is closed or the process ends.

    Raises:
        StartError: another host holds the lock and does not stop in time.
    """
    claim = (data_dir / "host.lock").open("a")
    deadline = time.monotonic() + _LOCK_WAIT_SECONDS
    while not _try_lock(claim):
        if time.monotonic() > deadline:
            claim.close()
            raise StartError(
                f"another host runs the query engine of the data directory {data_dir}; "
                "stop that host, or set another folder with --data-dir (DATA_DIR)"
            )
        await asyncio.sleep(_POLL_SECONDS)
    return claim


def _try_lock(claim: TextIO) -> bool:
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
