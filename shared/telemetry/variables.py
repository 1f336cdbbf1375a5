"""Generators of simulated values: functions of the tick (time), the device and the seed.

Random numbers have no state: each is a function of a key, which names a stream of numbers, and an index. Simulators can
therefore restart at any tick and produce the same values again.

Separate from ``simulators`` because the values depend on neither the catalog nor the event hub.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import accumulate

from shared.catalog.models import (
    ChoiceVariable,
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

_MASK_32 = 2**32 - 1
SPAN = 2**20
"""Number of steps of a random walk; a day has at most 864,000 ticks, with the shortest interval of 100 ms."""
type Value = float | str | bool
type Generator = Callable[["Tick"], Value]

DAY_MS = 86_400_000
_GOLDEN = (math.sqrt(5) - 1) / 2


def derive_stream_key(*parts: object) -> bytes:
    """Derive the key of a stream of random numbers from its name; different names give independent streams."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()


def draw_uniform(key: bytes, index: int) -> float:
    """Return the random number at an index of a stream, uniformly distributed in [0, 1)."""
    return (_draw_bits(key, index) >> 11) * 2.0**-53


def draw_normal(key: bytes, index: int) -> float:
    """Return the random number at an index of a stream, standard normally distributed (Box and Muller, 1958)."""
    bits = _draw_bits(key, index)
    radius = math.sqrt(-2.0 * math.log(((bits >> 32) + 1) / 2**32))
    return radius * math.cos(math.tau * (bits & _MASK_32) / 2**32)


@dataclass(slots=True)
class RandomWalk:
    """Random walk whose position at any tick can be computed without all earlier steps.

    The walk is built by bisection (Paul Lévy's construction of Brownian motion): the end of the day is drawn first,
    then each midpoint from its two neighbours. At whole ticks this is exactly a walk of independent normal steps. A
    position costs at most 20 draws after a restart, and two on average from one tick to the next.

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
            middle = self._draw_midpoint()
            if middle[0] <= tick:
                self._left = middle
            else:
                self._right.append(middle)
        return self._left[1]

    def _draw_midpoint(self) -> tuple[int, float]:
        (left, low), (right, high) = self._left, self._right[-1]
        place = (left + right) // 2
        deviation = (right - left) ** 0.5 / 2
        return place, (low + high) / 2 + draw_normal(self.key, place) * deviation


def reflect_into_range(value: float, low: float, high: float) -> float:
    """Reflect a value at the ends of a range until the value is inside; return ``low`` if the range is empty."""
    span = high - low
    if span <= 0:
        return low
    folded = (value - low) % (2 * span)
    return low + min(folded, 2 * span - folded)


def _draw_bits(key: bytes, index: int) -> int:
    return int.from_bytes(blake2b(index.to_bytes(8, "little"), digest_size=8, key=key).digest(), "little")


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
    def milliseconds(self) -> int:
        """Time of the tick in milliseconds since 1970-01-01T00:00:00Z."""
        return self.number * self.interval_ms

    @property
    def day(self) -> int:
        """Day of the tick, as the number of UTC days since 1970-01-01."""
        return self.milliseconds // DAY_MS

    @property
    def index_in_day(self) -> int:
        """Index of this tick in its UTC day; the first tick of the day has the index 0."""
        return self.number + (-self.day * DAY_MS // self.interval_ms)


def build_generator(variable: Variable, seed: int, device: int) -> Generator:
    """Build the function that computes the value of a simulated variable at a tick.

    Args:
        variable: declaration of the variable.
        seed: seed of the simulator; the same seed gives the same values.
        device: number of the device, from 1. Periodic variables are shifted in time for other devices, so that devices
            differ.

    Raises:
        ValueError: if the weights of a choice do not fit its values.
    """
    key = derive_stream_key(seed, device, variable.name)
    generate: Generator
    match variable:
        case ConstantVariable():
            generate = partial(_generate_constant, variable)
        case SineVariable() | RampVariable() | SquareVariable():
            generate = _build_periodic_generator(variable, key, device)
        case RandomWalkVariable():
            generate = _build_walk_generator(variable, seed, device)
        case UniformVariable():
            generate = partial(_generate_uniform, variable, key)
        case NormalVariable():
            generate = partial(_generate_normal, variable, key)
        case ChoiceVariable():
            generate = _build_choice_generator(variable, key)
        case CounterVariable():
            generate = partial(_generate_count, variable)
    return generate


def _generate_constant(variable: ConstantVariable, _: Tick) -> Value:
    return variable.value


def _generate_uniform(variable: UniformVariable, key: bytes, tick: Tick) -> float:
    return variable.min + (variable.max - variable.min) * draw_uniform(key, tick.number)


def _generate_normal(variable: NormalVariable, key: bytes, tick: Tick) -> float:
    return variable.mean + variable.stdev * draw_normal(key, tick.number)


def _generate_count(variable: CounterVariable, tick: Tick) -> int:
    steps = tick.index_in_day
    if variable.wrap is not None:
        steps = tick.number % _count_values_before_restart(variable.start, variable.wrap, variable.step)
    return variable.start + steps * variable.step


def _count_values_before_restart(start: int, wrap: int, step: int) -> int:
    """Return the number of values that a simulated counter has before it restarts, at least one."""
    return max(1, -(-abs(wrap - start) // abs(step))) if step else 1


def _build_periodic_generator(
    variable: SineVariable | RampVariable | SquareVariable, key: bytes, device: int
) -> Generator:
    low, high = variable.min, variable.max
    period_ms = variable.period_sec * 1000
    # Multiples of the golden ratio distribute any number of devices evenly over the period.
    shift = (device - 1) * _GOLDEN

    def generate_value(tick: Tick) -> float:
        # Reduce the time first: dividing the full time since 1970 would leave only eight digits of the phase.
        share = _compute_waveform(variable, (math.fmod(tick.milliseconds, period_ms) / period_ms + shift) % 1.0)
        noise = variable.noise * draw_normal(key, tick.number) if variable.noise else 0.0
        return low + (high - low) * share + noise

    return generate_value


def _compute_waveform(variable: SineVariable | RampVariable | SquareVariable, phase: float) -> float:
    if isinstance(variable, SineVariable):
        return (1 + math.sin(math.tau * phase)) / 2
    if isinstance(variable, RampVariable):
        return phase
    return 1.0 if phase >= 1 - variable.duty else 0.0


def _build_walk_generator(variable: RandomWalkVariable, seed: int, device: int) -> Generator:
    start = (variable.min + variable.max) / 2 if variable.start is None else variable.start
    day, walk = -1, RandomWalk(b"")

    def generate_value(tick: Tick) -> float:
        nonlocal day, walk
        if tick.day != day:
            day = tick.day
            walk = RandomWalk(derive_stream_key(seed, device, variable.name, day))
        return reflect_into_range(
            start + variable.step * walk.compute_position(tick.index_in_day), variable.min, variable.max
        )

    return generate_value


def _build_choice_generator(variable: ChoiceVariable, key: bytes) -> Generator:
    weights = variable.weights or (1.0,) * len(variable.values)
    if len(weights) != len(variable.values) or min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise ValueError(f"{variable.name}: must have one weight of 0 or more for each value, and at least one above 0")
    bounds = list(accumulate(weights))
    last = len(bounds) - 1
    return lambda tick: variable.values[min(bisect_right(bounds, draw_uniform(key, tick.number) * bounds[-1]), last)]
