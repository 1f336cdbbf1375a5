"""Finds the known name that a misspelt one most resembles, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_COMPARED = 64
"""Characters of a misspelt name that are compared; no known name is longer."""


def nearest_name(wanted: str, known: Iterable[str]) -> str | None:
    """Return the known name that most resembles a name, None when none does.

    Letter case, underscores and hyphens do not count.
    """
    folded = {_fold(name): name for name in known}
    close = get_close_matches(_fold(wanted[:MAX_COMPARED]), folded, n=1)
    return folded[close[0]] if close else None


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
