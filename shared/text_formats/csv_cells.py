"""Escaping of CSV cells that a spreadsheet would evaluate as a formula."""

from typing import Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet evaluate a cell as a formula."""


def escape_csv_formula(cell_text: str) -> str:
    """Prefix the text of a cell with an apostrophe if a spreadsheet would evaluate it as a formula."""
    return f"'{cell_text}" if cell_text.startswith(FORMULA_STARTS) else cell_text
