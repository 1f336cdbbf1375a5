"""Arithmetic of timespans, and sets in their order."""

from datetime import timedelta
from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint


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


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("span / whole", "00:15:00"),
        ("span / 0.5", "02:00:00"),
        ("(span + span) / whole", "00:30:00"),
        ("span / part", 60.0),
        ("real_ / zero", "Infinity"),
        ("-real_ / zero", "-Infinity"),
        ("(real_ - real_) / zero", "NaN"),
        ("whole / zero", None),
        ("7 / whole", 1),
        ("-7 / whole", -1),
        ("whole / real_", 2.0),
        ("whole / long(null)", None),
    ],
)
def test_columns_divide_by_their_types(endpoint: Endpoint, expression: str, value: Any) -> None:
    """What a query worked out divides by its type: integers by 0 are null, reals infinite, timespans stay so."""
    row = "print span = 1h, part = 1m, whole = 4, real_ = 2.0, zero = 0"
    assert endpoint.rows(f"{row} | extend x = {expression} | project x") == [[value]]


def test_aggregates_divide_by_their_types(endpoint: Endpoint) -> None:
    """A quotient of aggregates is of the types that they have."""
    rows = "datatable(t:timespan, n:long, v:real)[1h, 1, 1.0, 2h, 4, 2.0]"
    query = f"{rows} | summarize sum(t) / count(), sum(n) / count(), sum(v) / count(), sum(t) / 2 / count()"
    assert endpoint.rows(query) == [["01:30:00", 2, 1.5, "00:45:00"]]


@pytest.mark.parametrize("start", ["1h", "toint('7')", "x"])
def test_many_quotients_of_quotients_take_no_time(endpoint: Endpoint, start: str) -> None:
    """Each division inside another adds its own cost and does not double all of the others'."""
    assert (
        len(endpoint.rows(f"print x = 7 | extend y = {start}{' / 2' * 40}", servertimeout=timedelta(seconds=20))) == 1
    )


@pytest.mark.parametrize("query", ["extend q = d / 3", "extend q = d / d", "extend q = 1 / d", "summarize avg(d)"])
def test_decimals_are_not_divided(endpoint: Endpoint, query: str) -> None:
    """A quotient of decimals, which would lose digits as a real, is refused by name."""
    assert "EMB0001" in str(endpoint.error(f"datatable(d:decimal)[1] | {query}"))


def test_a_null_dynamic_is_a_dynamic(endpoint: Endpoint) -> None:
    """``dynamic(null)`` has the type that it names."""
    assert endpoint.rows("print x = dynamic(null) | getschema | project ColumnType") == [["dynamic"]]
