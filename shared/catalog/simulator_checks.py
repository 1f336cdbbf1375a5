"""The rules within a simulator that its fields alone cannot state."""

from collections.abc import Iterator
from typing import assert_never

from shared.catalog.models import (
    ChoiceVariable,
    ConstantVariable,
    CounterVariable,
    NormalVariable,
    RampVariable,
    RandomWalkVariable,
    Simulator,
    SineVariable,
    SquareVariable,
    UniformVariable,
    Variable,
)
from shared.catalog.problems import Path


def check_simulator(at: Path, simulator: Simulator) -> Iterator[tuple[Path, str]]:
    """Yield the broken rules of a simulator.

    Args:
        at: the simulator's path.
        simulator: a simulator whose fields are sound one by one.
    """
    seen: set[str] = set()
    for index, variable in enumerate(simulator.variables):
        place = (*at, "variables", index)
        if variable.name in seen:
            yield (*place, "name"), "is already the name of another variable of this simulator"
        seen.add(variable.name)
        yield from (((*place, field), message) for field, message in _variable(variable))


def _variable(variable: Variable) -> Iterator[tuple[str, str]]:
    match variable:
        case SineVariable() | RampVariable() | SquareVariable() | UniformVariable():
            yield from _range(variable.min, variable.max)
        case RandomWalkVariable():
            yield from _range(variable.min, variable.max)
            if variable.start is not None and not variable.min <= variable.start <= variable.max:
                yield "start", "must lie between min and max"
        case ChoiceVariable():
            yield from _weights(variable)
        case CounterVariable():
            yield from _wrap(variable)
        case ConstantVariable() | NormalVariable():
            return
        case _:
            assert_never(variable)


def _range(low: float, high: float) -> Iterator[tuple[str, str]]:
    if low > high:
        yield "min", "must not be above max"


def _wrap(variable: CounterVariable) -> Iterator[tuple[str, str]]:
    if variable.wrap is not None and variable.step and (variable.wrap - variable.start) * variable.step <= 0:
        yield "wrap", f"must be {'above' if variable.step > 0 else 'below'} start, where the steps lead"


def _weights(variable: ChoiceVariable) -> Iterator[tuple[str, str]]:
    weights = variable.weights
    if weights is None:
        return
    if len(weights) != len(variable.values):
        yield "weights", f"must hold one weight for each of the {len(variable.values)} values"
    if min(weights, default=0) < 0 or sum(weights) <= 0:
        yield "weights", "must not be negative, and one at least must be above 0"
