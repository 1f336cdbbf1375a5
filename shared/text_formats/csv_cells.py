"""Escaping of CSV cells that a spreadsheet would evaluate as a formula."""

from typing import Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet evaluate a cell as a formula."""


def escape_formula(text: str) -> str:
    """Return a text cell, with a leading apostrophe if it begins like a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
