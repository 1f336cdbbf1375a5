"""Tests of the plugins that count events and distinct ids in time windows."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

USERS = """datatable(UserId:string, Timestamp:datetime)[
'Bob', datetime(2017 - 08 - 01), 'David', datetime(2017-08-01), 'David', datetime(2017-08-01),
'John', datetime(2017-08-01), 'Bob', datetime(2017-08-01), 'Ananda', datetime(2017-08-02),
'Atul', datetime(2017-08-02), 'John', datetime(2017-08-02), 'Ananda', datetime(2017-08-03),
'Atul', datetime(2017-08-03), 'Atul', datetime(2017-08-03), 'John', datetime(2017-08-03),
'Bob', datetime(2017-08-03), 'Betsy', datetime(2017-08-04), 'Bob', datetime(2017-08-05)]"""
LETTERS = """datatable(UserId:string, Timestamp:datetime)[
'A', datetime(2017-08-01), 'D', datetime(2017-08-01), 'J', datetime(2017-08-01), 'B', datetime(2017-08-01),
'C', datetime(2017-08-02), 'T', datetime(2017-08-02), 'J', datetime(2017-08-02), 'H', datetime(2017-08-03),
'T', datetime(2017-08-03), 'T', datetime(2017-08-03), 'J', datetime(2017-08-03), 'B', datetime(2017-08-03),
'S', datetime(2017-08-03), 'S', datetime(2017-08-04)]"""
FANS = """datatable(User:string, Timestamp:datetime)[
'B', datetime(2018-06-29), 'B', datetime(2018-06-30), 'A', datetime(2018-07-02), 'B', datetime(2018-07-04),
'B', datetime(2018-07-08), 'A', datetime(2018-07-10), 'A', datetime(2018-07-14), 'A', datetime(2018-07-17),
'A', datetime(2018-07-20), 'B', datetime(2018-07-24)]"""
IDS = "datatable(id:long, t:long, d:string)[1, 0, 'a', 1, 12, 'a', 2, 15, 'a', 2, 19, 'b', 3, 41, 'a']"
DAY = "T00:00:00.000000Z"


def build_datetimes_of_month(month: str, rows: list[list[Any]]) -> list[list[Any]]:
    """Return the rows; in each, a datetime in this month replaces the first value, a day of the month."""
    return [[f"{month}-{row[0]:02d}{DAY}", *row[1:]] for row in rows]


CASES: list[tuple[str, list[str], list[list[Any]]]] = [
    (
        (
            f"let s = datetime(2017 - 08 - 01); {USERS}"
            "| evaluate sliding_window_counts(UserId, Timestamp, s, datetime(2017-08-07), 3d, 1d)"
        ),
        ["Timestamp", "Count", "Dcount"],
        build_datetimes_of_month(
            "2017-08", [[1, 5, 3], [2, 8, 5], [3, 13, 5], [4, 9, 5], [5, 7, 5], [6, 2, 2], [7, 1, 1]]
        ),
    ),
    (
        (
            f"let window = 1d; {LETTERS} | evaluate "
            "activity_counts_metrics(UserId, Timestamp, datetime(2017-08-01), datetime(2017-08-04), window)"
        ),
        ["Timestamp", "count", "dcount", "new_dcount", "aggregated_dcount"],
        build_datetimes_of_month("2017-08", [[1, 4, 4, 4, 4], [2, 3, 3, 2, 6], [3, 6, 5, 2, 8], [4, 1, 1, 0, 8]]),
    ),
    (
        (
            f"{FANS} | evaluate "
            "active_users_count(User, Timestamp, datetime(2018-07-01), datetime(2018-07-31), 8d, 1d, 3, 7d)"
        ),
        ["Timestamp", "dcount"],
        build_datetimes_of_month("2018-07", [[1, 1], [15, 1]]),
    ),
    (
        f"{LETTERS} | evaluate activity_metrics(UserId, Timestamp, datetime(2017-08-01), datetime(2017-08-04), 1d)",
        ["Timestamp", "dcount_values", "dcount_newvalues", "retention_rate", "churn_rate"],
        build_datetimes_of_month(
            "2017-08", [[1, 4, 4, "NaN", "NaN"], [2, 3, 2, 0.25, 0.75], [3, 5, 3, 2 / 3, 1 / 3], [4, 1, 0, 0.2, 0.8]]
        ),
    ),
    (
        f"{LETTERS} | evaluate activity_metrics(UserId, Timestamp, 2d) | project Timestamp, dcount_values",
        ["Timestamp", "dcount_values"],
        [["2017-07-31T00:00:00.000000Z", 4], ["2017-08-02T00:00:00.000000Z", 6], ["2017-08-04T00:00:00.000000Z", 1]],
    ),
    (
        f"{IDS} | evaluate activity_engagement(id, t, 0, 49, 10, 20, d)",
        ["t", "d", "dcount_activities_inner", "dcount_activities_outer", "activity_ratio"],
        [
            [0, "a", 1, 1, 1.0],
            [10, "a", 2, 2, 1.0],
            [10, "b", 1, 1, 1.0],
            [20, "a", 0, 2, 0.0],
            [20, "b", 0, 1, 0.0],
            [40, "a", 1, 1, 1.0],
        ],
    ),
    (
        f"{IDS} | evaluate session_count(id, t, 0, 49, 10, 12)",
        ["t", "count_sessions"],
        [[0, 1], [10, 2], [40, 1]],
    ),
    (
        (
            "range t from 1 to 9999 step 1 | extend k = 1 "
            "| join kind=inner (range id from 1 to 50 step 1 | extend k = 1) on k | where t % id == 0 "
            "| project t, id | evaluate session_count(id, t, 1, 10000, 100, 41) | take 3"
        ),
        ["t", "count_sessions"],
        [[1, 59], [101, 59], [201, 60]],
    ),
    (
        "datatable(id:long, t:datetime)[] | evaluate activity_metrics(id, t, 1d) | count",
        ["Count"],
        [[0]],
    ),
]


@pytest.mark.parametrize(("query", "columns", "expected"), CASES)
def test_activity_plugins_return_the_documented_rows(
    endpoint: Endpoint, query: str, columns: list[str], expected: list[list[Any]]
) -> None:
    """The activity plugins return the columns and rows of the documented examples."""
    table = endpoint.query_table(query)
    assert [each.column_name for each in table.columns] == columns
    rows = (
        sorted(table.raw_rows, key=lambda row: [str(cell) for cell in row[:2]])
        if "engagement" in query
        else table.raw_rows
    )
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert row == [pytest.approx(cell) if isinstance(cell, float) else cell for cell in wanted]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("session_count(id, t)", "requires 2 columns and 4 constants"),
        ("activity_metrics(id, t, 0, 1)", "requires 2 columns and 1 or 3 constants"),
        ("session_count(id + 1, t, 0, 49, 10, 12)", "the first 2 arguments and the dimensions must be columns"),
        ("session_count(id, t, 0, 49, 10, 12, 5)", "the dimensions must be columns"),
        ("session_count(id, t, 0, 49, 'week', 12)", "must be numbers, datetimes or timespans"),
        ("session_count(missing, t, 0, 49, 10, 12)", "Failed to resolve column named 'missing'"),
        ("session_count(id, t, 0, 49, 0, 12)", "the size of a window must be positive"),
        ("session_count(id = id, t, 0, 49, 10, 12)", "does not accept named arguments"),
        ("session_count(id, t, 0, 49, 10, 12) : (a:long)", "session_count with an output schema"),
    ],
)
def test_invalid_arguments_of_activity_plugins_are_rejected(endpoint: Endpoint, call: str, message: str) -> None:
    """The error about an invalid argument names the plugin and the rule."""
    assert message in str(endpoint.query_error(f"{IDS} | evaluate {call}"))
