"""Benchmark of the audit log over HTTP: appends compared with trivial requests; ``/healthz`` during long requests."""

import json
import shutil
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from bench.figures import Figure
from bench.running import RunningService, call_service, post_bodies_and_measure_seconds, run_service

EVENTS = "/oi-api/provenance/events"
REQUESTS = 1_500
CONNECTIONS = 32
TURNS = 3
PROBE_SECONDS = 0.005
TRIVIAL = "verify of a scope without records: identity, rights and body like an append's, nothing stored"


def measure_append_requests() -> Iterator[Figure]:
    """Compare the rate of append requests with that of a trivial request (the verification of an empty chain)."""
    event = {"ActionType": "Update", "EntityType": "Batch", "EntityID": "B-1", "ScopeKey": "bench"}
    bodies = {EVENTS: json.dumps({**event, "AfterState": {"ph": 7.3}}), f"{EVENTS}/verify": '{"ScopeKey":"none"}'}
    rates: dict[str, list[float]] = {path: [] for path in bodies}
    with run_service() as running:
        for _ in range(TURNS):
            for path, body in bodies.items():
                url = running.url + path + "?target=DomainEvents"
                seconds = post_bodies_and_measure_seconds(url, running.headers, [body.encode()] * REQUESTS, CONNECTIONS)
                rates[path].append(REQUESTS / seconds)
    append, trivial = (max(rate) for rate in rates.values())
    detail = {"appendsPerSecond": round(append), "trivialPerSecond": round(trivial), "connections": CONNECTIONS}
    more = {"trivial": TRIVIAL, "bestOf": TURNS}
    yield Figure("chain_http_append", append / trivial, "ratio", at_least=0.6, detail=detail | more)


def measure_healthz_of_busy_service(database_path: Path, record_count: int) -> Iterator[Figure]:
    """Verify, export and query a long chain over HTTP; measure the response times of ``/healthz`` at the same time.

    Args:
        database_path: SQLite file with the chain.
        record_count: number of records of the chain.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        shutil.copy(database_path, Path(made) / "provenance.sqlite")
        with run_service(folder=Path(made)) as running:
            ends = threading.Event()
            spent: list[float] = []
            probe = threading.Thread(target=_call_healthz_repeatedly, args=(running.url, ends, spent))
            probe.start()
            try:
                seconds = {
                    name: _measure_request_seconds(running, request)
                    for name, request in _build_long_requests_by_name(record_count).items()
                }
            finally:
                ends.set()
                probe.join()
    spent.sort()
    detail = {
        "records": record_count,
        "seconds": seconds,
        "probes": len(spent),
        "slowestMs": round(spent[-1] * 1000, 1),
    }
    yield Figure("chain_busy_healthz_p99", spent[len(spent) * 99 // 100] * 1000, "ms", at_most=100, detail=detail)


class _LongRequest(NamedTuple):
    """Request on the whole chain, and the minimum size of its reply in bytes."""

    path: str
    body: object
    min_reply_bytes: int


def _build_long_requests_by_name(record_count: int) -> dict[str, _LongRequest]:
    """Build the requests that verify, export and query the whole chain, by name."""
    chain = {"target": "DomainEvents", "scopeKey": "bench"}
    filtered = {**chain, "actionType": "Delete", "entityType": "Batch", "fromSequence": str(record_count // 2)}
    verify = f"{EVENTS}/verify?target=DomainEvents"
    return {
        "verify": _LongRequest(verify, {"ScopeKey": "bench"}, 10),
        "export100k": _LongRequest(f"{EVENTS}/export?{urlencode({**chain, 'limit': '100000'})}", None, 1_000_000),
        "filteredQuery": _LongRequest(f"{EVENTS}/query?{urlencode({**filtered, 'limit': '1000'})}", None, 100_000),
        "absentQuery": _LongRequest(f"{EVENTS}/query?{urlencode({**chain, 'userId': 'nobody'})}", None, 2),
    }


def _measure_request_seconds(running: RunningService, request: _LongRequest) -> float:
    """Send a request and return its duration in seconds; raise an error if the reply is too short."""
    path, body, min_reply_bytes = request
    started = time.perf_counter()
    reply: Any = call_service(running, path, body)
    if len(json.dumps(reply)) < min_reply_bytes or ("verify" in path and not reply["ChainValid"]):
        raise RuntimeError(f"unexpected reply to {path}: {str(reply)[:200]}")
    return round(time.perf_counter() - started, 2)


def _call_healthz_repeatedly(url: str, stop_event: threading.Event, durations: list[float]) -> None:
    """Call ``/healthz`` until ``stop_event`` is set; add the seconds of each call to ``durations``."""
    while not stop_event.wait(PROBE_SECONDS):
        started = time.perf_counter()
        with urllib.request.urlopen(f"{url}/healthz", timeout=60) as reply:  # noqa: S310  our own
            reply.read()
        durations.append(time.perf_counter() - started)
