"""Problems of a workspace document with their positions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

type Path = tuple[str | int, ...]
"""Path of a value in a document: field names and list indexes from the root."""

MAX_LISTED: Final = 20


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Violation of one rule.

    Attributes:
        source: file name.
        line: from 1.
        column: from 1, in characters.
        field: path of the field, for instance ``connections[0].name``; empty for the whole document.
        message: the rule.
    """

    source: str
    line: int
    column: int
    field: str
    message: str

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        return f"{self.source}:{self.line}:{self.column}: {field}{self.message}"


class DocumentError(ValueError):
    """Error for an invalid workspace document.

    Args:
        problems: all problems, at least one.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = sorted(problems)
        listed = [str(problem) for problem in self.problems[:MAX_LISTED]]
        remaining = len(self.problems) - len(listed)
        super().__init__("\n".join([*listed, f"... and {remaining} more"] if remaining else listed))


def format_path(path: Path) -> str:
    """Return a path as text, for instance ``surfaces[2].connections[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
