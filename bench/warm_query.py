"""Overhead of the service over the engine's own time on a warm query of 100 rows."""

import json
import statistics
import time
from collections.abc import Iterator

from bench.figures import Figure
from bench.ingest import build_messages, wait_for_rows
from bench.running import RunningService, call, post_all, run_service

REQUESTS = 300
ROWS = 100
STORED = 20_000


def warm_query() -> Iterator[Figure]:
    """Send requests one by one and compare the total time with the engine's reported time."""
    with run_service() as running:
        bodies = [json.dumps(batch).encode() for batch in build_messages(STORED, 500)]
        post_all(f"{running.url}/oi-api/telemetry/line", running.headers, bodies, 4)
        wait_for_rows(running, STORED)
        for _ in range(20):
            _measure_request(running)
        times = [_measure_request(running) for _ in range(REQUESTS)]
    whole = statistics.median(total for total, _ in times)
    engine = statistics.median(own for _, own in times)
    detail = {"routeMs": round(whole, 3), "engineMs": round(engine, 3), "rows": ROWS, "requests": REQUESTS}
    yield Figure("warm_query_overhead", whole - engine, "ms", at_most=5, detail=detail)


def _measure_request(running: RunningService) -> tuple[float, float]:
    started = time.perf_counter()
    reply = call(running, f"/oi-api/warm-queries/newest?limit={ROWS}")
    elapsed = (time.perf_counter() - started) * 1000
    if reply["rowCount"] != ROWS:
        raise RuntimeError(f"{reply['rowCount']} rows instead of {ROWS}")
    return elapsed, float(str(reply["executionTimeMs"]))
