"""Reviewed lists of crash points, whose entries name functions and texts, so that they survive changes of line numbers.

An entry ``path function  # reason`` lists all awaits of a function and of the functions within it. An entry
``path function: text  # reason`` lists the awaits of the function that have this text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self

from tests.simulation.cosmos_world import replace_modules
from tests.simulation.crash_points import Await, list_awaits
from tests.simulation.exploration import list_components

EXCLUDED: Final = Path(__file__).parent / "excluded_crash_points.txt"
"""Crash points at which no world can crash a process."""
RARE: Final = Path(__file__).parent / "rare_crash_points.txt"
"""Crash points that even some runs of many worlds do not use."""


@dataclass(frozen=True, order=True)
class ListEntry:
    """Entry of a list of crash points.

    Attributes:
        path: path of a module in the repository.
        function: qualified name of a function.
        text: source text of the listed awaits; empty for all awaits of the function.
        reason: reason for which the entry is in the list; empty if none is given.
    """

    path: str
    function: str
    text: str
    reason: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse a line of a list."""
        place, _, reason = line.partition("  # ")
        path, _, rest = place.partition(" ")
        function, _, text = rest.partition(": ")
        return cls(path, function, text, reason.strip())

    def matches(self, found: Await) -> bool:
        """Return whether the entry lists an await."""
        is_in_function = found.function == self.function or found.function.startswith(f"{self.function}.<locals>.")
        return found.path == self.path and is_in_function and self.text in {"", found.text}


def read_entries(file: Path) -> list[ListEntry]:
    """Return the entries of a list of crash points, in their order."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [ListEntry.parse(line) for line in lines if line and not line.startswith("#")]


@cache
def list_awaits_of_components() -> tuple[Await, ...]:
    """Return the awaits of the modules of all components, with both kinds of stores."""
    modules = {
        module: None
        for component in list_components()
        for module in (*component.modules, *replace_modules(component.modules))
    }
    return tuple(found for module in modules for found in list_awaits(module))


def select_listed_points(file: Path, points: Iterable[str]) -> set[str]:
    """Return the crash points that a list contains: awaits, and both sides of the jobs that these awaits submit.

    Args:
        file: list of crash points.
        points: crash points to select from.
    """
    places = _find_listed_places(file)
    # The name of a job's side is the line that submits the job, and "before" or "after".
    return {point for point in points if point.removesuffix(" before").removesuffix(" after") in places}


@cache
def _find_listed_places(file: Path) -> frozenset[str]:
    """Return the crash points of the listed awaits, and the lines of these awaits."""
    entries = read_entries(file)
    listed = [found for found in list_awaits_of_components() if any(entry.matches(found) for entry in entries)]
    return frozenset(
        place for found in listed for place in (found.point, *(f"{found.path}:{line}" for line in found.lines))
    )
