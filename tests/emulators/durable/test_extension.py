"""Tests of Durable Functions on a host: the SDK's client, the worker library and the HTTP API."""

import pytest

from tests.emulators.durable.hosts import DurableHost


def test_an_orchestration_runs_activities_in_order(durable: DurableHost) -> None:
    """An orchestration runs activities in order and returns its output."""
    status = durable.wait_for_end(durable.start_orchestration("chain", 5))
    assert status["runtimeStatus"] == "Completed", status
    assert status["output"] == [40, {"got": {"text": "aé"}}]


def test_parallel_activities_survive_a_crash_of_the_host(durable: DurableHost) -> None:
    """If a host is killed during 50 parallel activities, the next host completes them; the results are in order."""
    links = durable.start_orchestration("fan_out", 50)
    durable.host.wait_until(lambda: len(durable.host.read_records()) >= 10)
    durable.host.kill()
    (durable.host.data_dir / "open").touch()
    durable.start_host()
    assert durable.wait_for_end(links)["output"] == [number * number for number in range(50)]


@pytest.mark.soak
def test_repeated_crashes_lose_no_orchestration(durable: DurableHost) -> None:
    """If the host is killed repeatedly during orchestrations, each orchestration still completes correctly."""
    ways = [durable.start_orchestration("long_way", number) for number in range(4)]
    for crash in range(12):
        seen = len(durable.host.read_records())
        durable.host.wait_until(
            lambda seen=seen, crash=crash: len(durable.host.read_records()) >= min(seen + crash, 200)
        )
        durable.host.kill()
        durable.start_host()
    for number, links in enumerate(ways):
        steps = range(number, number + 5)
        expected = [[*(step * 100 + n for n in range(10)), step * 8] for step in steps]
        assert durable.wait_for_end(links)["output"] == expected
