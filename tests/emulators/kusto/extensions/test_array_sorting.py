"""Tests of the functions that sort several arrays by the values of the first array."""

from tests.emulators.kusto.endpoints import Endpoint


def test_the_order_of_arrays_gives_the_names_of_columns(endpoint: Endpoint) -> None:
    """Each sorted array is a column named after the unsorted array, with the suffix ``_sorted``."""
    table = endpoint.table("print x = dynamic([2, 1]), y = dynamic(['p', 'q']) | project array_sort_asc(x, y)")
    assert [column.column_name for column in table.columns] == ["x_sorted", "y_sorted"]
