"""Tests of simulated connections and the generators of their values."""

import statistics
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from shared.catalog.models import Connection, Variable
from shared.catalog.snapshot import Catalog
from shared.errors import WorkspaceError
from shared.telemetry.models import HubMessage
from shared.telemetry.simulators import (
    DAY_MS,
    SPAN,
    RandomWalk,
    Simulators,
    Tick,
    build_generator,
    derive_stream_key,
    reflect_into_range,
)
from tests.unit.shared.telemetry.fakes import MOMENT, Hub, build_catalog, build_catalog_getter, build_connection

ADAPTER: TypeAdapter[Any] = TypeAdapter(Variable)
DAY = 20_457 * DAY_MS
EVERY_KIND: list[dict[str, Any]] = [
    {"kind": "constant", "value": "on"},
    {"kind": "sine", "min": 4, "max": 9, "periodSec": 600, "noise": 0.5},
    {"kind": "ramp", "min": 4, "max": 9, "periodSec": 600},
    {"kind": "square", "min": 4, "max": 9, "periodSec": 600, "duty": 0.25},
    {"kind": "random-walk", "min": 4, "max": 9, "step": 0.5},
    {"kind": "uniform", "min": 4, "max": 9},
    {"kind": "normal", "mean": 5, "stdev": 2},
    {"kind": "choice", "values": ["a", "b", "c"], "weights": [1, 0, 3]},
    {"kind": "counter", "wrap": 100},
]
KEY = derive_stream_key("walk")


def _generate_values(
    declared: dict[str, Any], ticks: range, *, seed: int = 0, device: int = 1, interval: int = 1000
) -> list[Any]:
    generate = build_generator(ADAPTER.validate_python({"name": "v", **declared}), seed, device)
    return [generate(Tick(DAY // interval + number, interval)) for number in ticks]


@pytest.mark.parametrize("declared", EVERY_KIND, ids=lambda each: each["kind"])
def test_equal_seeds_give_equal_values(declared: dict[str, Any]) -> None:
    """With the same seed, a simulator gives the same values from any tick on; random values differ between seeds."""
    values = _generate_values(declared, range(200))
    assert _generate_values(declared, range(100, 200)) == values[100:]
    random = {"sine", "random-walk", "uniform", "normal", "choice"}
    differs = declared["kind"] in random
    assert (_generate_values(declared, range(200), seed=1) != values) is differs
    assert (_generate_values(declared, range(200), device=2) != values) is (
        differs or declared["kind"] in {"ramp", "square"}
    )


@given(st.integers(0, 10**9), st.sampled_from([100, 250, 999, 1000, 60_000, 7_000_000]), st.integers(1, 50))
def test_values_are_between_min_and_max(number: int, interval: int, device: int) -> None:
    """Without noise, the values of each device are between min and max at each tick."""
    for kind in ("sine", "ramp", "square", "random-walk", "uniform"):
        declared = {"name": "v", "kind": kind, "min": -3, "max": 5}
        declared |= {"random-walk": {"step": 2}, "uniform": {}}.get(kind, {"periodSec": 10})
        value = build_generator(ADAPTER.validate_python(declared), 7, device)(Tick(number, interval))
        assert isinstance(value, float)
        assert -3 <= value <= 5


@given(st.integers(0, 10**9), st.sampled_from([100, 999, 7_000_000, 100_000_000]))
def test_the_first_tick_of_a_day_is_0(number: int, interval: int) -> None:
    """The first tick at or after midnight UTC has the number 0."""
    tick = Tick(number, interval)
    first = number - tick.index_in_day
    assert 0 <= tick.index_in_day <= DAY_MS // interval
    assert first * interval >= tick.days_since_1970 * DAY_MS > (first - 1) * interval


def test_a_sine_passes_between_min_and_max() -> None:
    """A sine starts in the middle between min and max, rises first, and reaches both once per period."""
    values = _generate_values({"kind": "sine", "min": 0, "max": 10, "periodSec": 4}, range(5))
    assert values == pytest.approx([5, 10, 5, 0, 5])


def test_a_ramp_rises_and_falls_back() -> None:
    """A ramp rises from min, and falls back at the end of its period."""
    assert _generate_values({"kind": "ramp", "min": 0, "max": 10, "periodSec": 5}, range(6)) == pytest.approx(
        [0, 2, 4, 6, 8, 0]
    )


def test_a_square_is_low_and_then_high() -> None:
    """A square is first low, then high for the declared share of its period."""
    declared = {"kind": "square", "min": 0, "max": 1, "periodSec": 4, "duty": 0.25}
    assert _generate_values(declared, range(8)) == [0, 0, 0, 1, 0, 0, 0, 1]


def test_random_walk_restarts_each_day() -> None:
    """A random walk restarts at its start value with the first tick of each UTC day."""
    declared = {"kind": "random-walk", "min": 0, "max": 10, "step": 1, "start": 2.5}
    assert _generate_values(declared, range(86_400, 86_401)) == _generate_values(declared, range(1)) == [2.5]
    assert _generate_values(declared, range(1, 100)) != _generate_values(declared, range(86_401, 86_500))


def test_a_normal_distribution_has_mean_and_deviation() -> None:
    """Values of a normal distribution have the declared mean and deviation."""
    values = _generate_values({"kind": "normal", "mean": 5, "stdev": 2}, range(20_000))
    assert statistics.fmean(values) == pytest.approx(5, abs=0.1)
    assert statistics.stdev(values) == pytest.approx(2, abs=0.1)


def test_a_choice_follows_its_weights() -> None:
    """Values of a choice occur as often as their weights require; a value with weight 0 never occurs."""
    values = _generate_values({"kind": "choice", "values": ["a", "b", True], "weights": [1, 0, 3]}, range(20_000))
    assert values.count(True) / len(values) == pytest.approx(0.75, abs=0.02)
    assert "b" not in values


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [0, 0], [-1, 2]])
def test_invalid_weights_are_rejected(weights: list[float]) -> None:
    """A choice is rejected if the number of its weights differs from the number of its values."""
    with pytest.raises(ValueError, match="weight"):
        _generate_values({"kind": "choice", "values": ["a", "b"], "weights": weights}, range(1))


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ({"start": 10, "step": 2, "wrap": 20}, [10, 12, 14, 16, 18, 10]),
        ({"start": 5, "step": 3, "wrap": 10}, [5, 8, 5, 8, 5, 8]),
        ({"start": 5, "step": -2, "wrap": 0}, [5, 3, 1, 5, 3, 1]),
        ({"start": 1, "step": 0}, [1, 1, 1, 1, 1, 1]),
        ({"start": 1, "step": 0, "wrap": 1}, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_a_counter_grows_until_its_wrap_value(declared: dict[str, int], values: list[int]) -> None:
    """A counter grows by its step at each tick, and starts again before it would reach its wrap value."""
    generate = build_generator(ADAPTER.validate_python({"name": "v", "kind": "counter", **declared}), 0, 1)
    assert [generate(Tick(30 + number, 1000)) for number in range(6)] == values


@given(st.integers(-50, 50), st.integers(-7, 7).filter(bool), st.integers(1, 60), st.integers(0, 10**12))
def test_a_counter_stays_below_its_wrap_value(start: int, step: int, away: int, number: int) -> None:
    """A counter is at least its start value and below its wrap value."""
    wrap = start + (away if step > 0 else -away)
    declared = {"name": "v", "kind": "counter", "start": start, "step": step, "wrap": wrap}
    generate = build_generator(ADAPTER.validate_python(declared), 0, 1)
    value, following = generate(Tick(number, 1000)), generate(Tick(number + 1, 1000))
    assert isinstance(value, int)
    assert min(start, wrap) <= value <= max(start, wrap)
    assert value != wrap
    after = value + step
    assert following == (after if (wrap - after) * step > 0 else start)


def test_counter_without_wrap_restarts_each_day() -> None:
    """A counter without a wrap value restarts with the first tick of each UTC day."""
    declared = {"kind": "counter", "start": 7, "step": 3}
    assert _generate_values(declared, range(3)) == _generate_values(declared, range(86_400, 86_403)) == [7, 10, 13]
    assert _generate_values(declared, range(86_399, 86_400)) == [7 + 3 * 86_399]


def test_periodic_values_are_exact() -> None:
    """Periodic values are as exact as doubles, although the time since 1970 is large."""
    ramp = {"kind": "ramp", "min": 0, "max": 10, "periodSec": 20}
    assert _generate_values(ramp, range(20)) == pytest.approx(
        [number / 2 for number in range(20)], rel=1e-15, abs=1e-15
    )


@given(st.lists(st.integers(0, SPAN), min_size=1, max_size=20))
def test_random_walk_values_do_not_depend_on_earlier_ticks(ticks: list[int]) -> None:
    """The value of a random walk depends only on the tick, not on ticks that were computed before."""
    walk = RandomWalk(KEY)
    assert [walk.compute_position(tick) for tick in ticks] == [RandomWalk(KEY).compute_position(tick) for tick in ticks]


def test_steps_of_a_random_walk_are_standard_normal() -> None:
    """The steps of a random walk have mean 0 and standard deviation 1."""
    walk = RandomWalk(KEY)
    positions = [walk.compute_position(tick) for tick in range(50_001)]
    steps = [after - before for before, after in pairwise(positions)]
    assert positions[0] == 0.0
    assert statistics.fmean(steps) == pytest.approx(0, abs=0.02)
    assert statistics.stdev(steps) == pytest.approx(1, abs=0.02)
    assert statistics.correlation(steps[:-1], steps[1:]) == pytest.approx(0, abs=0.02)


@given(st.floats(-1e6, 1e6), st.floats(-1000, 1000), st.floats(0.001, 1000))
def test_reflected_value_is_within_range(value: float, low: float, span: float) -> None:
    """A value outside the range is reflected into it; a value in the range is unchanged."""
    high = low + span
    assert low <= reflect_into_range(value, low, high) <= high + 1e-9 * max(1.0, abs(high))
    if low <= value <= high:
        assert reflect_into_range(value, low, high) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("value", "reflected"), [(11, 9), (-1, 1), (20, 0), (21, 1), (-11, 9), (5, 5)])
def test_values_beyond_the_range_are_reflected(value: float, reflected: float) -> None:
    """A value beyond an end of the range is reflected into the range."""
    assert reflect_into_range(value, 0, 10) == reflected
    assert reflect_into_range(value, 3, 3) == 3


SINE = {"name": "temperature", "kind": "sine", "min": 4, "max": 9, "periodSec": 600, "noise": 0.1}
WALK = {"name": "level", "kind": "random-walk", "min": 0, "max": 10, "step": 0.5}


def _build_simulator(lookup: str, interval: int = 1000, devices: int = 1, **members: Any) -> Connection:
    simulator = {"intervalMs": interval, "devices": devices, "variables": [SINE, WALK]}
    return build_connection(lookup, type="SIMULATOR", **({"simulator": simulator} | members))


def _build_instant(seconds: float) -> datetime:
    return MOMENT + timedelta(seconds=seconds)


async def _collect_sent_messages(*seconds: float, catalog: Catalog) -> list[HubMessage]:
    hub = Hub()
    simulators = Simulators(build_catalog_getter(catalog), hub)
    for each in seconds:
        await simulators.send_and_count_due_messages(_build_instant(each))
    assert {name for name, _ in hub.sends} <= {"telemetry"}
    return hub.messages


async def test_each_device_sends_a_message_per_tick() -> None:
    """Each device sends one message per tick; the message has the tick's time and an id made of device and tick."""
    messages = await _collect_sent_messages(0, 1, catalog=build_catalog(_build_simulator("sim", devices=2)))
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
    """The message of a tick is the same in each run and after a restart."""
    of = build_catalog(_build_simulator("sim", interval=300, devices=3))
    steady = await _collect_sent_messages(*[number / 10 for number in range(90)], catalog=of)
    restarted = await _collect_sent_messages(8.9, catalog=of)
    assert steady[-len(restarted) :] == restarted[-len(steady) :]
    ids = [message.properties["messageId"] for message in steady]
    assert len(set(ids)) == len(ids)


async def test_every_tick_is_sent_once() -> None:
    """If simulators run at irregular times, each tick is still sent once."""
    messages = await _collect_sent_messages(
        0.5, 0.9, 3.1, 3.1, 9.99, 10, catalog=build_catalog(_build_simulator("sim"))
    )
    times = [datetime.fromisoformat(message.properties["timestamp"]) for message in messages]
    assert times == [_build_instant(number) for number in range(-9, 11)]


@pytest.mark.parametrize("runs", [(0,), (-3600, 0), (3600, 0)])
async def test_at_most_ten_seconds_are_sent_after_a_gap(runs: tuple[float, ...]) -> None:
    """After a start, a gap or a clock change, only the ticks of the last ten seconds are sent."""
    messages = (await _collect_sent_messages(*runs, catalog=build_catalog(_build_simulator("sim"))))[-10:]
    times = [datetime.fromisoformat(message.properties["timestamp"]) for message in messages]
    assert times == [_build_instant(number) for number in range(-9, 1)]
    assert len(await _collect_sent_messages(*runs, catalog=build_catalog(_build_simulator("sim")))) == 10 * len(runs)


async def test_failed_messages_are_sent_again() -> None:
    """If the hub fails, messages are sent later, and none is lost or repeated."""
    hub = Hub()
    simulators = Simulators(build_catalog_getter(build_catalog(_build_simulator("sim"))), hub)
    await simulators.send_and_count_due_messages(_build_instant(0))
    hub.down = True
    with pytest.raises(WorkspaceError):
        await simulators.send_and_count_due_messages(_build_instant(2))
    hub.down = False
    assert await simulators.send_and_count_due_messages(_build_instant(3)) == 3
    assert await simulators.send_and_count_due_messages(_build_instant(3.5)) == 0


async def test_only_valid_enabled_simulators_run() -> None:
    """Only enabled and valid simulators run."""
    invalid = {"intervalMs": 1000, "variables": [{"name": "v", "kind": "choice", "values": ["a"], "weights": [1, 2]}]}
    messages = await _collect_sent_messages(
        0,
        catalog=build_catalog(
            _build_simulator("on"),
            _build_simulator("off", enabled=False),
            _build_simulator("invalid", simulator=invalid),
            build_connection("rig"),
        ),
    )
    assert {message.partition_key for message in messages} == {"on"}


async def test_a_catalog_change_affects_only_its_simulators() -> None:
    """If a simulator changes in the catalog, no other simulator repeats or misses ticks."""
    current_catalog = build_catalog(_build_simulator("a"))

    async def return_catalog() -> Catalog:
        return current_catalog

    hub = Hub()
    simulators = Simulators(return_catalog, hub)
    await simulators.send_and_count_due_messages(_build_instant(0))
    current_catalog = build_catalog(_build_simulator("a"), _build_simulator("b"), version=2)
    await simulators.send_and_count_due_messages(_build_instant(1))
    counts = {key: sum(message.partition_key == key for message in hub.messages) for key in ("a", "b")}
    assert counts == {"a": 11, "b": 10}
