"""The embedded Kusto endpoint as a child process: started, restarted when it dies, ended with the host."""

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
    """Runs ``python -m emulators.kusto`` over the data directory's telemetry and its hub."""

    def __init__(self, data_dir: Path, command: Sequence[str] = (sys.executable, "-m", "emulators.kusto")) -> None:
        self._data_dir = data_dir
        self._command = command
        self._process: Process | None = None
        self._port = 0

    async def start(self) -> str:
        """Start the child and return its address once it answers.

        Raises:
            StartError: it ends, or is not ready within a minute.
        """
        process = self._process = await self._spawn()
        try:
            async with asyncio.timeout(_START_SECONDS):
                address = await _address(process)
        except TimeoutError:
            raise StartError(f"the embedded Kusto endpoint is not ready after {_START_SECONDS:.0f} s") from None
        self._port = int(address.rpartition(":")[2])
        return address

    async def supervise(self, stopping: ShutdownSignal) -> None:
        """Pass on what the child prints, and start it again on the same port when it dies, until the host stops."""
        delay = _FIRST_DELAY
        while not stopping.is_set():
            if await self._ended(stopping):
                return
            _LOGGER.error("the embedded Kusto endpoint died; it is started again", extra=fields(delay=delay))
            if await stopping.wait_for(delay):
                return
            delay = min(delay * 2, _LONGEST_DELAY)
            with contextlib.suppress(StartError):
                await self.start()
                delay = _FIRST_DELAY

    async def stop(self, seconds: float) -> None:
        """End the child: ask, then kill it with its own children when it has not ended in so many seconds."""
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
            _LOGGER.warning("the embedded Kusto endpoint did not end in time; it is killed")
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _spawn(self) -> Process:
        hub = self._data_dir / "hub.sqlite"
        return await asyncio.create_subprocess_exec(
            *self._command,
            *("--data", str(self._data_dir / "kusto"), "--port", str(self._port)),
            *("--hub", str(hub), "--exit-with-parent"),
            cwd=Path(__file__).parents[2],
            stdin=PIPE,  # the child ends when this end closes, also when the host is killed
            stdout=PIPE,
            # Ctrl-C is for the host alone, which needs the child until it has drained.
            start_new_session=True,
        )

    async def _ended(self, stopping: ShutdownSignal) -> bool:
        """Wait for the child's end; return whether the host stops."""
        ends = [asyncio.create_task(self._pass_on()), asyncio.create_task(stopping.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        return stopping.is_set()

    async def _pass_on(self) -> None:
        """Print what the child prints, until it ends."""
        if self._process is None or self._process.stdout is None:
            return
        async for line in self._process.stdout:
            print(line.decode(errors="replace"), end="", file=sys.stderr)
        await self._process.wait()


async def _address(process: Process) -> str:
    if process.stdout is None:
        raise StartError("the embedded Kusto endpoint has no output")
    async for line in process.stdout:
        text = line.decode(errors="replace").strip()
        if text.startswith(_READY):
            return text.removeprefix(_READY)
    raise StartError(f"the embedded Kusto endpoint ended with code {await process.wait()}")
