"""Fixtures that start hosts with small function apps in temporary folders."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.plain_http import NO_TLS

ROOT = Path(__file__).parents[3]
PREAMBLE = """
import asyncio, json, os, pathlib, typing
import azure.functions as func
app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
DATA = pathlib.Path(os.environ["DATA_DIR"])
def record(entry):
    with open(DATA / "record.jsonl", "a") as file:
        file.write(json.dumps(entry, default=str) + "\\n")
"""
NO_KUSTO = {"KUSTO_URI": "http://127.0.0.1:1"}
_DEADLINE = 30.0


class RunningHost:
    """Host process with its address and the records that its functions write."""

    def __init__(self, process: "subprocess.Popen[str]", data_dir: Path, log: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self._log = log
        self.url = ""

    def wait_until_ready(self) -> None:
        """Wait until the host prints its ready line, and store the address in it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready http://"), self.read_log()
        self.url = line.removeprefix("ready ").strip()

    def read_log(self) -> str:
        """Return the standard error of the host."""
        return self._log.read_text()

    def read_records(self) -> list[Any]:
        """Return the records that the host's functions have written."""
        path = self.data_dir / "record.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true; fail if the host ends first."""
        deadline = time.monotonic() + _DEADLINE
        while not condition():
            assert time.monotonic() < deadline, f"{self.read_records()}\n{self.read_log()}"
            assert self.process.poll() is None, self.read_log()
            time.sleep(0.01)

    def terminate(self) -> int:
        """Send SIGTERM to the host and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=_DEADLINE)

    def kill(self) -> None:
        """Kill the host."""
        self.process.kill()
        self.process.wait(timeout=_DEADLINE)


type StartHost = Callable[..., RunningHost]


class HostStarter:
    """Starter of hosts in one folder.

    Args:
        folder: folder of the app, the data directory and the logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hosts: list[RunningHost] = []

    def start(
        self,
        source: str,
        *options: str,
        port: int = 0,
        batch: int = 100,
        prefix: str = "",
        ready: bool = True,
        stdout: int = subprocess.PIPE,
        **environment: str,
    ) -> RunningHost:
        """Start a host with the functions in a source text."""
        app = self._folder / "app"
        app.mkdir(exist_ok=True)
        (app / "function_app.py").write_text(PREAMBLE + source)
        extensions = {"http": {"routePrefix": prefix}, "eventHubs": {"maxEventBatchSize": batch}}
        (app / "host.json").write_text(json.dumps({"version": "2.0", "extensions": extensions}))
        log = self._folder / f"host-{len(self._hosts)}.log"
        command = [sys.executable, "-m", "local", "--app", str(app), "--port", str(port)]
        command += ["--data-dir", str(self._folder / "data"), "--workspace-file", "", *options]
        with log.open("w") as stderr:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | NO_KUSTO | environment,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )
        self._hosts.append(RunningHost(process, self._folder / "data", log))
        if ready:
            self._hosts[-1].wait_until_ready()
        return self._hosts[-1]

    def kill_hosts(self) -> None:
        """Kill the hosts that still run."""
        for host in self._hosts:
            if host.process.poll() is None:
                host.kill()
            if host.process.stdout is not None:
                host.process.stdout.close()


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    """Return a function that starts hosts; after the test, running hosts are killed."""
    starter = HostStarter(tmp_path)
    yield starter.start
    starter.kill_hosts()


@pytest.fixture(scope="module")
def start_module_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartHost]:
    """Return a function that starts hosts for the tests of a module."""
    starter = HostStarter(tmp_path_factory.mktemp("host"))
    yield starter.start
    starter.kill_hosts()


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=_DEADLINE, trust_env=False, verify=NO_TLS) as client:
        yield client
