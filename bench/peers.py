"""Benchmark: requests per second that read 100 of 200,000 rows, compared with the tools datasette and roapi."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pyarrow as pa
from pyarrow import parquet

from bench.figures import Figure, ToolMissingError
from bench.running import ROOT, RunningService, measure_replies_per_second, run_service

STORED, ROWS = 200_000, 100
CONNECTIONS, SECONDS, ROUNDS = 16, 3.0, 3
PEERS = ROOT / ".venv-bench" / "bin"
START_SECONDS = 60
DATASETTE_PORT, ROAPI_PORT = 8391, 8392
SQL = "SELECT Timestamp, DeviceId, Payload FROM {table} WHERE DeviceId = 'd-03' ORDER BY Timestamp DESC LIMIT 100"
INDEXED = "IndexedTelemetry"
"""Copy of the table with the index that a user of datasette would create for this query."""


def measure_peers() -> Iterator[Figure]:
    """Alternately measure the request rates of the service, datasette and roapi with equal rows; compare the medians.

    Raises:
        ToolMissingError: datasette or roapi is not installed.
    """
    for name in ("datasette", "roapi"):
        if not (PEERS / name).is_file():
            raise ToolMissingError(
                f"the program {name} is not installed; make bench installs it from requirements/bench.txt"
            )
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as made, ExitStack() as stack:
        folder = Path(made)
        _write_rows_for_all_servers(folder)
        running = stack.enter_context(_run_service(folder))
        stack.enter_context(_run_datasette(folder))
        stack.enter_context(_run_roapi(folder))
        urls = _build_urls_by_server(running)
        rates: dict[str, list[float]] = {name: [] for name in urls}
        for _ in range(ROUNDS):
            for name, url in urls.items():
                headers = running.headers if url.startswith(running.url) else {}
                rates[name].append(
                    measure_replies_per_second(url, headers, connection_count=CONNECTIONS, duration_seconds=SECONDS)
                )
    middle = {name: sorted(values)[len(values) // 2] for name, values in rates.items()}
    detail = {name: round(value) for name, value in middle.items()}
    yield Figure("uncached_to_datasette", middle["service"] / middle["datasette"], "ratio", at_least=1, detail=detail)
    indexed = middle["service"] / middle["datasetteIndexed"]
    yield Figure("uncached_to_indexed_datasette", indexed, "ratio", detail=detail)
    yield Figure("cached_to_roapi", middle["serviceCached"] / middle["roapi"], "ratio", at_least=1, detail=detail)


def _build_urls_by_server(running: RunningService) -> dict[str, str]:
    query = urlencode({"filter[DeviceId]": "'d-03'", "sort": "-Timestamp", "limit": ROWS})
    return {
        "service": f"{running.url}/oi-api/warm-queries/of-device?limit={ROWS}",
        "serviceCached": f"{running.url}/oi-api/warm-queries/of-device-kept?limit={ROWS}",
        "datasette": _build_datasette_url("Telemetry"),
        "datasetteIndexed": _build_datasette_url(INDEXED),
        "roapi": f"http://127.0.0.1:{ROAPI_PORT}/api/tables/Telemetry?{query}",
    }


def _build_datasette_url(table_name: str) -> str:
    query = urlencode({"sql": SQL.format(table=table_name), "_shape": "objects"})
    return f"http://127.0.0.1:{DATASETTE_PORT}/rows.json?{query}"


def _write_rows_for_all_servers(folder: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    columns = {
        "Timestamp": [start + timedelta(seconds=number) for number in range(STORED)],
        "ConnectionLookup": ["line"] * STORED,
        "SurfaceLookups": ['["hall"]'] * STORED,
        "DeviceId": [f"d-{number % 20:02d}" for number in range(STORED)],
        "MessageId": [f"m-{number}" for number in range(STORED)],
        "Payload": [
            json.dumps({"pressure": 4 + number % 97 / 100, "temperature": 20 + number % 53 / 10})
            for number in range(STORED)
        ],
    }
    (folder / "kusto").mkdir()
    parquet.write_table(pa.table(columns), folder / "kusto" / "Telemetry.parquet")
    with sqlite3.connect(folder / "rows.db") as database:
        database.execute(
            "CREATE TABLE Telemetry (Timestamp, ConnectionLookup, SurfaceLookups, DeviceId, MessageId, Payload)"
        )
        texts = [instant.isoformat() for instant in columns["Timestamp"]]  # type: ignore[attr-defined]
        rows = zip(texts, *list(columns.values())[1:], strict=True)
        database.executemany("INSERT INTO Telemetry VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute(f"CREATE TABLE {INDEXED} AS SELECT * FROM Telemetry")  # noqa: S608  a constant
        database.execute(f"CREATE INDEX device ON {INDEXED} (DeviceId, Timestamp)")
    database.close()


@contextmanager
def _run_service(folder: Path) -> Iterator[RunningService]:
    command = [sys.executable, "-m", "emulators.kusto", "--data", str(folder / "kusto"), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as kusto:
        try:
            assert kusto.stdout is not None  # noqa: S101  it is a pipe
            with run_service({"KUSTO_URI": kusto.stdout.readline().removeprefix("ready ").strip()}) as running:
                yield running
        finally:
            kusto.terminate()


@contextmanager
def _run_datasette(folder: Path) -> Iterator[None]:
    address = f"http://127.0.0.1:{DATASETTE_PORT}/-/versions.json"
    # Without the index, a query takes longer than the default limit of a second if the machine is busy.
    settings = ["--setting", "default_cache_ttl", "0", "--setting", "sql_time_limit_ms", "60000"]
    arguments = ["datasette", str(folder / "rows.db"), "-p", str(DATASETTE_PORT), *settings]
    with _run_peer_tool(arguments, address):
        yield


@contextmanager
def _run_roapi(folder: Path) -> Iterator[None]:
    table = f"Telemetry={folder / 'kusto' / 'Telemetry.parquet'}"
    arguments = ["roapi", "--table", table, "--addr-http", f"127.0.0.1:{ROAPI_PORT}"]
    with _run_peer_tool(arguments, f"http://127.0.0.1:{ROAPI_PORT}/api/schema"):
        yield


@contextmanager
def _run_peer_tool(arguments: list[str], ready_url: str) -> Iterator[None]:
    environment = {**os.environ, "RUST_LOG": "error"}
    command = [str(PEERS / arguments[0]), *arguments[1:]]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(ready_url)
            yield
        finally:
            process.terminate()


def _wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  our own
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
