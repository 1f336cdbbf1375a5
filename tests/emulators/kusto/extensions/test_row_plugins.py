"""Tests of the plugins over neighbouring rows, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

HOURS = (
    "range i from 0 to 24*10-1 step 1 | project Timestamp = datetime(2018-01-01) + 1h * i, val = i + 1"
    " | extend parity = iff(val % 2 == 0, 'Even', 'Odd')"
)
STATES = """datatable(Timestamp:datetime, Value:long, State:string)[
datetime(2021-06-05), 15, "Success", datetime(2021-06-04), 11, "Success", datetime(2021-06-06), 2, "Success",
datetime(2021-06-07), 19, "Error", datetime(2021-06-08), 12, "Success", datetime(2021-06-09), 7, "Success",
datetime(2021-06-10), 9, "Success"] | sort by Timestamp asc"""
STORMS = """datatable(State:string, StartTime:datetime, EventType:string)[
'CA', datetime(2007-05-08), 'Heat', 'CA', datetime(2007-05-08), 'Heat', 'CA', datetime(2007-05-08 16:02), 'Wildfire',
'CA', datetime(2007-05-10 11:30), 'Wildfire', 'CA', datetime(2007-05-14), 'Wildfire',
'TX', datetime(2007-05-09), 'Wildfire', 'TX', datetime(2007-05-09), 'Heat']"""


def test_rolling_percentile(endpoint: Endpoint) -> None:
    """Each bin has the percentile of the values in this bin and the preceding bins."""
    table = endpoint.table(f"{HOURS} | evaluate rolling_percentile(val, 50, Timestamp, 1d, 3)")
    assert [each.column_name for each in table.columns] == ["Timestamp", "rolling_3_percentile_val_50"]
    assert [row[1] for row in table.raw_rows] == [12, 24, 36, 60, 84, 108, 132, 156, 180, 204]
    assert [row[0][:10] for row in table.raw_rows][:2] == ["2018-01-01", "2018-01-02"]


def test_rolling_percentile_by_dimension(endpoint: Endpoint) -> None:
    """For each value of the dimension, the percentiles are computed separately."""
    rows = endpoint.rows(f"{HOURS} | evaluate rolling_percentile(val, 50, Timestamp, 1d, 3, parity)")
    assert [row[2] for row in rows if row[1] == "Even"] == [12, 24, 36, 60, 84, 108, 132, 156, 180, 204]
    assert [row[2] for row in rows if row[1] == "Odd"] == [11, 23, 35, 59, 83, 107, 131, 155, 179, 203]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("rows_near(State == 'Error', 2)", [15, 2, 19, 12, 7]),
        ("rows_near(State == 'Error', 1, 2)", [2, 19, 12, 7]),
        ("rows_near(State == 'Error', 0)", [19]),
        ("rows_near(State == 'None', 2)", []),
        ("rows_near(Value < 3 or Value == 9, 0, 1)", [2, 19, 9]),
    ],
)
def test_rows_near(endpoint: Endpoint, call: str, expected: list[int]) -> None:
    """``rows_near`` returns the rows before and after each matching row, in order and each once."""
    assert endpoint.rows(f"{STATES} | evaluate {call} | project Value") == [[each] for each in expected]


def test_rows_near_inside_a_partition(endpoint: Endpoint) -> None:
    """Inside a partition, rows of other groups are not returned."""
    query = (
        "datatable(k:string, i:long)['a', 1, 'a', 2, 'a', 3, 'b', 1, 'b', 2, 'b', 3]"
        " | partition hint.strategy=native by k (sort by i asc | evaluate rows_near(i == 1, 1)) | sort by k asc, i asc"
    )
    assert endpoint.rows(query) == [["a", 1], ["a", 2], ["b", 1], ["b", 2]]


def test_rows_near_requires_sorted_rows(endpoint: Endpoint) -> None:
    """``rows_near`` rejects unsorted input, because unsorted rows have no neighbours."""
    assert "must be serialized" in str(
        endpoint.error("print x = 1 | union (print x = 2) | evaluate rows_near(x == 1, 1)")
    )


def test_sequences(endpoint: Endpoint) -> None:
    """Each pair of events within the time limits and with an equal dimension is returned once."""
    call = "sequence_detect(StartTime, 5d, 5d, heat=(EventType == 'Heat'), fire=(EventType == 'Wildfire'), State)"
    table = endpoint.table(f"{STORMS} | evaluate {call}")
    assert [each.column_name for each in table.columns] == ["State", "heat_StartTime", "fire_StartTime", "Duration"]
    expected: list[list[Any]] = [
        ["CA", "2007-05-08T00:00:00.000000Z", "2007-05-08T16:02:00.000000Z", "16:02:00"],
        ["CA", "2007-05-08T00:00:00.000000Z", "2007-05-10T11:30:00.000000Z", "2.11:30:00"],
    ]
    assert table.raw_rows == expected


def test_the_span_limits_all_steps(endpoint: Endpoint) -> None:
    """The whole sequence must be within the span, and two successive events within the step window."""
    events = "range t from 1 to 9 step 1 | where t in (1, 3, 6, 7)"
    call = "evaluate sequence_detect(t, {}, {}, a=(t == 1), b=(t > 1 and t < 7), c=(t > 5))"
    assert endpoint.rows(f"{events} | {call.format(4, 6)}") == [[1, 3, 6, 5], [1, 3, 7, 6]]
    assert endpoint.rows(f"{events} | {call.format(4, 5)}") == [[1, 3, 6, 5]]
    assert endpoint.rows(f"{events} | {call.format(3, 9)}") == [[1, 3, 6, 5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("rolling_percentile(Value, 50, Timestamp, 1d)", "rolling_percentile() requires a value"),
        ("rolling_percentile(Value + 1, 50, Timestamp, 1d, 3)", "the first argument must be a column"),
        ("rows_near(State == 'Error')", "rows_near() requires a condition"),
        ("sequence_detect(Timestamp, 1d, 1d)", "sequence_detect() requires a timeline column"),
        ("sequence_detect(Timestamp, 1d, 1d, a=(Value > 1), a=(Value > 2))", "give each predicate a name of its own"),
    ],
)
def test_invalid_calls_are_errors(endpoint: Endpoint, call: str, message: str) -> None:
    """The error about an invalid argument names the plugin and the rule."""
    assert message in str(endpoint.error(f"{STATES} | evaluate {call}"))
