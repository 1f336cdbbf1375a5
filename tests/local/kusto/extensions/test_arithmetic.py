"""Arithmetic of timespans, and sets in their order."""

from typing import Any

import pytest

from tests.local.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1h / 2", "00:30:00"),
        ("1h / 0.5", "02:00:00"),
        ("3h / 2h", 1.5),
        ("3h % 2h", "01:00:00"),
        ("1h * 1.5", "01:30:00"),
        ("1.5 * 1h", "01:30:00"),
        ("2 * 1h", "02:00:00"),
        ("1h / n", "00:15:00"),
        ("totimespan('02:00:00') / 1h", 2.0),
        ("set_union(dynamic([3, 1, 2]), dynamic([5, 3, 4, 1]))", [3, 1, 2, 5, 4]),
        ("set_intersect(dynamic([3, 1, 2]), dynamic([2, 3]))", [3, 2]),
        ("set_difference(dynamic([3, 1, 2, 3]), dynamic([2]))", [3, 1]),
    ],
)
def test_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """Timespans divide by numbers and by each other; a set keeps the order in which its elements come."""
    (row,) = endpoint.table(f"let n = 4; print x = {expression}").to_dict()["data"]
    (raw,) = endpoint.rows(f"let n = 4; print x = {expression}")
    assert value in (raw[0], row["x"])


def test_a_null_dynamic_is_a_dynamic(endpoint: Endpoint) -> None:
    """``dynamic(null)`` has the type that it names."""
    assert endpoint.rows("print x = dynamic(null) | getschema | project ColumnType") == [["dynamic"]]
