"""Tests of the names of columns that a query does not name."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

NAMES = [
    # By the language service.
    ("dcount_hll(d)", ["dcount_hll_d"]),
    ("parse_xml(s)", ["s"]),
    ("series_fill_forward(d)", ["d"]),
    # Measured by the authors of the translator library, whatever the language service expects.
    ("strlen(s)", ["strlen_s"]),
    ("pow(x, 2)", ["Column1"]),
    ("exp10(x)", ["Column1"]),
    ("tolower(s)", ["Column1"]),
    # Two unnamed columns, and an expression that is no call.
    ("exp10(x), pow(x, 2)", ["Column1", "Column2"]),
    ("x + 1", ["Column1"]),
]


@pytest.mark.parametrize(("expression", "names"), NAMES)
def test_unnamed_columns_have_the_names_of_data_explorer(endpoint: Endpoint, expression: str, names: list[str]) -> None:
    """Unnamed columns have the names of Data Explorer, even where the language service has others."""
    table = endpoint.table(f"print x = 1.5, s = 'a', d = dynamic([1]) | project {expression}")
    assert [column.column_name for column in table.columns] == names
