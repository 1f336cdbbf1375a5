"""Tests of sorting several arrays by the first one."""

from tests.emulators.kusto.endpoints import Endpoint


def test_the_order_of_arrays_gives_the_names_of_columns(endpoint: Endpoint) -> None:
    """Each sorted array is a column with the name of the array."""
    table = endpoint.table("print x = dynamic([2, 1]), y = dynamic(['p', 'q']) | project array_sort_asc(x, y)")
    assert [column.column_name for column in table.columns] == ["x_sorted", "y_sorted"]
