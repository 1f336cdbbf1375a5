"""Tests of overload: the service rejects some requests with 503 and executes the others.

``OVERLOAD_SECONDS`` sets the duration of the soak test.
"""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from bench.offered_load import RequestOutcome, build_raw_request, measure_accepted_requests_per_second, send_at_rate
from bench.overload import build_mixed_requests, count_invalid_replies
from bench.running import RunningService, call_service, run_service
from tests.plain_http import NO_TLS
from tests.service.local_service import ROOT, Service, wait_until

SUITE_SECONDS = 5.0
SOAK_SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "300"))
RECOVERY_SECONDS = 10.0


@pytest.fixture
def small_service() -> Iterator[RunningService]:
    """Return a service that executes few requests concurrently."""
    with run_service({"MAX_AT_WORK": "4"}) as running:
        yield running


def run_overload(running: RunningService, seconds: float, factor: float) -> list[RequestOutcome]:
    """Send more requests than the service can execute, by the given factor, and request /healthz at the same time."""
    requests = build_mixed_requests(running)
    measure_accepted_requests_per_second(running.url, requests, 2, caller_count=32)
    rate = factor * measure_accepted_requests_per_second(running.url, requests, 3, caller_count=32)
    stop, alive = threading.Event(), Counter[int]()
    asking = threading.Thread(target=_probe_health, args=(running.url, stop, alive))
    asking.start()
    try:
        outcomes = send_at_rate(running.url, requests, rate, seconds)
    finally:
        stop.set()
        asking.join()
    assert set(alive) == {200}, alive
    return outcomes


def _probe_health(url: str, stop: threading.Event, statuses: "Counter[int]") -> None:
    with httpx.Client(base_url=url, trust_env=False, verify=NO_TLS, timeout=60) as client:
        while not stop.wait(0.05):
            statuses[client.get("/healthz").status_code] += 1


def accepts_requests(running: RunningService) -> bool:
    """Return whether the service accepts each of a few requests."""
    return all(outcome.is_accepted for outcome in send_at_rate(running.url, build_mixed_requests(running), 20, 0.5))


def test_overload_is_rejected_with_retry_after(small_service: RunningService) -> None:
    """Under overload, each request is executed or gets 503 with Retry-After; afterwards the service recovers."""
    outcomes = run_overload(small_service, SUITE_SECONDS, 6)
    statuses = Counter(outcome.status for outcome in outcomes)
    assert count_invalid_replies(outcomes) == 0, statuses
    assert statuses[503], statuses
    wait_until(lambda: accepts_requests(small_service), bool, RECOVERY_SECONDS)
    verdict = call_service(small_service, "/oi-api/provenance/events/verify", {"ScopeKey": "line"})
    assert verdict["ChainValid"] is True


BURST = 500
BURST_SECONDS = 0.125
EVENT = {"ScopeKey": "burst", "EntityType": "Pump", "EntityID": "p1", "ActionType": "Update"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def sample_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service with the sample workspace and a limit of 500 concurrent requests per principal."""
    folder = tmp_path_factory.mktemp("sample")
    running = Service(folder / "data", ROOT / "samples" / "workspace.yaml").start()
    yield running
    assert running.stop() == 0


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/oi-api/provenance/events", EVENT, 201),
        ("/oi-api/warm-queries", {"query": "print x = 1"}, 200),
        ("/oi-api/mcp", PING, 200),
    ],
)
def test_a_burst_within_the_limit_is_executed(
    sample_service: Service, path: str, body: Mapping[str, Any], status: int
) -> None:
    """If a principal sends as many concurrent requests as the limit allows, all are executed."""
    token = sample_service.create_client("editor@plant-a.example").headers["Authorization"].removeprefix("Bearer ")
    request = build_raw_request("POST", path, token, json.dumps(body).encode(), JSON)
    outcomes = send_at_rate(sample_service.url, [request], BURST / BURST_SECONDS, BURST_SECONDS, connections=BURST)
    assert Counter(outcome.status for outcome in outcomes) == {status: BURST}


@pytest.mark.soak
def test_five_minutes_at_twice_the_capacity_cause_only_503_replies() -> None:
    """For five minutes at twice its capacity, a service with default settings executes each request or returns 503."""
    with run_service() as running:
        outcomes = run_overload(running, SOAK_SECONDS, 2)
        assert count_invalid_replies(outcomes) == 0, Counter(outcome.status for outcome in outcomes)
        wait_until(lambda: accepts_requests(running), bool, RECOVERY_SECONDS)
