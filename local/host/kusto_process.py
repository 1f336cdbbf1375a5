"""Child process of the Kusto emulator: start, restart after a crash, stop with the host.

This module is separate because the supervision of a process is tested without a host.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

from local.errors import StartError
from local.host.shutdown import ShutdownSignal
from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("local.kusto_child")
_START_SECONDS = 60.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 15.0
_READY = "ready "


class KustoProcess:
    """Child process ``python -m emulators.kusto`` that serves the telemetry of a data directory.

    Args:
        data_dir: the data directory.
        command: command line that starts the process.
        retention_days: days after their ingestion at which messages are deleted from the telemetry table.
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

    async def start(self) -> str:
        """Start the process, wait until it accepts queries, and return its address.

        Raises:
            StartError: the process ends, or is not ready within a minute.
        """
        process = self._process = await self._start_process()
        try:
            async with asyncio.timeout(_START_SECONDS):
                address = await _read_address(process)
        except TimeoutError:
            raise StartError(f"the embedded Kusto endpoint is not ready after {_START_SECONDS:.0f} s") from None
        self._port = int(address.rpartition(":")[2])
        return address

    async def supervise(self, stopping: ShutdownSignal) -> None:
        """Forward the process's output; restart the process on the same port after a crash, until the host stops."""
        delay = _FIRST_DELAY
        while not stopping.is_set():
            if await self._wait_for_end(stopping):
                return
            _LOGGER.error("the embedded Kusto endpoint crashed; it is restarted", extra=fields(delay=delay))
            if await stopping.wait_for(delay):
                return
            delay = min(delay * 2, _LONGEST_DELAY)
            with contextlib.suppress(StartError):
                await self.start()
                delay = _FIRST_DELAY

    def announce_events(self) -> None:
        """Notify the process that the event hub has new events; otherwise it finds them up to a second later."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            return
        # Bytes that the process has not read yet wake it anyway.
        if not process.stdin.is_closing() and not process.stdin.transport.get_write_buffer_size():
            process.stdin.write(b"\n")

    async def stop(self, seconds: float) -> None:
        """Terminate the process; kill the process and its children if it still runs after ``seconds``."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            _LOGGER.warning("the embedded Kusto endpoint did not stop in time; it is killed")
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

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

    async def _wait_for_end(self, stopping: ShutdownSignal) -> bool:
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


async def _read_address(process: Process) -> str:
    if process.stdout is None:
        raise StartError("the standard output of the embedded Kusto endpoint is not a pipe")
    async for line in process.stdout:
        text = line.decode(errors="replace").strip()
        if text.startswith(_READY):
            return text.removeprefix(_READY)
    raise StartError(f"the embedded Kusto endpoint ended with code {await process.wait()}")
