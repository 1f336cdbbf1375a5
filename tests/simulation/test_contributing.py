"""Tests that the example component in CONTRIBUTING.md works."""

import re
from pathlib import Path
from typing import Any

from tests.simulation.component import Component
from tests.simulation.exploration import simulate_world

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def load_example() -> type[Component]:
    """Run the example code in CONTRIBUTING.md's section on simulation, and return the component."""
    section = CONTRIBUTING.read_text(encoding="utf-8").partition("## Simulation")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {"__name__": "example"}
    exec(code[1], names)
    found: type[Component] = names["ReadingsComponent"]
    return found


def test_the_example_component_runs() -> None:
    """A world can use the example component in CONTRIBUTING.md, and its invariant holds."""
    component = load_example()
    results = [simulate_world(seed, (component,)) for seed in range(5)]
    assert [result.violation for result in results] == [""] * 5
    assert sum("-> 201" in line for result in results for line in result.trace) > 5
