"""More requests than the service can do: some are refused honestly, the others are done, and no pile stays.

``OVERLOAD_SECONDS`` sets how long the soak runs.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from bench.offered_load import Outcome, offer, saturate
from bench.overload import dishonest, mixed
from bench.running import Running, call, service
from tests.service.running import eventually

SUITE_SECONDS = 5.0
SOAK_SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "300"))
RECOVERY_SECONDS = 10.0


@pytest.fixture
def small() -> Iterator[Running]:
    """Return a service that works on few requests at a time."""
    with service({"MAX_AT_WORK": "4"}) as running:
        yield running


def overloaded(running: Running, seconds: float, times: float) -> list[Outcome]:
    """Offer a multiple of what the service can do, and ask all the while whether it is alive."""
    requests = mixed(running)
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


def calm(running: Running) -> bool:
    """Return whether a little load is answered whole."""
    return all(outcome.accepted for outcome in offer(running.url, mixed(running), 20, 0.5))


def test_a_crowd_gets_honest_answers_and_leaves_no_pile(small: Running) -> None:
    """Far beyond its capacity the service does what it can and says 503 with Retry-After to the rest, which is done."""
    outcomes = overloaded(small, SUITE_SECONDS, 6)
    statuses = Counter(outcome.status for outcome in outcomes)
    assert dishonest(outcomes) == 0, statuses
    assert statuses[503], statuses
    eventually(lambda: calm(small), bool, RECOVERY_SECONDS)
    verdict = call(small, "/oi-api/provenance/events/verify", {"ScopeKey": "line"})
    assert verdict["ChainValid"] is True


@pytest.mark.soak
def test_five_minutes_at_twice_the_capacity() -> None:
    """The same for long, at twice the capacity of a service with its defaults."""
    with service() as running:
        outcomes = overloaded(running, SOAK_SECONDS, 2)
        assert dishonest(outcomes) == 0, Counter(outcome.status for outcome in outcomes)
        eventually(lambda: calm(running), bool, RECOVERY_SECONDS)
