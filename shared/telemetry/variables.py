"""The values of simulated variables: functions of the tick, the device and the seed."""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from shared.telemetry.noise import RandomWalk, derive_stream_key, normal_at, reflect, uniform_at

type Value = float | str | bool
type Generator = Callable[["Tick"], Value]

DAY_MS = 86_400_000
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Tick:
    """One moment of a simulator.

    Attributes:
        number: intervals since 1970-01-01T00:00:00Z.
        interval_ms: length of an interval, milliseconds.
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
    def of_day(self) -> int:
        """Ticks since the first one of the UTC day."""
        return self.number + (-self.day * DAY_MS // self.interval_ms)


def build_generator(variable: Variable, seed: int, device: int) -> Generator:
    """Return the function that gives a variable's value at a tick.

    Args:
        variable: its declaration.
        seed: the simulator's seed; the same seed gives the same values.
        device: 1 for the first device. Periodic variables of the others are shifted, so that devices differ.

    Raises:
        ValueError: the weights of a choice do not fit its values.
    """
    key = derive_stream_key(seed, device, variable.name)
    made: Generator
    match variable:
        case ConstantVariable():
            made = partial(_constant, variable)
        case SineVariable() | RampVariable() | SquareVariable():
            made = _periodic(variable, key, device)
        case RandomWalkVariable():
            made = _walk(variable, seed, device)
        case UniformVariable():
            made = partial(_uniform, variable, key)
        case NormalVariable():
            made = partial(_normal, variable, key)
        case ChoiceVariable():
            made = _choice(variable, key)
        case CounterVariable():
            made = partial(_counted, variable)
    return made


def _constant(variable: ConstantVariable, _: Tick) -> Value:
    return variable.value


def _uniform(variable: UniformVariable, key: bytes, tick: Tick) -> float:
    return variable.min + (variable.max - variable.min) * uniform_at(key, tick.number)


def _normal(variable: NormalVariable, key: bytes, tick: Tick) -> float:
    return variable.mean + variable.stdev * normal_at(key, tick.number)


def _counted(variable: CounterVariable, tick: Tick) -> int:
    steps = tick.of_day
    if variable.wrap is not None:
        steps = tick.number % _steps(variable.start, variable.wrap, variable.step)
    return variable.start + steps * variable.step


def _steps(start: int, wrap: int, step: int) -> int:
    """Return how many values a counter has before it would reach its wrap, at least one."""
    return max(1, -(-abs(wrap - start) // abs(step))) if step else 1


def _periodic(variable: SineVariable | RampVariable | SquareVariable, key: bytes, device: int) -> Generator:
    low, high = variable.min, variable.max
    period_ms = variable.period_sec * 1000
    # Multiples of the golden ratio spread any number of devices evenly over the period.
    shift = (device - 1) * _GOLDEN

    def value(tick: Tick) -> float:
        # The remainder first: divided as it is, the time since 1970 leaves a phase of eight digits.
        share = _share(variable, (math.fmod(tick.milliseconds, period_ms) / period_ms + shift) % 1.0)
        noise = variable.noise * normal_at(key, tick.number) if variable.noise else 0.0
        return low + (high - low) * share + noise

    return value


def _share(variable: SineVariable | RampVariable | SquareVariable, phase: float) -> float:
    if isinstance(variable, SineVariable):
        return (1 + math.sin(math.tau * phase)) / 2
    if isinstance(variable, RampVariable):
        return phase
    return 1.0 if phase >= 1 - variable.duty else 0.0


def _walk(variable: RandomWalkVariable, seed: int, device: int) -> Generator:
    start = (variable.min + variable.max) / 2 if variable.start is None else variable.start
    day, walk = -1, RandomWalk(b"")

    def value(tick: Tick) -> float:
        nonlocal day, walk
        if tick.day != day:
            day = tick.day
            walk = RandomWalk(derive_stream_key(seed, device, variable.name, day))
        return reflect(start + variable.step * walk.position_at(tick.of_day), variable.min, variable.max)

    return value


def _choice(variable: ChoiceVariable, key: bytes) -> Generator:
    weights = variable.weights or (1.0,) * len(variable.values)
    if len(weights) != len(variable.values) or min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise ValueError(f"{variable.name}: a weight of 0 or more is expected for each value, not all of them 0")
    bounds = list(accumulate(weights))
    last = len(bounds) - 1
    return lambda tick: variable.values[min(bisect_right(bounds, uniform_at(key, tick.number) * bounds[-1]), last)]
