"""Fixtures that run the deployment package locally, with one process for each fake Azure service."""

import json
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import IO, Any

import pytest

from functions.live_stream import CONNECT, CONNECTED, DISCONNECTED, ROUTE
from shared.commands import workspace
from tests.azurite.running import find_missing_requirement
from tests.emulators.kusto.endpoints import end_process
from tests.emulators.web_pubsub.serving import KEY
from tests.key_vault.server import TOKEN
from tests.service.local_service import ROOT
from tests.unit.functions.azure_plant import ADMIN, EDITOR, QUALITY, SAMPLE, Plant
from tests.unit.shared.wiring.azure import DATABASE, deployment

PACKAGE = ROOT / "dist" / "app.zip"
MEMBERS = (ADMIN, EDITOR, QUALITY)


class Cloud:
    """Environment of the deployed package: fakes for stores, query engine, hubs and Web PubSub.

    Args:
        plant: stores and query engine.
        folder: folder of the unpacked package.
        data_dir: folder in which the host stores hubs and orchestrations.
        message_service: URL of the Web PubSub emulator.
        port: port of the app.
    """

    def __init__(self, plant: Plant, folder: Path, data_dir: Path, message_service: str, port: int) -> None:
        self._plant = plant
        self._folder = folder
        self._data_dir = data_dir
        self._message_service = message_service
        self._port = port
        self.log = data_dir.with_suffix(".log")

    @property
    def url(self) -> str:
        """URL of the app."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def folder(self) -> Path:
        """Folder of the unpacked package."""
        return self._folder

    def create_keys(self) -> dict[str, str]:
        """Apply the sample document from the command line and return an API key for each member."""
        return {member: self._read_key(member) for member in MEMBERS}

    def _read_key(self, member: str) -> str:
        arguments = ["apply", str(SAMPLE), "--as", ADMIN, "--issue-key", member]
        with redirect_stdout(StringIO()) as printed:
            assert workspace.main(arguments, self._plant.deployment.services) == workspace.DONE
        return printed.getvalue().strip()

    def start(self) -> "App":
        """Start the host and the package's worker; return them when they are ready."""
        deployed = self._plant.deployment
        options = {
            "folder": str(self._folder),
            "cosmosKey": deployed.cosmos.key,
            "blobs": deployed.blobs.connection_string,
            "vaultToken": TOKEN,
            "vaultCertificate": deployed.vault.options["connection_verify"],
        }
        settings = {
            "STORES": "azure",
            "COSMOS_ENDPOINT": deployed.cosmos.endpoint,
            "COSMOS_DATABASE": DATABASE,
            "KEY_VAULT_URI": deployed.vault.uri,
            "KUSTO_URI": deployed.kusto_uri,
            "WEB_PUBSUB_ENDPOINT": self._message_service,
            "WEB_PUBSUB_ACCESS_KEY": KEY,
            "CHECKPOINT_SCHEDULE": "*/1 * * * * *",
        }
        command = [sys.executable, "-m", "tests.package.host", json.dumps(options), "--app", str(self._folder)]
        command += ["--data-dir", str(self._data_dir), "--port", str(self._port), "--workspace-file", ""]
        with self.log.open("a") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | settings, stdout=subprocess.PIPE, stderr=log, text=True
            )
        return App(process, self.log)


class App:
    """Host process with the deployed app, which ends its worker when it stops."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready "):
            process.kill()
            process.communicate()
            raise AssertionError(f"the host has ended before it was ready; end of its log: {log.read_text()[-5000:]}")

    def stop(self) -> dict[str, Any]:
        """Stop host and worker; return the worker's report of its modules."""
        self._process.terminate()
        printed, _ = self._process.communicate(timeout=30)
        assert self._process.returncode == 0
        report: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return report


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[Cloud]:
    """Return the environment with the package in a new folder."""
    assert PACKAGE.is_file(), f"{PACKAGE} is missing; run make package"
    assert not find_missing_requirement(), find_missing_requirement()
    folder, data_dir = tmp_path / "package", tmp_path / "data"
    data_dir.mkdir()
    with zipfile.ZipFile(PACKAGE) as archive:
        archive.extractall(folder)
    async with deployment(tmp_path / "blobs") as deployed:
        plant = Plant(deployed, data_dir)
        await plant.start()
        with ExitStack() as ends:
            ends.callback(end_process, plant.kusto.process)
            port = _find_free_port()
            message_service = ends.enter_context(_run_web_pubsub(f"http://127.0.0.1:{port}/{ROUTE}/events"))
            yield Cloud(plant, folder, data_dir, message_service, port)


@contextmanager
def _run_web_pubsub(handler: str) -> Iterator[str]:
    """Run the Web PubSub emulator as a process and yield its URL."""
    command = [sys.executable, "-m", "emulators.web_pubsub", "--port", "0", "--access-key", KEY, "--anonymous"]
    command += ["--events", CONNECT, CONNECTED, DISCONNECTED, "--upstream", handler]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield _read_address(process.stdout)
        finally:
            process.terminate()


def _read_address(output: IO[str]) -> str:
    line = output.readline()
    assert line.startswith("ready http://"), line
    return line.split()[1]


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
