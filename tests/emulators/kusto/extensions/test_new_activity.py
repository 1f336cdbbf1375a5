"""Tests of the plugin ``new_activity_metrics``."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

USERS = """let Users = datatable(Timestamp:datetime, ids:dynamic)[
datetime(2019-11-01), dynamic([0,2,3,4]), datetime(2019-11-02), dynamic([0,1,3,4,5]),
datetime(2019-11-03), dynamic([0,2,4,5]), datetime(2019-11-04), dynamic([0,1,2,3]),
datetime(2019-11-05), dynamic([0,1,2,3,4])] | mv-expand user = ids to typeof(long)
| extend side = iff(user < 3, 'low', 'high');
let s = datetime(2019-11-01); let e = datetime(2019-11-07); let back = Users | where user in (2, 5);
"""


def replace_days(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the rows with the days of November 2019 in the first two values replaced by instants."""
    return [
        [f"2019-11-{row[0]:02d}T00:00:00.000000Z", f"2019-11-{row[1]:02d}T00:00:00.000000Z", *row[2:]] for row in rows
    ]


def test_new_activity(endpoint: Endpoint) -> None:
    """The metrics of each cohort in each window have the documented values."""
    table = endpoint.table(
        f"{USERS} Users | evaluate new_activity_metrics(user, Timestamp, s, e - 1microsecond, 1d)"
        " | where from_Timestamp < datetime(2019-11-03)"
    )
    assert [column.column_name for column in table.columns] == [
        "from_Timestamp", "to_Timestamp", "dcount_new_values", "dcount_retained_values", "dcount_churn_values",
        "retention_rate", "churn_rate",
    ]  # fmt: skip
    assert table.raw_rows == replace_days(
        [
            [1, 1, 4, 4, 0, 1.0, 0.0], [1, 2, 2, 3, 1, 0.75, 0.25], [1, 3, 1, 3, 1, 0.75, 0.25],
            [1, 4, 1, 3, 1, 0.75, 0.25], [1, 5, 1, 4, 0, 1.0, 0.0], [1, 6, 0, 0, 4, 0.0, 1.0],
            [2, 2, 2, 2, 0, 1.0, 0.0], [2, 3, 0, 1, 1, 0.5, 0.5], [2, 4, 0, 1, 1, 0.5, 0.5],
            [2, 5, 0, 1, 1, 0.5, 0.5], [2, 6, 0, 0, 2, 0.0, 1.0],
        ]
    )  # fmt: skip


def test_new_activity_by_week(endpoint: Endpoint) -> None:
    """Windows of ``'week'`` begin on Sunday, and events before the start are ignored."""
    assert endpoint.rows(
        f"{USERS} Users | evaluate new_activity_metrics(user, Timestamp, datetime(2019-11-02), e, 'week')"
        " | project from_Timestamp, to_Timestamp, dcount_new_values, dcount_retained_values"
    ) == [
        [f"2019-{begin}T00:00:00.000000Z", f"2019-{end_}T00:00:00.000000Z", new, retained]
        for begin, end_, new, retained in [
            ("10-27", "10-27", 5, 5),
            ("10-27", "11-03", 1, 5),
            ("11-03", "11-03", 1, 1),
        ]
    ]


@pytest.mark.parametrize("table", ["back", "(Users | where user in (2, 5))"])
def test_new_activity_with_cohort_dimension_and_lookback(endpoint: Endpoint, table: str) -> None:
    """The cohort selects a window, the dimension splits it, and ids that occur in the lookback period are not new."""
    query = (
        f"{USERS} Users | evaluate new_activity_metrics(user, Timestamp, s, datetime(2019-11-02), 1d, s, side, {table})"
    )
    rows = endpoint.rows(query)
    assert rows == replace_days(
        [
            [1, 1, "high", 2, 2, 0, 1.0, 0.0], [1, 1, "low", 1, 1, 0, 1.0, 0.0],
            [1, 2, "high", 0, 2, 0, 1.0, 0.0], [1, 2, "low", 1, 1, 0, 1.0, 0.0],
        ]
    )  # fmt: skip
