"""Tests of the escaping of CSV cells."""

import pytest

from shared.text_formats.csv_cells import escape_csv_formula


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_in_a_csv_cell_is_escaped(text: str) -> None:
    """A text that a spreadsheet would evaluate is prefixed with an apostrophe."""
    assert escape_csv_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", " =1", "1-2", "'=1"])
def test_texts_that_are_no_formulas_are_unchanged(text: str) -> None:
    """A text that a spreadsheet does not evaluate is unchanged."""
    assert escape_csv_formula(text) == text
