"""More requests than the service can do: some are refused honestly, the others are done, and no pile stays.

``OVERLOAD_SECONDS`` sets how long the soak runs.
"""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from bench.offered_load import RequestOutcome, build_raw_request, offer, saturate
from bench.overload import build_mixed_requests, count_invalid_replies
from bench.running import RunningService, call, run_service
from tests.service.local_service import ROOT, Service, wait_until

SUITE_SECONDS = 5.0
SOAK_SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "300"))
RECOVERY_SECONDS = 10.0


@pytest.fixture
def small() -> Iterator[RunningService]:
    """Return a service that works on few requests at a time."""
    with run_service({"MAX_AT_WORK": "4"}) as running:
        yield running


def overloaded(running: RunningService, seconds: float, times: float) -> list[RequestOutcome]:
    """Offer a multiple of what the service can do, and ask all the while whether it is alive."""
    requests = build_mixed_requests(running)
    saturate(running.url, requests, 2, connections=32)
    rate = times * saturate(running.url, requests, 3, connections=32)
    stop, alive = threading.Event(), Counter[int]()
    asking = threading.Thread(target=_ask_health, args=(running.url, stop, alive))
    asking.start()
    try:
        outcomes = offer(running.url, requests, rate, seconds)
    finally:
        stop.set()
        asking.join()
    assert set(alive) == {200}, alive
    return outcomes


def _ask_health(url: str, stop: threading.Event, statuses: "Counter[int]") -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        while not stop.wait(0.05):
            statuses[client.get("/healthz").status_code] += 1


def calm(running: RunningService) -> bool:
    """Return whether a little load is answered whole."""
    return all(outcome.accepted for outcome in offer(running.url, build_mixed_requests(running), 20, 0.5))


def test_a_crowd_gets_honest_answers_and_leaves_no_pile(small: RunningService) -> None:
    """Far beyond its capacity the service does what it can and says 503 with Retry-After to the rest, which is done."""
    outcomes = overloaded(small, SUITE_SECONDS, 6)
    statuses = Counter(outcome.status for outcome in outcomes)
    assert count_invalid_replies(outcomes) == 0, statuses
    assert statuses[503], statuses
    wait_until(lambda: calm(small), bool, RECOVERY_SECONDS)
    verdict = call(small, "/oi-api/provenance/events/verify", {"ScopeKey": "line"})
    assert verdict["ChainValid"] is True


BURST = 500
BURST_SECONDS = 0.125
EVENT = {"Target": "DomainEvents", "ScopeKey": "burst", "EntityType": "Pump", "EntityID": "p1", "ActionType": "Update"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service over the sample workspace, which allows a principal 500 requests at once."""
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
def test_a_burst_within_the_budget_is_answered_whole(
    sample: Service, path: str, body: Mapping[str, Any], status: int
) -> None:
    """As many requests at once as a principal may have are all done, however long the last ones wait."""
    token = sample.caller("editor@plant-a.example").headers["Authorization"].removeprefix("Bearer ")
    request = build_raw_request("POST", path, token, json.dumps(body).encode(), JSON)
    outcomes = offer(sample.url, [request], BURST / BURST_SECONDS, BURST_SECONDS, connections=BURST)
    assert Counter(outcome.status for outcome in outcomes) == {status: BURST}


@pytest.mark.soak
def test_five_minutes_at_twice_the_capacity() -> None:
    """The same for long, at twice the capacity of a service with its defaults."""
    with run_service() as running:
        outcomes = overloaded(running, SOAK_SECONDS, 2)
        assert count_invalid_replies(outcomes) == 0, Counter(outcome.status for outcome in outcomes)
        wait_until(lambda: calm(running), bool, RECOVERY_SECONDS)
