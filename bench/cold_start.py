"""Benchmark: time from the start of a new app process until its first reply, including the import of the app."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure
from bench.running import ROOT, run_service

RUNS = 7
FIRST = {"healthz": "/healthz", "query_list": "/oi-api/warm-queries"}


def measure_cold_start() -> Iterator[Figure]:
    """Measure the time until a new process sends its first reply, alternately for each URL path.

    All processes use the same stores and the same query engine. The figures have no bounds.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        with run_service(folder=Path(folder)) as running:
            token = running.token
        with _run_query_engine_and_yield_url(Path(folder)) as address:
            environment = {**os.environ, "DATA_DIR": folder, "KUSTO_URI": address, "BENCH_TOKEN": token}
            runs = [
                {name: _measure_import_and_first_reply_seconds(path, environment) for name, path in FIRST.items()}
                for _ in range(RUNS)
            ]
    for name in FIRST:
        reply, imported = (statistics.median(run[name][part] for run in runs) for part in ("reply", "import"))
        yield Figure(f"cold_first_{name}", reply, "s", detail={"importSeconds": round(imported, 4), "runs": RUNS})


def _measure_import_and_first_reply_seconds(url_path: str, environment: Mapping[str, str]) -> dict[str, float]:
    """Import the app in a new process, and request a path; return the seconds until the import and the reply, by name.

    The result also contains the HTTP status of the reply.

    Raises:
        RuntimeError: the status of the reply is not 200.
    """
    command = [sys.executable, "-m", "bench.first_reply", url_path]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(done.stdout)
    if times["status"] != 200:
        raise RuntimeError(f"{url_path} returned status {times['status']} instead of 200: {done.stderr}")
    return times


@contextmanager
def _run_query_engine_and_yield_url(data_dir: Path) -> Iterator[str]:
    """Context manager: start the query engine on the data folder of a stopped service; yield the URL of the engine."""
    data = ["--data", str(data_dir / "kusto"), "--hub", str(data_dir / "hub.sqlite"), "--port", "0"]
    command = [sys.executable, "-m", "emulators.kusto", *data]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101  it is a pipe
            yield process.stdout.readline().removeprefix("ready ").strip()
        finally:
            process.terminate()
