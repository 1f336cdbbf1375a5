"""Figures: measured values of benchmarks, with the bounds that the values must keep."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """Measured value of a benchmark, with the bounds that the value must keep.

    Attributes:
        name: unique name in snake_case.
        value: measured value in ``unit``.
        at_least: smallest permitted value; None if there is no lower bound.
        at_most: largest permitted value; None if there is no upper bound.
        detail: measurements from which the value was computed.
    """

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the figure as the JSON object that ``python -m bench`` prints."""
        bounds = (("atLeast", self.at_least), ("atMost", self.at_most))
        bound = {name: value for name, value in bounds if value is not None}
        holds = self.value >= bound.get("atLeast", self.value) and self.value <= bound.get("atMost", self.value)
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "bound": bound,
            "holds": holds,
            "detail": self.detail,
        }


class ToolMissingError(Exception):
    """A benchmark requires a missing tool; the message names the tool and how to install it."""


type Benchmark = Callable[[], Iterator[Figure]]
