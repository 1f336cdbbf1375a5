"""Problems of a workspace document with their positions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

type DocumentPath = tuple[str | int, ...]
"""Path of a value in a document: field names and list indexes from the root."""

type Violation = tuple[DocumentPath, str]
"""Path of an invalid value in a document, and the rule that it violates."""

type FieldViolation = tuple[str, str]
"""Name of an invalid field, and the rule that it violates."""

MAX_LISTED: Final = 20
MAX_PROBLEMS: Final = 1_000
"""Maximum number of problems that are found in one document; its validation then stops."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One error in a workspace document, with its line and column.

    Attributes:
        source: name of the file with the workspace document.
        line: line number, from 1.
        column: column in characters, from 1.
        field: path of the field, for instance ``connections[0].name``; empty for the whole document.
        message: sentence that states the violated rule.
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
        code: error code of the reply over HTTPS; empty for the usual code of an invalid document.
    """

    def __init__(self, problems: Iterable[Problem], code: str = "") -> None:
        self.code = code
        self.problems: Sequence[Problem] = sorted(problems)
        listed = [str(problem) for problem in self.problems[:MAX_LISTED]]
        remaining = len(self.problems) - len(listed)
        super().__init__("\n".join([*listed, f"... and {remaining} more"] if remaining else listed))


def format_path(path: DocumentPath) -> str:
    """Format the path of a value in a workspace document, for instance ``surfaces[2].connections[0]``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
