"""Simulation of worlds, each of which is determined by its seed."""

import hashlib
import random
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.simulation.component import Component
from tests.simulation.cosmos_world import replace_modules, uses_cosmos
from tests.simulation.crash_points import list_awaits
from tests.simulation.environment import make_template, prepare_process
from tests.simulation.small_limits import use_small_limits
from tests.simulation.world import CrashPoints, ViolationError, World

_FOLDER: Final = Path(__file__).parent / "components"
_NUMBERS_OF_COMPONENTS: Final = (*(1,) * 48, 2, 3)
"""Numbers of components of a world; many small worlds reach more than few large ones in the same time."""


@dataclass(frozen=True)
class Exploration:
    """Result of one simulated world.

    Attributes:
        seed: seed of the world.
        violation: text of the invariant that does not hold; empty if all hold.
        trace: every step that the trace records.
        points: crash points.
    """

    seed: int
    violation: str
    trace: list[str]
    points: CrashPoints

    @property
    def digest(self) -> str:
        """Hash of the world's trace, which is equal for equal runs."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


@cache
def list_components() -> tuple[type[Component], ...]:
    """Return the component classes of all modules in the folder ``components``, by name."""
    found: set[type[Component]] = set()
    for path in _FOLDER.glob("*.py"):
        module = import_module(f"tests.simulation.components.{path.stem}")
        found |= {
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Component) and value.__module__ == module.__name__
        }
    return tuple(sorted(found, key=lambda component: component.name))


@cache
def list_crash_points_in_code(component: type[Component], *, with_cosmos: bool) -> tuple[str, ...]:
    """Return the awaits in a component's code, at which the simulation can crash a process.

    Args:
        component: the component.
        with_cosmos: whether its stores are in Cosmos DB.
    """
    modules = replace_modules(component.modules) if with_cosmos else component.modules
    return tuple(dict.fromkeys(each.point for module in modules for each in list_awaits(module)))


def choose_components(seed: int, unused: Collection[str] | None = None) -> tuple[type[Component], ...]:
    """Return one to three random components, of which no two change the same part of the workspace.

    A world with Cosmos DB has one component, because the SDK makes its steps several times as expensive. The weights of
    the components depend on their cost: the cheaper its worlds, the more of them a component gets.

    Args:
        seed: seed of the world.
        unused: crash points that no world has used; a component with many of them is chosen more often. None to use
            only the weights.
    """
    known = list_components()
    source = random.Random(f"components {seed}")
    with_cosmos = uses_cosmos(seed)
    number = 1 if with_cosmos else source.choice(_NUMBERS_OF_COMPONENTS)
    weights = [each.cosmos_weight if with_cosmos else each.weight for each in known]
    if unused is not None:
        missing = frozenset(unused)
        counts = [len(missing & _find_points(each, with_cosmos=with_cosmos)) for each in known]
        weights = [weight + count for weight, count in zip(weights, counts, strict=True)]
    drawn = source.sample(known, min(number, len(known)), counts=weights)
    return tuple({component.owned or component.name: component for component in drawn}.values())


@cache
def _find_points(component: type[Component], *, with_cosmos: bool) -> frozenset[str]:
    return frozenset(list_crash_points_in_code(component, with_cosmos=with_cosmos))


def simulate_world(
    seed: int, components: tuple[type[Component], ...] | None = None, targets: Collection[str] | None = None
) -> Exploration:
    """Simulate the world of a seed and return the result.

    Args:
        seed: seed of the world.
        components: components of the world; None for those that the seed chooses.
        targets: crash points at which the world aims; None to let the seed choose.
    """
    prepare_process()
    chosen = choose_components(seed) if components is None else components
    with_cosmos = uses_cosmos(seed)
    aims = [aim for component in chosen for aim in list_crash_points_in_code(component, with_cosmos=with_cosmos)]
    template = make_template(with_cosmos=with_cosmos)
    with use_small_limits(seed):
        return _run_world(World(seed, chosen, template, aims, targets))


def _run_world(world: World) -> Exploration:
    violation = ""
    try:
        world.run()
    except ViolationError as error:
        violation = str(error)
    except Exception as error:  # noqa: BLE001  the model met a state that it does not know
        violation = f"{error!r} {traceback.extract_tb(error.__traceback__)[-1]}"
    return Exploration(world.seed, violation, world.lines, world.points)
