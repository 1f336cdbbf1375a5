"""Benchmark: import of a CSV file, compared with DuckDB's ``read_csv``.

The import is also measured after a restart, and with the same file again.
"""

import os
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from bench.downloads import LoadMonitor
from bench.figures import Figure
from bench.memory import read_resident_mb
from bench.running import RunningService, call_service, run_service

ROWS = int(os.environ.get("IMPORT_ROWS", "10000000"))
CONNECTION = "line"
LEAST_RATIO = 0.5
MOST_GROWTH_MB = 400
MOST_P99_MS = 250
POLL_SECONDS = 0.2
MAPPING = {"timestamp": "timestamp", "device": "device"}
SOURCE = """
SELECT strftime(TIMESTAMP '2025-01-01' + INTERVAL (n // 100) SECOND, '%Y-%m-%dT%H:%M:%SZ') AS timestamp,
    'pump-' || (n % 100) AS device, round(20 + sin(n / 1000.0) * 5, 3) AS temperature,
    round(3 + (n * 7919 % 10007) / 10007, 4) AS pressure, (n * 7919) % 1500 AS speed,
    CASE WHEN n % 10 < 8 THEN 'running' ELSE 'idle' END AS state
FROM range({rows}) numbers(n)
"""
TABLE = """
CREATE TABLE {name} AS SELECT CAST(timestamp AS TIMESTAMP) AS "Timestamp", 'line' AS "ConnectionLookup",
    '[]' AS "SurfaceLookups", device AS "DeviceId",
    sha256(concat_ws('|', device, timestamp, temperature, pressure, speed, state))[:32] AS "MessageId",
    to_json({{pressure: pressure, speed: speed, state: state, temperature: temperature}}) AS "Payload"
FROM read_csv('{file}')
"""
"""SQL statement that creates a table with the columns of the KQL table ``Telemetry``."""


def measure_imports() -> Iterator[Figure]:
    """Compare the import of a CSV file with DuckDB; check that a restart loses no row and a second import adds none."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        file = folder / "rows.csv"
        duckdb.execute(f"COPY ({SOURCE.format(rows=ROWS)}) TO '{file}' (FORMAT csv, HEADER)")
        plain = measure_duckdb_read_seconds(folder, f"CREATE TABLE plain AS SELECT * FROM read_csv('{file}')")  # noqa: S608  our own
        same = measure_duckdb_read_seconds(folder, TABLE.format(name="same", file=file))
        with run_service(folder=folder / "data") as running:
            first = start_import_and_get_status_url(running, file)
            wait_for_read_rows(running, first, ROWS // 10)
        with run_service(folder=folder / "data") as running:
            restarted = wait_for_completed_import(running, first)
            again = run_import_and_get_status(running, file)
        lost = ROWS - restarted["accepted"]
        yield Figure(
            "import_rows_lost_by_restart", lost, "rows", at_most=0, detail=get_row_counts_by_outcome(restarted)
        )
        yield Figure(
            "import_repeated_rows", again["accepted"], "rows", at_most=0, detail=get_row_counts_by_outcome(again)
        )
        with run_service(folder=folder / "fresh") as running:
            idle = read_resident_mb(running.pid)
            probe = LoadMonitor(running)
            with probe:
                started = time.perf_counter()
                run_import_and_get_status(running, file)
                seconds = time.perf_counter() - started
        detail = {
            "rows": ROWS,
            "seconds": round(seconds, 2),
            "sameColumnsSeconds": round(same, 2),
            "plainSeconds": round(plain, 2),
        }
        yield Figure("import_ratio", same / seconds, "ratio", at_least=LEAST_RATIO, detail=detail)
        yield Figure("import_ratio_to_plain_read", plain / seconds, "ratio", detail=detail)
        grown = probe.peak_mb - idle
        yield Figure("import_memory", grown, "MB", at_most=MOST_GROWTH_MB, detail={"idleMb": idle})
        yield Figure("import_healthz_p99", probe.healthz_p99_ms, "ms", at_most=MOST_P99_MS)


def measure_duckdb_read_seconds(folder: Path, read_sql: str) -> float:
    """Return the seconds that DuckDB needs for a statement that reads the CSV file into a table on disk."""
    engine = duckdb.connect(str(folder / "read.duckdb"))
    started = time.perf_counter()
    engine.execute(read_sql)
    engine.execute("CHECKPOINT")
    seconds = time.perf_counter() - started
    engine.close()
    return seconds


def start_import_and_get_status_url(running: RunningService, csv_file: Path, connection: str = CONNECTION) -> str:
    """Create an import job, upload the file, start the job, and return its status URL."""
    body = {"format": "csv", "fileName": csv_file.name, "bytes": csv_file.stat().st_size, "mapping": MAPPING}
    made: Any = call_service(running, f"/oi-api/imports/data-connections/{connection}", body)
    headers = {**made["uploadHeaders"], "Content-Length": str(csv_file.stat().st_size)}
    with csv_file.open("rb") as content:
        request = urllib.request.Request(made["uploadUrl"], data=content, headers=headers, method="PUT")  # noqa: S310  our own
        with urllib.request.urlopen(request, timeout=600):  # noqa: S310  our own
            pass
    call_service(running, f"{made['statusUrl']}/start", {})
    return str(made["statusUrl"])


def wait_for_read_rows(running: RunningService, status_url: str, row_count: int) -> None:
    """Wait until an import job has read at least ``row_count`` rows of its file."""
    while True:
        job: Any = call_service(running, status_url)
        if job["progress"]["rows"] >= row_count:
            return
        time.sleep(POLL_SECONDS)


def wait_for_completed_import(running: RunningService, status_url: str) -> dict[str, Any]:
    """Wait until an import job is completed; return its status document.

    Raises:
        RuntimeError: the import failed.
    """
    while True:
        job: Any = call_service(running, status_url)
        if job["status"] == "completed":
            return dict(job)
        if job["status"] not in {"pending", "running"}:
            raise RuntimeError(f"the import ended as {job['status']}: {job['error']}")
        time.sleep(POLL_SECONDS)


def run_import_and_get_status(running: RunningService, csv_file: Path, connection: str = CONNECTION) -> dict[str, Any]:
    """Import the CSV file through the service; return the status document of the completed job."""
    return wait_for_completed_import(running, start_import_and_get_status_url(running, csv_file, connection))


def get_row_counts_by_outcome(job_status: dict[str, Any]) -> dict[str, int]:
    """Return the numbers of accepted, duplicate and rejected rows in the status document of an import job."""
    return {name: job_status[name] for name in ("accepted", "duplicates", "rejected")}
