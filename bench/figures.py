"""Figures: measured values of benchmarks, with the bounds within which the values must be."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """Measured value of a benchmark, with the bounds within which it must be.

    Attributes:
        name: unique name in snake_case.
        value: measured value in ``unit``.
        at_least: smallest permitted value; None if there is no lower bound.
        at_most: largest permitted value; None if there is no upper bound. 0 if the figure counts defects.
        detail: measurements from which the value was computed.
    """

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def bound(self) -> dict[str, float]:
        """Bounds of the value, with the names ``atLeast`` and ``atMost``; empty if the figure has no bounds."""
        bounds = (("atLeast", self.at_least), ("atMost", self.at_most))
        return {name: value for name, value in bounds if value is not None}

    @property
    def is_defect_count(self) -> bool:
        """True if the bounds permit only one value, such as 0 errors; then a single bad run is a defect, not noise."""
        return self.at_most == 0 or (self.at_least is not None and self.at_least == self.at_most)

    def is_within_bounds(self, value: float) -> bool:
        """Return whether a value is within the bounds of this figure."""
        bound = self.bound
        return bound.get("atLeast", value) <= value <= bound.get("atMost", value)


def summarise_runs_as_json(runs: Sequence[Figure]) -> dict[str, Any]:
    """Return the JSON object that ``python -m bench`` prints for a figure: its median and spread over all runs.

    The property ``holds`` is True if the median is within the bounds; if the figure counts defects, the value of every
    run must be within them.

    Args:
        runs: the figure of each run of its benchmark; at least one.
    """
    values = sorted(run.value for run in runs)
    judged = values if runs[0].is_defect_count else [median(values)]
    middle = sorted(runs, key=lambda run: run.value)[len(runs) // 2]
    return {
        "name": middle.name,
        "value": round(median(values), 4),
        "unit": middle.unit,
        "bound": middle.bound,
        "holds": all(middle.is_within_bounds(value) for value in judged),
        "spread": {
            "runs": len(values),
            "minimum": round(values[0], 4),
            "median": round(median(values), 4),
            "maximum": round(values[-1], 4),
        },
        "detail": middle.detail,
    }


class ToolMissingError(Exception):
    """A benchmark requires a missing tool; the message names the tool and how to install it."""


type Benchmark = Callable[[], Iterator[Figure]]
