"""Benchmark: rate at which telemetry reaches the table, with and without the trigger that archives it to blobs."""

import json
import time
from collections.abc import Iterator

from bench.figures import Figure
from bench.ingest import BATCH, CONNECTIONS, EVENTS, build_messages, wait_for_rows
from bench.running import post_bodies_and_measure_seconds, run_service

LEAST_RATIO = 0.8
WITHOUT = {"AzureWebJobs.archive.Disabled": "true"}


def measure_ingest_with_archive() -> Iterator[Figure]:
    """Ingest the same events alternately with and without the archive; compare the best runs with and without it."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(2):
        for archived in (False, True):
            rates[archived].append(_measure_ingested_events_per_second(with_archive=archived))
    detail = {
        "events": EVENTS,
        "withArchive": round(max(rates[True])),
        "without": round(max(rates[False])),
        "unit": "events/s in the table",
    }
    yield Figure(
        "ingest_with_archive", max(rates[True]) / max(rates[False]), "ratio", at_least=LEAST_RATIO, detail=detail
    )


def _measure_ingested_events_per_second(*, with_archive: bool) -> float:
    bodies = [json.dumps(batch).encode() for batch in build_messages(EVENTS, BATCH)]
    with run_service({} if with_archive else WITHOUT) as running:
        started = time.perf_counter()
        post_bodies_and_measure_seconds(f"{running.url}/oi-api/telemetry/line", running.headers, bodies, CONNECTIONS)
        wait_for_rows(running, EVENTS)
        return EVENTS / (time.perf_counter() - started)
