"""Processes that use a data directory: the running local hosts and the query engine.

Each host writes its address to a record file. The command ``local.sign_in`` prints a sign-in link with this address.
The link must not lead to another process, which can listen on the port of a stopped host. Therefore each host holds a
lock on its record file. The operating system releases the lock when the process ends, even after ``kill -9``.

The query engine is a child process of one host, which starts it, restarts it after a crash, and stops it at the end.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import signal
import stat
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from local.errors import StartError
from local.host.shutdown import ShutdownSignal
from shared.observability.logs import fields, get_logger

_FOLDER = "hosts"
_SUFFIX = ".json"
_LOCK_WAIT_SECONDS = 6.0
"""Time in seconds to wait for a host that is stopping."""

_POLL_SECONDS = 0.1
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_LOGGER = get_logger("local.kusto_child")
START_SECONDS = 60.0
"""Maximum seconds until the query engine is ready after its start."""

_FIRST_DELAY, _LONGEST_DELAY = 0.5, 15.0
_HEALTHY_SECONDS = 60.0
"""Time after which a process counts as healthy, so that its next restart is not delayed by the crashes before it."""
_READY = "ready "


@dataclass(frozen=True, slots=True)
class RunningHost:
    """Record of a running local host.

    Attributes:
        address: base address of the host, such as ``http://127.0.0.1:7071``.
    """

    address: str


@contextlib.contextmanager
def record_running_host(data_dir: Path, address: str) -> Iterator[None]:
    """Context manager: record the host's address in a file during the block; first remove records of stopped hosts.

    Raises:
        OSError: the data directory cannot be written.
    """
    folder = data_dir / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.glob("*" + _SUFFIX):
        if _find_running_host_of_record(path) is None:
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


def find_running_host(data_dir: Path) -> RunningHost | None:
    """Find a local host that uses a data directory; return None if no host is running."""
    records = sorted((data_dir / _FOLDER).glob("*" + _SUFFIX))
    return next((host for host in map(_find_running_host_of_record, records) if host is not None), None)


def _find_running_host_of_record(record_path: Path) -> RunningHost | None:
    """Return the running host that a record file describes; None if the host has stopped or the file is invalid."""
    try:
        descriptor = os.open(record_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        if not _is_record_file_trusted(os.fstat(descriptor), record_path) or not _is_file_locked(descriptor):
            return None
        try:
            return RunningHost(str(json.load(file)["address"]))
        except (ValueError, KeyError, TypeError):
            return None


def _is_record_file_trusted(file_status: os.stat_result, record_path: Path) -> bool:
    """Return whether the record file is trustworthy: only this user or the data directory's owner can write it."""
    trusted = {os.geteuid(), record_path.parent.parent.stat().st_uid}
    return (
        stat.S_ISREG(file_status.st_mode)
        and file_status.st_uid in trusted
        and not file_status.st_mode & _WRITABLE_BY_OTHERS
    )


def _is_file_locked(file_descriptor: int) -> bool:
    """Return whether a running host holds the lock on its record file."""
    try:
        fcntl.flock(file_descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


type DataDirLock = TextIO
"""Open file that holds the lock on a data directory until it is closed, or the process ends."""


async def lock_data_dir(data_dir: Path) -> DataDirLock:
    """Lock a data directory for this host, and return the open lock file, which holds the lock.

    Raises:
        StartError: another host holds the lock and does not stop in time.
    """
    lock_file = (data_dir / "host.lock").open("a")
    deadline = time.monotonic() + _LOCK_WAIT_SECONDS
    while not _try_to_lock_file(lock_file):
        if time.monotonic() > deadline:
            lock_file.close()
            raise StartError(
                f"another host runs the query engine of the data directory {data_dir}; "
                "stop that host, or set another folder with --data-dir (DATA_DIR)"
            )
        await asyncio.sleep(_POLL_SECONDS)
    return lock_file


def _try_to_lock_file(lock_file: TextIO) -> bool:
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class KustoProcess:
    """Child process ``python -m emulators.kusto`` that serves the telemetry of a data directory.

    Args:
        data_dir: the data directory.
        command: command line that starts the process.
        retention_days: age in days, since ingestion, at which a message is deleted from the telemetry table.
    """

    def __init__(
        self,
        data_dir: Path,
        command: Sequence[str] = (sys.executable, "-m", "emulators.kusto"),
        *,
        retention_days: float,
    ) -> None:
        self._data_dir = data_dir
        self._retention_days = retention_days
        self._command = command
        self._process: Process | None = None
        self._port = 0

    async def start_and_get_address(self) -> str:
        """Start the process, wait until it accepts queries, and return its address.

        Raises:
            StartError: the process ends, or is not ready within a minute and is killed.
            OSError: the process cannot be created, for instance because memory is full.
        """
        process = self._process = await self._start_process()
        try:
            async with asyncio.timeout(START_SECONDS):
                address = await _wait_for_ready_address(process)
        except TimeoutError:
            await _kill_process_group(process)
            raise StartError(f"the query engine (Kusto emulator) is not ready after {START_SECONDS:.0f} s") from None
        self._port = int(address.rpartition(":")[2])
        return address

    async def supervise(self, stopping: ShutdownSignal) -> None:
        """Forward the process's output; restart the process on the same port after a crash, until the host stops."""
        delay = _FIRST_DELAY
        while not stopping.is_set():
            began = time.monotonic()
            if await self._is_host_stopped_before_process_ends(stopping):
                return
            if time.monotonic() - began > _HEALTHY_SECONDS:
                delay = _FIRST_DELAY
            _LOGGER.error("the query engine (Kusto emulator) crashed; it is restarted", extra=fields(delay=delay))
            if await stopping.wait_until_set(delay):
                return
            delay = min(delay * 2, _LONGEST_DELAY)
            try:
                await self.start_and_get_address()
            except (StartError, OSError) as error:
                _LOGGER.error("the query engine (Kusto emulator) was not restarted: %s", error)  # noqa: TRY400  expected

    def notify_process_of_new_hub_events(self) -> None:
        """Notify the process of new events in the event hub; without this, it finds them up to a second later."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            return
        # Bytes that the process has not read yet wake it anyway.
        if not process.stdin.is_closing() and not process.stdin.transport.get_write_buffer_size():
            process.stdin.write(b"\n")

    async def stop(self, max_wait_seconds: float) -> None:
        """Terminate the process; kill the process and its children if it still runs after ``max_wait_seconds``."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(max_wait_seconds):
                await process.wait()
        except TimeoutError:
            _LOGGER.warning("the query engine (Kusto emulator) did not stop in time; it is killed")
            await _kill_process_group(process)

    async def _start_process(self) -> Process:
        hub = self._data_dir / "hub.sqlite"
        return await asyncio.create_subprocess_exec(
            *self._command,
            *("--data", str(self._data_dir / "kusto"), "--port", str(self._port)),
            *("--hub", str(hub), "--retention-days", str(self._retention_days)),
            *("--files", str(self._data_dir / "blobs" / "downloads"), "--exit-with-parent"),
            cwd=Path(__file__).parents[2],
            # Each byte announces events; the process ends when this pipe closes, even if the host is killed.
            stdin=PIPE,
            stdout=PIPE,
            # Ctrl-C must reach the host only, which needs the process while it drains.
            start_new_session=True,
        )

    async def _is_host_stopped_before_process_ends(self, stopping: ShutdownSignal) -> bool:
        """Wait until the process ends or the host stops; return whether the host stops."""
        ends = [asyncio.create_task(self._forward_output()), asyncio.create_task(stopping.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        return stopping.is_set()

    async def _forward_output(self) -> None:
        """Copy the output of the process to that of the host until the process ends."""
        if self._process is None or self._process.stdout is None:
            return
        async for line in self._process.stdout:
            print(line.decode(errors="replace"), end="", file=sys.stderr)
        await self._process.wait()


async def _kill_process_group(process: Process) -> None:
    """Kill a process and its children, and wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _wait_for_ready_address(process: Process) -> str:
    """Wait for the line ``ready ADDRESS`` of the process, and return the address."""
    if process.stdout is None:
        raise StartError("the standard output of the query engine (Kusto emulator) is not a pipe")
    async for line in process.stdout:
        text = line.decode(errors="replace").strip()
        if text.startswith(_READY):
            return text.removeprefix(_READY)
    raise StartError(f"the query engine (Kusto emulator) ended with code {await process.wait()} during its start")
