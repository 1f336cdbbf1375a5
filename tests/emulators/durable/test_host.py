"""Durable Functions through a real host: the SDK's own client, the worker library, the HTTP API."""

import pytest

from tests.emulators.durable.hosts import DurableHost


def test_chain_of_activities_completes(durable: DurableHost) -> None:
    """An orchestration that the SDK's client starts runs its activities in order and shows its output."""
    status = durable.ended(durable.start("chain", 5))
    assert status["runtimeStatus"] == "Completed", status
    assert status["output"] == [40, {"got": {"text": "aé"}}]


def test_fan_out_survives_a_crash(durable: DurableHost) -> None:
    """After kill -9 amid 50 activities the next host completes the fan-out, each result once and in its place."""
    links = durable.start("fan_out", 50)
    durable.host.until(lambda: len(durable.host.records()) >= 10)
    durable.host.kill()
    (durable.host.data_dir / "open").touch()
    durable.begin()
    assert durable.ended(links)["output"] == [number * number for number in range(50)]


@pytest.mark.soak
def test_storm_of_crashes_loses_nothing(durable: DurableHost) -> None:
    """Orchestrations with retries, timers and sub-orchestrations end as they must, however often the host is killed."""
    ways = [durable.start("long_way", number) for number in range(4)]
    for crash in range(12):
        seen = len(durable.host.records())
        durable.host.until(lambda seen=seen, crash=crash: len(durable.host.records()) >= min(seen + crash, 200))
        durable.host.kill()
        durable.begin()
    for number, links in enumerate(ways):
        steps = range(number, number + 5)
        expected = [[*(step * 100 + n for n in range(10)), step * 8] for step in steps]
        assert durable.ended(links)["output"] == expected
