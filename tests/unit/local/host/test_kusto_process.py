"""Tests of the host's child process; a script replaces the Kusto emulator."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from local.errors import StartError
from local.host.kusto_process import KustoProcess
from local.host.shutdown import ShutdownSignal

STAND_IN = """
import os, socket, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
listener = socket.create_server(("127.0.0.1", int(arguments["--port"])))
with open(arguments["--data"] + ".pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
print("noise", flush=True)
print(f"ready http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
while os.read(0, 4096):
    print("woken", flush=True)
"""
DEADLINE = 30


@pytest.fixture
async def child(tmp_path: Path) -> AsyncIterator[KustoProcess]:
    kusto = KustoProcess(tmp_path, (sys.executable, "-c", STAND_IN), retention_days=366)
    yield kusto
    await kusto.stop(5)


def read_pids(tmp_path: Path) -> list[int]:
    return [int(line) for line in (tmp_path / "kusto.pids").read_text().split()]


async def wait_until_gone(pid: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110, ASYNC240  another process's end sets no event
            await asyncio.sleep(0.01)


async def test_dead_child_is_started_again_on_its_port(tmp_path: Path, child: KustoProcess) -> None:
    """If the child process is killed, it is restarted at the same address."""
    address = await child.start()
    host, port = address.removeprefix("http://").split(":")
    stopping = ShutdownSignal()
    supervision = asyncio.create_task(child.supervise(stopping))
    os.kill(read_pids(tmp_path)[0], signal.SIGKILL)
    async with asyncio.timeout(DEADLINE):
        while len(read_pids(tmp_path)) < 2:  # noqa: ASYNC110  another process's file sets no event
            await asyncio.sleep(0.01)
        _, writer = await asyncio.open_connection(host, int(port))
    writer.close()
    stopping.set()
    await child.stop(5)
    await supervision


async def test_stop_ends_the_child(tmp_path: Path, child: KustoProcess) -> None:
    """A stop ends the child process; a second stop has no effect."""
    await child.start()
    await child.stop(5)
    await wait_until_gone(read_pids(tmp_path)[0])
    await child.stop(5)


async def test_child_that_cannot_start_is_reported() -> None:
    """If the child process ends before it is ready, the start fails with the child's exit code."""
    with pytest.raises(StartError, match="ended with code 3"):
        await KustoProcess(Path("unused"), (sys.executable, "-c", "raise SystemExit(3)"), retention_days=1).start()


async def test_announced_events_reach_the_child(child: KustoProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """An announcement is written to the child's standard input; without a child, it has no effect."""
    child.announce_events()
    await child.start()
    stopping = ShutdownSignal()
    supervision = asyncio.create_task(child.supervise(stopping))
    child.announce_events()
    async with asyncio.timeout(DEADLINE):
        while "woken" not in capsys.readouterr().err:  # noqa: ASYNC110  output of another process sets no event
            await asyncio.sleep(0.01)
    stopping.set()
    await child.stop(5)
    child.announce_events()
    await supervision
