"""Escapes text cells of CSV files that a spreadsheet would run as a formula."""

from typing import Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters with which a spreadsheet takes a cell for a formula."""


def escape_formula(text: str) -> str:
    """Return a text cell that no spreadsheet runs: with a leading apostrophe if it begins like a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
