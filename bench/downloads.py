"""Benchmark: downloads of archived telemetry compared with DuckDB's COPY, and their effect on the service."""

import json
import os
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from bench.figures import Figure
from bench.memory import read_resident_mb
from bench.running import RunningService, call_service, run_service
from shared.cold_data.engine import MEMORY_PER_THREAD_MB
from shared.cold_data.names import SequenceRange, build_batch_blob_name, build_hour_folder
from shared.cold_data.tables import BlobSummary

ROWS = int(os.environ.get("DOWNLOAD_ROWS", "10000000"))
CONNECTION = "line"
HOURS = 24
LONGEST = 200
"""Maximum bytes of a row's long texts."""
START = datetime(2026, 1, 5, tzinfo=UTC)
LEAST_RATIO = 0.6
MOST_GROWTH_MB = 200 + MEMORY_PER_THREAD_MB * max(2, min(4, os.cpu_count() or 1))
"""A download took 297 to 303 MB above idle on two processors; the archive's engine gets memory for each thread."""
MOST_P99_MS = 250
PROBE_SECONDS = 0.02
PAYLOAD = (
    """'{"pressure":' || (4 + n % 97 / 100) || ',"temperature":' || (20 + n % 53 / 10) || ',"running":' """
    """|| (n % 7 <> 0) || ',"motor":{"rpm":' || (n * 7919 % 3000) || '}}'"""
)
COPIES = {
    "parquet": 'SELECT timestamp, connection, device_id AS "deviceId", message_id AS "messageId", payload FROM archive',
    "csv": """SELECT strftime(timestamp AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') AS timestamp, connection,
        device_id, message_id, payload ->> '$.motor.rpm' AS "motor.rpm", payload ->> '$.pressure' AS pressure,
        payload ->> '$.running' AS running, payload ->> '$.temperature' AS temperature FROM archive""",
}
OPTIONS = {"parquet": "FORMAT parquet, COMPRESSION zstd", "csv": "FORMAT csv, HEADER"}


def measure_downloads() -> Iterator[Figure]:
    """Create an archive; compare its download from the service with a DuckDB copy of the same rows.

    Memory and response times of the service during the download are also measured.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        archive = folder / "data" / "blobs" / "cold"
        fill_archive(archive)
        with run_service(folder=folder / "data") as running:
            idle = read_resident_mb(running.pid)
            for form in COPIES:
                copied = measure_duckdb_copy_seconds(archive, folder / "copied", form)
                probe = LoadMonitor(running)
                measure_download_seconds(running, form, 1)  # warm-up, which is not measured
                with probe:
                    seconds = measure_download_seconds(running, form, HOURS)
                detail = {"rows": ROWS, "duckdbSeconds": round(copied, 2), "seconds": round(seconds, 2)}
                yield Figure(f"download_{form}_ratio", copied / seconds, "ratio", at_least=LEAST_RATIO, detail=detail)
                grown = probe.peak_mb - idle
                yield Figure(f"download_{form}_memory", grown, "MB", at_most=MOST_GROWTH_MB, detail={"idleMb": idle})
                yield Figure(f"download_{form}_healthz_p99", probe.healthz_p99_ms, "ms", at_most=MOST_P99_MS)


def fill_archive(archive_folder: Path) -> None:
    """Write one archive blob (a Parquet file) for each hour; each row's content is computed from its row number."""
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    an_hour = ROWS // HOURS
    for hour in range(HOURS):
        begin = START + timedelta(hours=hour)
        first, last = hour * an_hour, (hour + 1) * an_hour - 1
        blob = archive_folder / (
            build_hour_folder(CONNECTION, begin) + build_batch_blob_name(SequenceRange("0", first, last))
        )
        blob.parent.mkdir(parents=True)
        enqueued = int(begin.timestamp() * 1_000_000)
        summary = BlobSummary(an_hour, 0, enqueued, enqueued, longest=LONGEST).to_json().replace("'", "''")
        engine.execute(
            f"""COPY (SELECT make_timestamptz({enqueued} + (n - {first}) * {3_600_000_000 // an_hour}) AS timestamp,
                '{CONNECTION}' AS connection, 'd-' || n % 20 AS device_id, 'm-' || n AS message_id,
                {PAYLOAD} AS payload, '{{}}' AS headers, '["hall"]' AS surfaces, '0' AS "partition", n AS "sequence",
                make_timestamptz({enqueued}) AS enqueued_at
            FROM range({first}, {last + 1}) numbers(n)) TO '{blob}'
            (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{oi: '{summary}'}})"""  # noqa: S608  our own numbers
        )
    engine.close()


def measure_duckdb_copy_seconds(archive_folder: Path, target_file: Path, file_format: str) -> float:
    """Return the seconds that DuckDB's COPY needs to write all rows of the archive to a file in the given format."""
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    source = f"read_parquet('{archive_folder}/**/*.parquet')"
    started = time.perf_counter()
    engine.execute(
        f"COPY ({COPIES[file_format].replace('archive', source)}) TO '{target_file}' ({OPTIONS[file_format]})"
    )
    seconds = time.perf_counter() - started
    engine.close()
    target_file.unlink()
    return seconds


def measure_download_seconds(running: RunningService, file_format: str, hours: int) -> float:
    """Download the first hours of the archive and return the seconds until the download job is completed.

    Raises:
        RuntimeError: the job failed, or rows are missing.
    """
    body = {
        "format": file_format,
        "dateRange": {"start": START.isoformat(), "end": (START + timedelta(hours=hours)).isoformat()},
    }
    started = time.perf_counter()
    job: Any = call_service(running, f"/oi-api/downloads/data-connections/{CONNECTION}", body)
    while job["status"] in {"pending", "running"}:
        time.sleep(0.05)
        job = call_service(running, job["statusUrl"])
    seconds = time.perf_counter() - started
    if job["status"] != "completed" or job["progress"]["rows"] != ROWS // HOURS * hours:
        raise RuntimeError(f"the download job failed, or its file does not have all rows: {json.dumps(job)[:500]}")
    return seconds


class LoadMonitor:
    """Context manager that measures a service during a ``with`` block: memory, and response times of ``/healthz``."""

    def __init__(self, running: RunningService) -> None:
        self._running = running
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._poll_healthz_until_end)
        self._spent: list[float] = []
        self.peak_mb = 0.0

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    @property
    def healthz_p99_ms(self) -> float:
        """99th percentile of the measured response times of ``/healthz`` in milliseconds."""
        return statistics.quantiles(self._spent, n=100)[-1] * 1000

    def _poll_healthz_until_end(self) -> None:
        """Until the ``with`` block ends, call ``/healthz`` repeatedly and record its times and the peak memory."""
        while not self._ends.wait(PROBE_SECONDS):
            started = time.perf_counter()
            with urllib.request.urlopen(f"{self._running.url}/healthz", timeout=60) as reply:  # noqa: S310  our own
                reply.read()
            self._spent.append(time.perf_counter() - started)
            self.peak_mb = max(self.peak_mb, read_resident_mb(self._running.pid))
