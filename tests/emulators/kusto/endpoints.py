"""Helpers that start the Kusto emulator as a separate process, and query it with the official client."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.kusto.data import ClientRequestProperties, KustoClient, KustoConnectionStringBuilder
from azure.kusto.data.exceptions import KustoApiError, KustoServiceError

from tests.plain_http import NO_TLS

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 60.0


class Endpoint:
    """Running Kusto emulator, with helpers that send queries to it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("ready http://127.0.0.1:"), self.read_log()
        self.url = line.split()[1]

    def read_log(self) -> str:
        """Return the log of the emulator."""
        return self._log.read_text()

    def read_statistics(self) -> dict[str, Any]:
        """Request and return the statistics of the emulator."""
        reply = httpx.get(f"{self.url}/stats", timeout=30, verify=NO_TLS).raise_for_status()
        stats: dict[str, Any] = reply.json()
        return stats

    def wait_for_statistics(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the statistics meet a condition and return them."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition(stats := self.read_statistics()):
            assert time.monotonic() < deadline, f"{stats}\n{self.read_log()}"
            time.sleep(0.02)
        return stats

    def query_table(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> Any:
        """Execute a query and return its primary table."""
        properties = ClientRequestProperties()
        for name, value in (parameters or {}).items():
            properties.set_parameter(name, value)
        for name, value in options.items():
            properties.set_option(name, value)
        with KustoClient(KustoConnectionStringBuilder.with_no_authentication(self.url)) as client:
            return client.execute_query("Telemetry", text, properties).primary_results[0]

    def query_rows(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> list[list[Any]]:
        """Execute a query and return the rows of its primary table, with values as the reply has them."""
        rows: list[list[Any]] = self.query_table(text, parameters, **options).raw_rows
        return rows

    def query_error(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> KustoServiceError:
        """Execute an invalid query and return the error that the client raises."""
        with pytest.raises(KustoServiceError) as raised:
            self.query_rows(text, parameters, **options)
        return raised.value

    def query_error_code(self, text: str, parameters: dict[str, Any] | None = None, **options: Any) -> str:
        """Execute an invalid query and return the error code."""
        error = self.query_error(text, parameters, **options)
        assert isinstance(error, KustoApiError), error
        return str(error.get_api_error().code)


def start_emulator(log: Path, *arguments: str, stdin: int | None = subprocess.DEVNULL) -> Endpoint:
    """Start a Kusto emulator on a free port; the caller must end its process."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "emulators.kusto", "--port", "0", *arguments],
            cwd=ROOT,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        return Endpoint(process, log)
    except BaseException:
        end_process(process)
        raise


def end_process(process: "subprocess.Popen[bytes]") -> int:
    """End an emulator with SIGTERM, or with SIGKILL after 15 s, and return its exit status."""
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
