"""Tests of the files that record running hosts, and of the Kusto child process, which a script replaces."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.errors import StartError
from local.host import processes
from local.host.processes import KustoProcess, find_running_host, record_running_host
from local.host.shutdown import ShutdownSignal

ADDRESS = "http://127.0.0.1:7099"
APP = """
@app.route(route="x")
async def x(req: func.HttpRequest) -> str:
    return "x"
"""


def test_a_host_record_exists_while_its_host_runs(tmp_path: Path) -> None:
    """A running host is found by its record file; when the host ends, it deletes the file."""
    assert find_running_host(tmp_path) is None
    with record_running_host(tmp_path, ADDRESS):
        host = find_running_host(tmp_path)
        assert host is not None
        assert host.address == ADDRESS
    assert find_running_host(tmp_path) is None
    assert list((tmp_path / "hosts").iterdir()) == []


def test_only_the_owner_can_read_a_host_record(tmp_path: Path) -> None:
    """Other users can neither read nor lock the file that records a running host."""
    with record_running_host(tmp_path, ADDRESS):
        [record] = (tmp_path / "hosts").iterdir()
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700


def test_a_host_record_without_a_lock_is_ignored(tmp_path: Path) -> None:
    """The record file of a host is ignored if it is not locked, and the next host deletes it."""
    folder = tmp_path / "hosts"
    folder.mkdir()
    (folder / "0.json").write_text(json.dumps({"address": "http://127.0.0.1:1"}))
    assert find_running_host(tmp_path) is None
    with record_running_host(tmp_path, ADDRESS):
        host = find_running_host(tmp_path)
        assert host is not None
        assert host.address == ADDRESS
        assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "[]", "{}", "x"])
def test_a_host_record_without_an_address_is_ignored(tmp_path: Path, content: str) -> None:
    """The record file of a host is ignored if it is locked but contains no address."""
    with record_running_host(tmp_path, ADDRESS):
        [record] = (tmp_path / "hosts").iterdir()
        record.write_text(content)
        assert find_running_host(tmp_path) is None


def test_a_host_record_that_others_can_write_is_ignored(tmp_path: Path) -> None:
    """The record file of a host is ignored if other users can write it, or if it is a link."""
    with record_running_host(tmp_path, ADDRESS):
        [record] = (tmp_path / "hosts").iterdir()
        target = record.rename(tmp_path / "elsewhere.json")
        record.symlink_to(target)
        assert find_running_host(tmp_path) is None
        record.unlink()
        target.rename(record)
        assert find_running_host(tmp_path) is not None
        record.chmod(0o620)
        assert find_running_host(tmp_path) is None


def test_hosts_of_one_folder_have_separate_records(tmp_path: Path) -> None:
    """Two hosts of one folder have separate record files."""
    with record_running_host(tmp_path, ADDRESS), record_running_host(tmp_path, "http://127.0.0.1:7098"):
        assert len(list((tmp_path / "hosts").iterdir())) == 2
        assert find_running_host(tmp_path) is not None


def test_a_killed_host_is_not_found(start_host: Any, http: httpx.Client) -> None:
    """After kill -9, the record file of the host is ignored, and the next host replaces it."""
    first = start_host(APP)
    found = find_running_host(first.data_dir)
    assert found is not None
    assert found.address == first.url
    assert http.get(f"{found.address}/x").text == "x"
    first.kill()
    assert len(list((first.data_dir / "hosts").iterdir())) == 1
    assert find_running_host(first.data_dir) is None
    second = start_host(APP)
    found = find_running_host(second.data_dir)
    assert found is not None
    assert found.address == second.url
    assert second.terminate() == 0
    assert find_running_host(second.data_dir) is None


STAND_IN = """
import os, socket, sys, time
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
while os.path.exists(arguments["--data"] + ".hang"):
    time.sleep(0.01)
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
async def kusto_process(tmp_path: Path) -> AsyncIterator[KustoProcess]:
    kusto = KustoProcess(tmp_path, (sys.executable, "-c", STAND_IN), retention_days=366)
    yield kusto
    await kusto.stop(5)


def read_pids(tmp_path: Path) -> list[int]:
    return [int(line) for line in (tmp_path / "kusto.pids").read_text().split()]


async def wait_until_gone(pid: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110, ASYNC240  another process's end sets no event
            await asyncio.sleep(0.01)


async def test_a_killed_child_process_is_started_again_on_its_port(tmp_path: Path, kusto_process: KustoProcess) -> None:
    """If the child process is killed, it is started again at the same address."""
    address = await kusto_process.start_and_get_address()
    host, port = address.removeprefix("http://").split(":")
    stopping = ShutdownSignal()
    supervision = asyncio.create_task(kusto_process.supervise(stopping))
    os.kill(read_pids(tmp_path)[0], signal.SIGKILL)
    async with asyncio.timeout(DEADLINE):
        while len(read_pids(tmp_path)) < 2:  # noqa: ASYNC110  another process's file sets no event
            await asyncio.sleep(0.01)
        _, writer = await asyncio.open_connection(host, int(port))
    writer.close()
    stopping.set()
    await kusto_process.stop(5)
    await supervision


async def test_a_child_process_that_cannot_be_created_is_started_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If the operating system cannot create the child process again, the host continues and tries again."""
    program = tmp_path / "program"
    program.symlink_to(sys.executable)
    kusto = KustoProcess(tmp_path, (str(program), "-c", STAND_IN), retention_days=366)
    await kusto.start_and_get_address()
    stopping = ShutdownSignal()
    supervision = asyncio.create_task(kusto.supervise(stopping))
    program.unlink()
    os.kill(read_pids(tmp_path)[0], signal.SIGKILL)
    async with asyncio.timeout(DEADLINE):
        while "was not restarted" not in caplog.text:  # noqa: ASYNC110  a log line sets no event
            await asyncio.sleep(0.01)
        program.symlink_to(sys.executable)
        while len(read_pids(tmp_path)) < 2:  # noqa: ASYNC110  another process's file sets no event
            await asyncio.sleep(0.01)
    stopping.set()
    await kusto.stop(5)
    await supervision


async def test_a_child_process_that_hangs_at_its_restart_is_replaced(
    tmp_path: Path, kusto_process: KustoProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a restarted child process is not ready in time, it is killed, and another one is started."""
    await kusto_process.start_and_get_address()
    stopping = ShutdownSignal()
    supervision = asyncio.create_task(kusto_process.supervise(stopping))
    (tmp_path / "kusto.hang").touch()
    monkeypatch.setattr(processes, "START_SECONDS", 0.5)
    os.kill(read_pids(tmp_path)[0], signal.SIGKILL)
    async with asyncio.timeout(DEADLINE):
        while "was not restarted" not in caplog.text:  # noqa: ASYNC110  a log line sets no event
            await asyncio.sleep(0.01)
        monkeypatch.setattr(processes, "START_SECONDS", 60.0)
        (tmp_path / "kusto.hang").unlink()
        while len(read_pids(tmp_path)) < 2:  # noqa: ASYNC110  another process's file sets no event
            await asyncio.sleep(0.01)
    stopping.set()
    await kusto_process.stop(5)
    await supervision


async def test_stop_ends_the_child_process(tmp_path: Path, kusto_process: KustoProcess) -> None:
    """A stop ends the child process; a second stop has no effect."""
    await kusto_process.start_and_get_address()
    await kusto_process.stop(5)
    await wait_until_gone(read_pids(tmp_path)[0])
    await kusto_process.stop(5)


async def test_a_child_process_that_cannot_start_is_reported() -> None:
    """If the child process ends before it is ready, the start fails with the child's exit code."""
    with pytest.raises(StartError, match="ended with code 3"):
        await KustoProcess(
            Path("unused"), (sys.executable, "-c", "raise SystemExit(3)"), retention_days=1
        ).start_and_get_address()


async def test_announced_events_reach_the_child_process(
    kusto_process: KustoProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    """An announcement of new events reaches the child's standard input; without a child, it has no effect."""
    kusto_process.notify_process_of_new_hub_events()
    await kusto_process.start_and_get_address()
    stopping = ShutdownSignal()
    supervision = asyncio.create_task(kusto_process.supervise(stopping))
    kusto_process.notify_process_of_new_hub_events()
    async with asyncio.timeout(DEADLINE):
        while "woken" not in capsys.readouterr().err:  # noqa: ASYNC110  output of another process sets no event
            await asyncio.sleep(0.01)
    stopping.set()
    await kusto_process.stop(5)
    kusto_process.notify_process_of_new_hub_events()
    await supervision
