"""Benchmark of an overload: twice as many requests as the service can process, and the time to recover from it."""

import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.figures import Figure
from bench.offered_load import RequestOutcome, build_raw_request, measure_accepted_requests_per_second, send_at_rate
from bench.running import RunningService, run_service

LEAD_SECONDS = 5.0
"""Seconds of load before the measurement: the service absorbs a burst, and detects an overload after two seconds."""
SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "20"))
CALLERS = 64
OVERLOAD_FACTOR = 2
CALM_SECONDS = 10.0
VALID_STATUSES = frozenset({200, 201, 202, 429, 503})


def measure_overload() -> Iterator[Figure]:
    """Measure the capacity of the service, send twice as many requests per second, then measure the recovery."""
    with run_service() as running:
        requests = build_mixed_requests(running)
        measure_accepted_requests_per_second(running.url, requests, 3, caller_count=CALLERS)
        capacity = measure_accepted_requests_per_second(running.url, requests, 5, caller_count=CALLERS)
        begun = time.perf_counter()
        everything = send_at_rate(running.url, requests, OVERLOAD_FACTOR * capacity, LEAD_SECONDS + SECONDS)
        recovery = measure_recovery_seconds(running, requests, capacity)
    outcomes = [outcome for outcome in everything if outcome.due >= begun + LEAD_SECONDS]
    times = [outcome.seconds * 1000 for outcome in outcomes if outcome.is_accepted]
    statuses = Counter(outcome.status for outcome in outcomes)
    detail = {
        "capacityPerSecond": round(capacity),
        "leadSeconds": LEAD_SECONDS,
        "offered": len(outcomes),
        "statuses": dict(sorted(statuses.items())),
        "p99WithLead": round(compute_percentile([each.seconds * 1000 for each in everything if each.is_accepted], 99)),
        "p50": round(compute_percentile(times, 50)),
        "callersLateP99": round(compute_percentile([outcome.late * 1000 for outcome in outcomes], 99), 1),
    }
    yield Figure("overload_p99", compute_percentile(times, 99), "ms", at_most=500, detail=detail)
    yield Figure("overload_dishonest", count_invalid_replies(everything), "requests", at_most=0, detail=detail)
    yield Figure("overload_goodput", len(times) / SECONDS / capacity, "ratio", at_least=0.5, detail=detail)
    yield Figure("overload_recovery", recovery, "s", at_most=10, detail=detail)


def build_mixed_requests(running: RunningService) -> Sequence[bytes]:
    """Build five requests for the load: lists, a KQL query, a telemetry message and an audit event."""
    event = b'{"ScopeKey":"line","EntityType":"Pump","EntityID":"p1","ActionType":"Update"}'
    return (
        build_raw_request("GET", "/oi-api/warm-queries", running.token),
        build_raw_request("GET", "/oi-api/warm-queries/newest?limit=20", running.token),
        build_raw_request("POST", "/oi-api/telemetry/line", running.token, b'{"pressure":1}'),
        build_raw_request("POST", "/oi-api/provenance/events", running.token, event),
        build_raw_request("GET", "/workspace/api/keys/whoami", running.token),
    )


def count_invalid_replies(outcomes: Sequence[RequestOutcome]) -> int:
    """Count incorrect replies: no reply, an unexpected status, or a 429 or 503 without a Retry-After header."""
    refusals = (429, 503)
    return sum(
        each.status not in VALID_STATUSES or (each.status in refusals and not each.retry_after) for each in outcomes
    )


def measure_recovery_seconds(running: RunningService, requests: Sequence[bytes], accepted_per_second: float) -> float:
    """Return the seconds after an overload until the service accepts every request of a light load for one second."""
    started = time.perf_counter()
    while time.perf_counter() - started < 2 * CALM_SECONDS:
        begun = time.perf_counter() - started
        if all(outcome.is_accepted for outcome in send_at_rate(running.url, requests, accepted_per_second / 4, 1)):
            return begun
    return 2 * CALM_SECONDS


def compute_percentile(values: Sequence[float], percentile: int) -> float:
    """Return a percentile of measured values; ``percentile`` is the number of the percentile, from 1 to 99."""
    return statistics.quantiles(values, n=100, method="inclusive")[percentile - 1]
