"""Benchmark of authentication and request pipeline: rates of a trivial authenticated request and of ``/healthz``."""

import statistics
from collections.abc import Iterator

from bench.figures import Figure
from bench.running import measure_replies_per_second, run_service

ROUNDS = 5
SECONDS = 2.0
CONNECTIONS = 16


def measure_request_rate() -> Iterator[Figure]:
    """Alternately measure the rates of ``/healthz`` and ``whoami``; compare the medians."""
    open_rates: list[float] = []
    authenticated: list[float] = []
    with run_service() as running:
        for path in ("/healthz", "/workspace/api/keys/whoami"):
            measure_replies_per_second(
                running.url + path, running.headers, connection_count=CONNECTIONS, duration_seconds=0.5
            )
        for _ in range(ROUNDS):
            for path, rates in (("/healthz", open_rates), ("/workspace/api/keys/whoami", authenticated)):
                rate = measure_replies_per_second(
                    running.url + path, running.headers, connection_count=CONNECTIONS, duration_seconds=SECONDS
                )
                rates.append(rate)
    ratio = statistics.median(authenticated) / statistics.median(open_rates)
    detail = {
        "healthzPerSecond": round(statistics.median(open_rates)),
        "whoamiPerSecond": round(statistics.median(authenticated)),
        "connections": CONNECTIONS,
    }
    yield Figure("authenticated_to_healthz", ratio, "ratio", at_least=0.6, detail=detail)
