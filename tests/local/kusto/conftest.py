"""Starts the real endpoint as its own process over small folders of Parquet files, and asks it through the real client."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from azure.kusto.data import ClientRequestProperties, KustoClient, KustoConnectionStringBuilder
from azure.kusto.data.exceptions import KustoApiError, KustoServiceError

ROOT = Path(__file__).parents[3]
START = datetime(2026, 1, 1)  # noqa: DTZ001  Parquet keeps instants without a zone
ROWS = 2000
DEADLINE_SECONDS = 60.0


class Endpoint:
    """A running endpoint and its address."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("ready http://127.0.0.1:"), self.log()
        self.url = line.split()[1]

    def log(self) -> str:
        """Return what the endpoint wrote to standard error."""
        return self._log.read_text()

    def stats(self) -> dict[str, Any]:
        """Return the endpoint's counters."""
        answer: dict[str, Any] = httpx.get(f"{self.url}/stats", timeout=30).raise_for_status().json()
        return answer

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the counters meet a condition and return them."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition(stats := self.stats()):
            assert time.monotonic() < deadline, f"{stats}\n{self.log()}"
            time.sleep(0.02)
        return stats

    def table(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> Any:
        """Return the primary table of a query's answer."""
        properties = ClientRequestProperties()
        for name, value in (parameters or {}).items():
            properties.set_parameter(name, value)
        for name, value in options.items():
            properties.set_option(name, value)
        with KustoClient(KustoConnectionStringBuilder.with_no_authentication(self.url)) as client:
            return client.execute_query("Telemetry", text, properties).primary_results[0]

    def rows(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> list[list[Any]]:
        """Return the rows of a query's answer as they stand on the wire."""
        rows: list[list[Any]] = self.table(text, parameters, **options).raw_rows
        return rows

    def error(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> KustoServiceError:
        """Return the error that the client raises for a query."""
        with pytest.raises(KustoServiceError) as raised:
            self.rows(text, parameters, **options)
        return raised.value

    def code(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> str:
        """Return the error code of a refused query."""
        error = self.error(text, parameters, **options)
        assert isinstance(error, KustoApiError), error
        return str(error.get_api_error().code)


def start(log: Path, *arguments: str, stdin: int | None = subprocess.DEVNULL) -> Endpoint:
    """Start an endpoint on a free port; the caller ends it."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "local.kusto", "--port", "0", *arguments],
            cwd=ROOT,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        return Endpoint(process, log)
    except BaseException:
        end(process)
        raise


def end(process: "subprocess.Popen[bytes]") -> int:
    """End a process with SIGTERM, at last with SIGKILL, and return its exit status."""
    process.terminate()
    try:
        status = process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    return status


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables Telemetry and Devices."""
    path = tmp_path_factory.mktemp("parquet")
    index = range(ROWS)
    payloads = [f'{{"temp": {20 + i % 10}.5, "motor": {{"rpm": {1000 + i}}}, "tags": ["t{i % 3}"]}}' for i in index]
    telemetry = {
        "Timestamp": pa.array([START + timedelta(minutes=i) for i in index], pa.timestamp("us")),
        "DeviceId": [f"dev-{i % 20:02d}" for i in index],
        "Number": pa.array(index, pa.int64()),
        "Value": pa.array([None if i % 100 == 0 else i / 4 for i in index], pa.float64()),
        "Running": [i % 2 == 0 for i in index],
        "Payload": payloads,
        "Note": ["{not json" if i == ROWS - 1 else "{}" for i in index],
    }
    pq.write_table(pa.table(telemetry), path / "Telemetry.parquet")
    devices = {"DeviceId": [f"dev-{i:02d}" for i in range(5)], "Model": ["A", "B", "A", "B", "A"]}
    pq.write_table(pa.table(devices), path / "Devices.parquet")
    (path / "secret.txt").write_text("hidden")
    return path


@pytest.fixture(scope="session")
def endpoint(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One endpoint over the folder, for every test that leaves it as it was."""
    running = start(tmp_path_factory.mktemp("log") / "stderr", "--data", str(folder), "--memory-limit", "500MB")
    yield running
    assert end(running.process) == 0, running.log()
