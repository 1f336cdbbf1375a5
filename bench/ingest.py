"""Benchmark of telemetry over HTTP: rate of accepted messages, and rate at which their rows reach the table."""

import json
import time
from collections.abc import Iterator
from typing import Any

from bench.figures import Figure
from bench.running import RunningService, call_service, post_bodies_and_measure_seconds, run_service

EVENTS = 50_000
BATCH = 500
CONNECTIONS = 4
WAIT_SECONDS = 120
LEAST_PER_SECOND = 2_000
"""Lower bound, far below the usual rate: a lower rate is a defect of the service, not a slow machine."""


def measure_ingest() -> Iterator[Figure]:
    """Post batches of telemetry over several connections, then wait until all rows are in the table."""
    bodies = [json.dumps(batch).encode() for batch in build_messages(EVENTS, BATCH)]
    with run_service() as running:
        started = time.perf_counter()
        acknowledged = post_bodies_and_measure_seconds(
            f"{running.url}/oi-api/telemetry/line", running.headers, bodies, CONNECTIONS
        )
        wait_for_rows(running, EVENTS)
        stored = time.perf_counter() - started
    detail = {"events": EVENTS, "batch": BATCH, "connections": CONNECTIONS}
    yield Figure("ingest_http", EVENTS / acknowledged, "events/s", at_least=LEAST_PER_SECOND, detail=detail)
    yield Figure("ingest_table", EVENTS / stored, "events/s", at_least=LEAST_PER_SECOND, detail=detail)
    yield Figure("ingest_table_to_accepted", acknowledged / stored, "ratio", at_least=0.5, detail=detail)


def build_messages(message_count: int, batch_size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield ``message_count`` telemetry messages of about 150 bytes each, in lists of ``batch_size`` messages."""
    for first in range(0, message_count, batch_size):
        yield [_build_message(number) for number in range(first, min(first + batch_size, message_count))]


def wait_for_rows(running: RunningService, row_count: int) -> None:
    """Wait until the telemetry table has at least ``row_count`` rows.

    Raises:
        TimeoutError: rows are missing after the time limit.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        reply: Any = call_service(running, "/oi-api/warm-queries", {"query": "Telemetry | count"})
        if reply["results"][0]["Count"] >= row_count:
            return
        time.sleep(0.05)
    raise TimeoutError(f"the table has fewer than {row_count} rows after {WAIT_SECONDS} s")


def _build_message(number: int) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-{number // 86400 % 28 + 1:02d}T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:"
        f"{number % 60:02d}Z",
        "messageId": f"m-{number}",
        "deviceId": f"d-{number % 20:02d}",
        "pressure": 4 + number % 97 / 100,
        "temperature": 20 + number % 53 / 10,
        "running": number % 7 != 0,
    }
