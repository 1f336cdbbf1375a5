"""Tests of simulated connections."""

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from shared.catalog.models import Connection
from shared.catalog.snapshot import Catalog
from shared.errors import WorkspaceError
from shared.telemetry.models import HubMessage
from shared.telemetry.simulators import Simulators
from tests.unit.shared.telemetry.fakes import MOMENT, Hub, build_catalog, build_catalog_getter, build_connection

SINE = {"name": "temperature", "kind": "sine", "min": 4, "max": 9, "periodSec": 600, "noise": 0.1}
WALK = {"name": "level", "kind": "random-walk", "min": 0, "max": 10, "step": 0.5}


def _build_simulator(lookup: str, interval: int = 1000, devices: int = 1, **members: Any) -> Connection:
    simulator = {"intervalMs": interval, "devices": devices, "variables": [SINE, WALK]}
    return build_connection(lookup, type="SIMULATOR", **({"simulator": simulator} | members))


def _build_instant(seconds: float) -> datetime:
    return MOMENT + timedelta(seconds=seconds)


async def _collect_sent(*seconds: float, of: Catalog) -> list[HubMessage]:
    hub = Hub()
    simulators = Simulators(build_catalog_getter(of), hub)
    for each in seconds:
        await simulators.run(_build_instant(each))
    assert {name for name, _ in hub.sends} <= {"telemetry"}
    return hub.messages


async def test_messages() -> None:
    """Each device sends one message per tick, with the tick's time and an id of device and tick."""
    messages = await _collect_sent(0, 1, of=build_catalog(_build_simulator("sim", devices=2)))
    first, second = messages[-2:]
    tick = int(_build_instant(1).timestamp())
    assert first.partition_key == "sim"
    assert first.properties == {
        "connectionLookup": "sim",
        "timestamp": "2026-01-05T08:00:01.000000Z",
        "messageId": f"sim-01-{tick}",
        "deviceId": "sim-01",
        "acceptedBy": "simulator",
    }
    assert second.properties["deviceId"] == "sim-02"
    assert orjson.loads(first.body).keys() == {"temperature", "level"}


async def test_restart_repeats_the_same_messages() -> None:
    """The message of a tick is the same in every run and after a restart."""
    of = build_catalog(_build_simulator("sim", interval=300, devices=3))
    steady = await _collect_sent(*[number / 10 for number in range(90)], of=of)
    restarted = await _collect_sent(8.9, of=of)
    assert steady[-len(restarted) :] == restarted[-len(steady) :]
    ids = [message.properties["messageId"] for message in steady]
    assert len(set(ids)) == len(ids)


async def test_every_tick_is_sent_once() -> None:
    """If the simulators run at irregular times, every tick is still sent once."""
    messages = await _collect_sent(0.5, 0.9, 3.1, 3.1, 9.99, 10, of=build_catalog(_build_simulator("sim")))
    times = [datetime.fromisoformat(message.properties["timestamp"]) for message in messages]
    assert times == [_build_instant(number) for number in range(-9, 11)]


@pytest.mark.parametrize("runs", [(0,), (-3600, 0), (3600, 0)])
async def test_gaps(runs: tuple[float, ...]) -> None:
    """After a start, a gap or a clock change, only the ticks of the last ten seconds are sent."""
    messages = (await _collect_sent(*runs, of=build_catalog(_build_simulator("sim"))))[-10:]
    times = [datetime.fromisoformat(message.properties["timestamp"]) for message in messages]
    assert times == [_build_instant(number) for number in range(-9, 1)]
    assert len(await _collect_sent(*runs, of=build_catalog(_build_simulator("sim")))) == 10 * len(runs)


async def test_failed_messages_are_sent_again() -> None:
    """If the hub fails, the messages are sent later, and no message is lost or repeated."""
    hub = Hub()
    simulators = Simulators(build_catalog_getter(build_catalog(_build_simulator("sim"))), hub)
    await simulators.run(_build_instant(0))
    hub.down = True
    with pytest.raises(WorkspaceError):
        await simulators.run(_build_instant(2))
    hub.down = False
    assert await simulators.run(_build_instant(3)) == 3
    assert await simulators.run(_build_instant(3.5)) == 0


async def test_only_valid_enabled_simulators_run() -> None:
    """Enabled simulators run; disabled and invalid simulators and other connections do not."""
    invalid = {"intervalMs": 1000, "variables": [{"name": "v", "kind": "choice", "values": ["a"], "weights": [1, 2]}]}
    messages = await _collect_sent(
        0,
        of=build_catalog(
            _build_simulator("on"),
            _build_simulator("off", enabled=False),
            _build_simulator("invalid", simulator=invalid),
            build_connection("rig"),
        ),
    )
    assert {message.partition_key for message in messages} == {"on"}


async def test_changes_take_effect() -> None:
    """A change of the catalog affects only the changed simulators; other simulators neither repeat nor miss ticks."""
    current_catalog = build_catalog(_build_simulator("a"))

    async def return_catalog() -> Catalog:
        return current_catalog

    hub = Hub()
    simulators = Simulators(return_catalog, hub)
    await simulators.run(_build_instant(0))
    current_catalog = build_catalog(_build_simulator("a"), _build_simulator("b"), version=2)
    await simulators.run(_build_instant(1))
    counts = {key: sum(message.partition_key == key for message in hub.messages) for key in ("a", "b")}
    assert counts == {"a": 11, "b": 10}
