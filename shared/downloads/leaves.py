"""The leaves of payloads.

A leaf is every place that holds no object, or an empty one: a scalar, null, or an array, which stays whole.
"""

from collections.abc import Collection, Iterable
from typing import Final

from shared.errors import Kind, WorkspaceError

MAX_LEAVES: Final = 5_000
MAX_DEPTH: Final = 32
"""Objects nested deeper stay JSON text."""

ROOT: Final[tuple[str, ...]] = ()

type Path = tuple[str, ...]
"""The keys that lead from the payload to a value."""


def check_width(paths: Collection[Path]) -> None:
    """Return when so many leaves make a CSV file.

    Raises:
        WorkspaceError: UNPROCESSABLE ``DOWNLOAD_TOO_WIDE``.
    """
    if len(paths) > MAX_LEAVES:
        detail = f"The payloads have over {MAX_LEAVES} different keys, too many for columns; take jsonl or parquet."
        raise WorkspaceError(Kind.UNPROCESSABLE, "DOWNLOAD_TOO_WIDE", detail)


def inner(paths: Iterable[Path]) -> set[Path]:
    """Return the objects that lead to some leaves."""
    return {ROOT} | {path[:length] for path in paths for length in range(1, len(path))}
