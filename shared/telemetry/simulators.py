"""Simulated devices, which send telemetry messages to the event hub, and the generators of their values.

A value is a function of the tick (time), the device and the seed. Random numbers have no state: each is a function of a
key, which names a stream of numbers, and an index. Simulators can therefore restart at any tick and produce the same
values again.

This module is separate from ``ingest`` because simulated messages pass through the hub like the messages of
real devices.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from itertools import accumulate

from shared.catalog.models import (
    ChoiceVariable,
    Connection,
    ConnectionType,
    ConstantVariable,
    CounterVariable,
    NormalVariable,
    RampVariable,
    RandomWalkVariable,
    SineVariable,
    SquareVariable,
    UniformVariable,
    Variable,
)
from shared.catalog.snapshot import Catalog
from shared.observability.logs import fields, get_logger
from shared.telemetry.json_text import serialise_lossless_json
from shared.telemetry.models import TELEMETRY_HUB, HubMessage
from shared.telemetry.ports import CurrentCatalog, EventSender
from shared.telemetry.properties import SIMULATOR, build_application_properties

_MASK_32 = 2**32 - 1
SPAN = 2**20
"""Number of steps of a random walk; a day has at most 864,000 ticks, with the shortest interval of 100 ms."""
type Value = float | str | bool
type Generator = Callable[["Tick"], Value]

DAY_MS = 86_400_000
_GOLDEN = (math.sqrt(5) - 1) / 2


def derive_stream_key(*parts: object) -> bytes:
    """Derive the key of a stream of random numbers from the parts of its name; other names give independent streams."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()


def draw_uniform(stream_key: bytes, index: int) -> float:
    """Return the random number at an index of a stream, uniformly distributed in [0, 1)."""
    return (_draw_64_bits(stream_key, index) >> 11) * 2.0**-53


def draw_normal(stream_key: bytes, index: int) -> float:
    """Return the random number at an index of a stream, standard normally distributed (Box and Muller, 1958)."""
    bits = _draw_64_bits(stream_key, index)
    radius = math.sqrt(-2.0 * math.log(((bits >> 32) + 1) / 2**32))
    return radius * math.cos(math.tau * (bits & _MASK_32) / 2**32)


@dataclass(slots=True)
class RandomWalk:
    """Random walk whose position at any tick can be computed without all earlier steps.

    The walk is built by bisection (Paul Lévy's construction of Brownian motion): the end of the day is drawn first,
    then each midpoint from its two neighbours. At whole ticks this is exactly a walk of independent normal steps. To
    compute a position, at most 20 random numbers are drawn after a restart, and two on average at the next tick.

    Attributes:
        key: key of the stream of random numbers; the same key gives the same walk.
    """

    key: bytes
    _left: tuple[int, float] = (0, 0.0)
    _right: list[tuple[int, float]] = field(default_factory=list)

    def compute_position(self, tick: int) -> float:
        """Return the sum of the first ``tick`` steps of the random walk, which are standard normal random numbers.

        Args:
            tick: from 0 to 2**20 inclusive; calls may have any order, ascending ticks are fastest.
        """
        if tick < self._left[0] or not self._right:
            self._left, self._right = (0, 0.0), [(SPAN, draw_normal(self.key, SPAN) * SPAN**0.5)]
        while self._right and self._right[-1][0] <= tick:
            self._left = self._right.pop()
        while self._left[0] < tick:
            middle = self._draw_midpoint_tick_and_position()
            if middle[0] <= tick:
                self._left = middle
            else:
                self._right.append(middle)
        return self._left[1]

    def _draw_midpoint_tick_and_position(self) -> tuple[int, float]:
        """Return the tick in the middle between the two known neighbours, and draw the position of the walk there."""
        (left, low), (right, high) = self._left, self._right[-1]
        place = (left + right) // 2
        deviation = (right - left) ** 0.5 / 2
        return place, (low + high) / 2 + draw_normal(self.key, place) * deviation


def reflect_into_range(value: float, lowest: float, highest: float) -> float:
    """Reflect a value at the ends of a range until it lies inside; return ``lowest`` if the range is empty."""
    span = highest - lowest
    if span <= 0:
        return lowest
    folded = (value - lowest) % (2 * span)
    return lowest + min(folded, 2 * span - folded)


def _draw_64_bits(stream_key: bytes, index: int) -> int:
    return int.from_bytes(blake2b(index.to_bytes(8, "little"), digest_size=8, key=stream_key).digest(), "little")


@dataclass(frozen=True, slots=True)
class Tick:
    """Time at which the devices of a simulator send a message.

    Attributes:
        number: number of intervals since 1970-01-01T00:00:00Z.
        interval_ms: length of an interval in milliseconds.
    """

    number: int
    interval_ms: int

    @property
    def milliseconds_since_1970(self) -> int:
        """Time of the tick in milliseconds since 1970-01-01T00:00:00Z."""
        return self.number * self.interval_ms

    @property
    def days_since_1970(self) -> int:
        """Day of the tick, as the number of UTC days since 1970-01-01."""
        return self.milliseconds_since_1970 // DAY_MS

    @property
    def index_in_day(self) -> int:
        """Index of this tick in its UTC day; the first tick of the day has the index 0."""
        return self.number + (-self.days_since_1970 * DAY_MS // self.interval_ms)


def build_generator(variable: Variable, seed: int, device_number: int) -> Generator:
    """Build the function that computes the value of a simulated variable at a tick.

    Args:
        variable: declaration of the variable.
        seed: seed of the simulator; the same seed gives the same values.
        device_number: number of the device, from 1. It shifts periodic variables in time, so that devices differ.

    Raises:
        ValueError: if the weights of a choice do not fit its values.
    """
    key = derive_stream_key(seed, device_number, variable.name)
    generate: Generator
    match variable:
        case ConstantVariable():
            generate = partial(_generate_constant, variable)
        case SineVariable() | RampVariable() | SquareVariable():
            generate = _build_periodic_generator(variable, key, device_number)
        case RandomWalkVariable():
            generate = _build_walk_generator(variable, seed, device_number)
        case UniformVariable():
            generate = partial(_generate_uniform, variable, key)
        case NormalVariable():
            generate = partial(_generate_normal, variable, key)
        case ChoiceVariable():
            generate = _build_choice_generator(variable, key)
        case CounterVariable():
            generate = partial(_generate_counter_value, variable)
    return generate


def _generate_constant(variable: ConstantVariable, _: Tick) -> Value:
    return variable.value


def _generate_uniform(variable: UniformVariable, stream_key: bytes, tick: Tick) -> float:
    return variable.min + (variable.max - variable.min) * draw_uniform(stream_key, tick.number)


def _generate_normal(variable: NormalVariable, stream_key: bytes, tick: Tick) -> float:
    return variable.mean + variable.stdev * draw_normal(stream_key, tick.number)


def _generate_counter_value(variable: CounterVariable, tick: Tick) -> int:
    steps = tick.index_in_day
    if variable.wrap is not None:
        steps = tick.number % _count_values_before_restart(variable.start, variable.wrap, variable.step)
    return variable.start + steps * variable.step


def _count_values_before_restart(start: int, wrap: int, step: int) -> int:
    """Return the number of values that a simulated counter produces before it restarts; at least one."""
    return max(1, -(-abs(wrap - start) // abs(step))) if step else 1


def _build_periodic_generator(
    variable: SineVariable | RampVariable | SquareVariable, stream_key: bytes, device_number: int
) -> Generator:
    low, high = variable.min, variable.max
    period_ms = variable.period_sec * 1000
    # Multiples of the golden ratio distribute any number of devices evenly over the period.
    shift = (device_number - 1) * _GOLDEN

    def generate_value(tick: Tick) -> float:
        # Reduce the time first: dividing the full time since 1970 would leave only eight digits of the phase.
        share = _compute_waveform_between_0_and_1(
            variable, (math.fmod(tick.milliseconds_since_1970, period_ms) / period_ms + shift) % 1.0
        )
        noise = variable.noise * draw_normal(stream_key, tick.number) if variable.noise else 0.0
        return low + (high - low) * share + noise

    return generate_value


def _compute_waveform_between_0_and_1(variable: SineVariable | RampVariable | SquareVariable, phase: float) -> float:
    if isinstance(variable, SineVariable):
        return (1 + math.sin(math.tau * phase)) / 2
    if isinstance(variable, RampVariable):
        return phase
    return 1.0 if phase >= 1 - variable.duty else 0.0


def _build_walk_generator(variable: RandomWalkVariable, seed: int, device_number: int) -> Generator:
    start = (variable.min + variable.max) / 2 if variable.start is None else variable.start
    day, walk = -1, RandomWalk(b"")

    def generate_value(tick: Tick) -> float:
        nonlocal day, walk
        if tick.days_since_1970 != day:
            day = tick.days_since_1970
            walk = RandomWalk(derive_stream_key(seed, device_number, variable.name, day))
        return reflect_into_range(
            start + variable.step * walk.compute_position(tick.index_in_day), variable.min, variable.max
        )

    return generate_value


def _build_choice_generator(variable: ChoiceVariable, stream_key: bytes) -> Generator:
    weights = variable.weights or (1.0,) * len(variable.values)
    if len(weights) != len(variable.values) or min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise ValueError(f"variable {variable.name}: needs one weight of 0 or more per value, and at least one above 0")
    bounds = list(accumulate(weights))
    last = len(bounds) - 1
    return lambda tick: variable.values[
        min(bisect_right(bounds, draw_uniform(stream_key, tick.number) * bounds[-1]), last)
    ]


FILL_MS = 10_000
"""Maximum age in milliseconds of missed messages that are sent after a start or a gap."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOGGER = get_logger("telemetry.simulators")


class SimulatedConnection:
    """Devices of one simulated connection.

    A message depends only on its tick (time), so a message that is sent again is recognised as a duplicate.

    Args:
        connection: a connection with a simulator.

    Raises:
        ValueError: if the connection has no simulator, or the declaration of a variable is invalid.
    """

    def __init__(self, connection: Connection) -> None:
        simulator = connection.simulator
        if simulator is None:
            raise ValueError(f"the connection {connection.lookup} has no simulator")
        self._lookup = connection.lookup
        self._interval_ms = simulator.interval_ms
        self._devices: list[tuple[str, list[tuple[str, Generator]]]] = [
            (
                f"{connection.lookup}-{device:02d}",
                [
                    (variable.name, build_generator(variable, simulator.seed, device))
                    for variable in simulator.variables
                ],
            )
            for device in range(1, simulator.devices + 1)
        ]

    def iterate_due_messages(self, after_ms: int, until_ms: int) -> Iterator[HubMessage]:
        """Yield the simulated messages due after ``after_ms`` up to ``until_ms``; both are milliseconds since 1970."""
        for number in range(after_ms // self._interval_ms + 1, until_ms // self._interval_ms + 1):
            yield from self._build_messages(Tick(number, self._interval_ms))

    def _build_messages(self, tick: Tick) -> Iterator[HubMessage]:
        timestamp = _EPOCH + timedelta(milliseconds=tick.milliseconds_since_1970)
        for device_id, variables in self._devices:
            message_id = f"{device_id}-{tick.number}"
            yield HubMessage(
                serialise_lossless_json({name: value(tick) for name, value in variables}),
                self._lookup,
                build_application_properties(self._lookup, timestamp, message_id, device_id, SIMULATOR),
            )


class Simulators:
    """Sends the messages of all simulated connections in the workspace."""

    def __init__(self, catalog: CurrentCatalog, sender: EventSender) -> None:
        self._catalog = catalog
        self._sender = sender
        self._version: int | None = None
        self._running: dict[str, SimulatedConnection] = {}
        self._sent_until_ms: dict[str, int] = {}

    async def send_and_count_due_messages(self, at: datetime) -> int:
        """Send the simulated messages that have become due since the last call; return their number.

        Args:
            at: current time, up to which messages are due.

        Raises:
            WorkspaceError: from the hub; the next run sends the messages again.
        """
        catalog = await self._catalog()
        if catalog.version != self._version:
            self._running = _create_simulators(catalog)
            self._version = catalog.version
        until_ms = (at - _EPOCH) // timedelta(milliseconds=1)
        messages = [
            message
            for lookup, simulated in self._running.items()
            for message in simulated.iterate_due_messages(self._get_start_ms(lookup, until_ms), until_ms)
        ]
        if messages:
            await self._sender.send(TELEMETRY_HUB, messages)
        self._sent_until_ms = dict.fromkeys(self._running, until_ms)
        return len(messages)

    def _get_start_ms(self, lookup: str, until_ms: int) -> int:
        """Return the time after which a connection's simulated messages are due, in milliseconds since 1970.

        This is the time up to which its messages were sent, but at most ``FILL_MS`` before ``until_ms``.
        """
        sent_until_ms = self._sent_until_ms.get(lookup, 0)
        oldest_ms = until_ms - FILL_MS
        # A clock that was set back counts as a start; the same ticks give the same messages.
        return sent_until_ms if oldest_ms <= sent_until_ms <= until_ms else oldest_ms


def _create_simulators(catalog: Catalog) -> dict[str, SimulatedConnection]:
    running: dict[str, SimulatedConnection] = {}
    for lookup, stored in sorted(catalog.connections.items()):
        connection = stored.value
        if connection.type is not ConnectionType.SIMULATOR or not connection.enabled or connection.simulator is None:
            continue
        try:
            running[lookup] = SimulatedConnection(connection)
        except ValueError:
            # An invalid simulator must not stop the others.
            _LOGGER.exception("a simulator cannot run", extra=fields(connection=lookup))
    return running
