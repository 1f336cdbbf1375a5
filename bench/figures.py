"""Figures, the results of benchmarks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Attributes:
        name: unique, snake_case.
        value: value in ``unit``.
        at_least: lower bound, or None.
        at_most: upper bound, or None.
        detail: measurements behind the figure.
    """

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the figure as the JSON object to print."""
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
    """A benchmark requires a missing tool; the message says which, and how to install it."""


type Benchmark = Callable[[], Iterator[Figure]]
