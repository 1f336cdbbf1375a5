"""What is wrong with a workspace document, and where it stands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

type Path = tuple[str | int, ...]
"""Where a value stands in a document: field names and list indexes from the top."""

MAX_LISTED: Final = 20


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One broken rule.

    Attributes:
        source: name of the file.
        line: from 1.
        column: from 1, in characters.
        field: the field's path, for instance ``connections[0].name``; empty for the document as a whole.
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
    """A workspace document that cannot be taken.

    Args:
        problems: every one that was found, at least one.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = sorted(problems)
        listed = [str(problem) for problem in self.problems[:MAX_LISTED]]
        left = len(self.problems) - len(listed)
        super().__init__("\n".join([*listed, f"... and {left} more"] if left else listed))


def format_path(path: Path) -> str:
    """Return a path as text, for instance ``surfaces[2].connections[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
