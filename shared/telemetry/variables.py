"""Generators of simulated variables: functions of the tick, the device and the seed.

Random numbers have no state: each is a function of a stream's key and an index. Simulators can therefore restart at any
tick and produce the same values again.

Separate from ``simulators`` because the values depend on neither catalog nor hub.
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
"""Number of ticks of a walk; a day has 864,000 ticks of the shortest interval (100 ms)."""
type Value = float | str | bool
type Generator = Callable[["Tick"], Value]

DAY_MS = 86_400_000
_GOLDEN = (math.sqrt(5) - 1) / 2


def derive_stream_key(*parts: object) -> bytes:
    """Return the key of a stream; other parts give an independent stream."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()


def uniform_at(key: bytes, index: int) -> float:
    """Return a number of the stream by index, uniform in [0, 1)."""
    return (_draw_bits(key, index) >> 11) * 2.0**-53


def normal_at(key: bytes, index: int) -> float:
    """Return a number of the stream by index, normal with mean 0 and deviation 1 (Box and Muller, 1958)."""
    bits = _draw_bits(key, index)
    radius = math.sqrt(-2.0 * math.log(((bits >> 32) + 1) / 2**32))
    return radius * math.cos(math.tau * (bits & _MASK_32) / 2**32)


@dataclass(slots=True)
class RandomWalk:
    """Random walk with direct access to any position.

    The walk is built by bisection (Paul Lévy's construction of Brownian motion): the end of the day is drawn first,
    then each midpoint from its two neighbours. At whole ticks this is exactly a walk of independent normal steps. A
    position costs at most 20 draws after a restart, and two on average from one tick to the next.

    Attributes:
        key: key of the stream; the same key gives the same walk.
    """

    key: bytes
    _left: tuple[int, float] = (0, 0.0)
    _right: list[tuple[int, float]] = field(default_factory=list)

    def position_at(self, tick: int) -> float:
        """Return the sum of the first ``tick`` steps, each normal with deviation 1.

        Args:
            tick: from 0 to 2**20 inclusive, in any order; ascending order is fastest.
        """
        if tick < self._left[0] or not self._right:
            self._left, self._right = (0, 0.0), [(SPAN, normal_at(self.key, SPAN) * SPAN**0.5)]
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
        return place, (low + high) / 2 + normal_at(self.key, place) * deviation


def reflect(value: float, low: float, high: float) -> float:
    """Return a value after reflection at the ends of a range; ``low`` if the range is empty."""
    span = high - low
    if span <= 0:
        return low
    folded = (value - low) % (2 * span)
    return low + min(folded, 2 * span - folded)


def _draw_bits(key: bytes, index: int) -> int:
    return int.from_bytes(blake2b(index.to_bytes(8, "little"), digest_size=8, key=key).digest(), "little")


@dataclass(frozen=True, slots=True)
class Tick:
    """Point in time of a simulator.

    Attributes:
        number: intervals since 1970-01-01T00:00:00Z.
        interval_ms: length of an interval in milliseconds.
    """

    number: int
    interval_ms: int

    @property
    def milliseconds(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        return self.number * self.interval_ms

    @property
    def day(self) -> int:
        """UTC days since 1970-01-01."""
        return self.milliseconds // DAY_MS

    @property
    def index_in_day(self) -> int:
        """Number of ticks since the first tick of the UTC day."""
        return self.number + (-self.day * DAY_MS // self.interval_ms)


def build_generator(variable: Variable, seed: int, device: int) -> Generator:
    """Return the function that computes a variable's value at a tick.

    Args:
        variable: declaration of the variable.
        seed: seed of the simulator; the same seed gives the same values.
        device: 1 for the first device. Periodic variables of other devices are shifted, so that devices differ.

    Raises:
        ValueError: if the weights of a choice do not fit its values.
    """
    key = derive_stream_key(seed, device, variable.name)
    generate: Generator
    match variable:
        case ConstantVariable():
            generate = partial(_generate_constant, variable)
        case SineVariable() | RampVariable() | SquareVariable():
            generate = _build_periodic(variable, key, device)
        case RandomWalkVariable():
            generate = _build_random_walk(variable, seed, device)
        case UniformVariable():
            generate = partial(_generate_uniform, variable, key)
        case NormalVariable():
            generate = partial(_generate_normal, variable, key)
        case ChoiceVariable():
            generate = _build_choice(variable, key)
        case CounterVariable():
            generate = partial(_count, variable)
    return generate


def _generate_constant(variable: ConstantVariable, _: Tick) -> Value:
    return variable.value


def _generate_uniform(variable: UniformVariable, key: bytes, tick: Tick) -> float:
    return variable.min + (variable.max - variable.min) * uniform_at(key, tick.number)


def _generate_normal(variable: NormalVariable, key: bytes, tick: Tick) -> float:
    return variable.mean + variable.stdev * normal_at(key, tick.number)


def _count(variable: CounterVariable, tick: Tick) -> int:
    steps = tick.index_in_day
    if variable.wrap is not None:
        steps = tick.number % _count_steps(variable.start, variable.wrap, variable.step)
    return variable.start + steps * variable.step


def _count_steps(start: int, wrap: int, step: int) -> int:
    """Return the number of values of a counter before its wrap, at least one."""
    return max(1, -(-abs(wrap - start) // abs(step))) if step else 1


def _build_periodic(variable: SineVariable | RampVariable | SquareVariable, key: bytes, device: int) -> Generator:
    low, high = variable.min, variable.max
    period_ms = variable.period_sec * 1000
    # Multiples of the golden ratio distribute any number of devices evenly over the period.
    shift = (device - 1) * _GOLDEN

    def value(tick: Tick) -> float:
        # Reduce the time first: dividing the full time since 1970 would leave only eight digits of the phase.
        share = _compute_share(variable, (math.fmod(tick.milliseconds, period_ms) / period_ms + shift) % 1.0)
        noise = variable.noise * normal_at(key, tick.number) if variable.noise else 0.0
        return low + (high - low) * share + noise

    return value


def _compute_share(variable: SineVariable | RampVariable | SquareVariable, phase: float) -> float:
    if isinstance(variable, SineVariable):
        return (1 + math.sin(math.tau * phase)) / 2
    if isinstance(variable, RampVariable):
        return phase
    return 1.0 if phase >= 1 - variable.duty else 0.0


def _build_random_walk(variable: RandomWalkVariable, seed: int, device: int) -> Generator:
    start = (variable.min + variable.max) / 2 if variable.start is None else variable.start
    day, walk = -1, RandomWalk(b"")

    def value(tick: Tick) -> float:
        nonlocal day, walk
        if tick.day != day:
            day = tick.day
            walk = RandomWalk(derive_stream_key(seed, device, variable.name, day))
        return reflect(start + variable.step * walk.position_at(tick.index_in_day), variable.min, variable.max)

    return value


def _build_choice(variable: ChoiceVariable, key: bytes) -> Generator:
    weights = variable.weights or (1.0,) * len(variable.values)
    if len(weights) != len(variable.values) or min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise ValueError(f"{variable.name}: must have one weight of 0 or more for each value, and at least one above 0")
    bounds = list(accumulate(weights))
    last = len(bounds) - 1
    return lambda tick: variable.values[min(bisect_right(bounds, uniform_at(key, tick.number) * bounds[-1]), last)]
