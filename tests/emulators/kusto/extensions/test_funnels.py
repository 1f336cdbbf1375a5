"""Tests of the plugins that follow ids over time, and of rejected arguments of plugins that count ids."""

from typing import Any

import pytest
from azure.kusto.data import KustoClient, KustoConnectionStringBuilder

from tests.emulators.kusto.endpoints import Endpoint

STEPS = """let Steps = datatable(id:long, t:datetime, s:string)[
1, datetime(2024-01-01 00:00), 'A', 1, datetime(2024-01-01 00:30), 'B', 1, datetime(2024-01-01 03:00), 'C',
2, datetime(2024-01-01 00:00), 'A', 2, datetime(2024-01-01 02:00), 'B', 3, datetime(2024-01-01 05:00), 'B'];
let begin = datetime(2024-01-01); let end_ = datetime(2024-01-02);
"""


def test_funnel_completion_counts_ids_per_state(endpoint: Endpoint) -> None:
    """The result has the number of ids that reached each state of the funnel in each period."""
    query = (
        f"{STEPS} let p = dynamic([1h, 4h]); Steps | evaluate funnel_sequence_completion(id, t, begin, end_, 1d, s, "
        "dynamic(['A', 'B', 'C']), p) | project s, Period, dcount"
    )
    assert endpoint.query_rows(query) == [
        ["A", "01:00:00", 2], ["B", "01:00:00", 1], ["C", "01:00:00", 0],
        ["A", "04:00:00", 2], ["B", "04:00:00", 2], ["C", "04:00:00", 1],
    ]  # fmt: skip


def test_funnel_sequence_counts_ids_by_state(endpoint: Endpoint) -> None:
    """The three tables of the result count ids by their state before and after the funnel's sequence."""
    query = f"{STEPS} Steps | evaluate funnel_sequence(id, t, begin, end_, 4h, 1d, s, dynamic(['B']))"
    with KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        tables = client.execute_query("Telemetry", query).primary_results
    columns = [[column.column_name for column in table.columns[1:-1]] for table in tables]
    assert columns == [["prev", "next", "dcount"], ["prev", "dcount"], ["next", "dcount"]]
    found = [sorted(row[1:-1] for row in table.raw_rows) for table in tables]
    assert found == [
        [["", "", 1], ["A", "", 1], ["A", "C", 1]],
        [["", 1], ["A", 2]],
        [["", 2], ["C", 1]],
    ]


def test_funnel_states_have_the_type_of_the_state_column(endpoint: Endpoint) -> None:
    """The states in the result of a funnel have the state column's type; a missing state is null."""
    table = endpoint.query_table(
        "datatable(id:long, t:datetime, s:long)[1, datetime(2024-01-01 00:00), 1, 1, datetime(2024-01-01 00:30), 2]"
        " | evaluate funnel_sequence(id, t, datetime(2024-01-01), datetime(2024-01-02), 1h, 1d, s, dynamic([2]))"
    )
    assert [column.column_type for column in table.columns][1:3] == ["long", "long"]
    assert [row[1:3] for row in table.raw_rows] == [[1, None]]


@pytest.mark.parametrize(
    "call",
    [
        "new_activity_metrics(user, Timestamp, s, e)",
        "new_activity_metrics(user, 1, s, e, 1d)",
        "new_activity_metrics(user, Timestamp, s, e, 1d, nothing)",
        "new_activity_metrics(user, Timestamp, s, e, 'month')",
        "new_activity_metrics(nothing, Timestamp, s, e, 1d)",
        "new_activity_metrics(user, Timestamp, s, e, 0d)",
        "funnel_sequence_completion(user, Timestamp, s, e, 1d, side, 'A', dynamic([1h]))",
        "funnel_sequence_completion(user, Timestamp, s, e, 1d, side, dynamic([]), dynamic([1h]))",
        "funnel_sequence_completion(user, Timestamp, s, e, 1d, nothing, dynamic(['a']), dynamic([1h]))",
        "funnel_sequence(user, Timestamp, s, e, 1h, 1d, side)",
        "dcount_intersect(user)",
        "dcount_intersect(user, nothing)",
    ],
)
def test_wrong_arguments_of_id_plugins_are_rejected(endpoint: Endpoint, call: str) -> None:
    """A call with a wrong number or type of arguments is rejected."""
    assert endpoint.query_error(f"{USERS} Users | evaluate {call}") is not None


@pytest.mark.parametrize(
    "states",
    [
        "pack_array('low', strcat('h', 'igh'))",
        "pack_array(strcat('l', 'ow'))",
        "pack_array('low', datetime(2024-01-01))",
        "pack_array()",
        "'low'",
        "5",
    ],
)
def test_a_funnel_whose_states_are_not_literals_is_rejected(endpoint: Endpoint, states: str) -> None:
    """The sequence of a funnel must be an array of literals with at least one element."""
    call = f"funnel_sequence_completion(user, Timestamp, s, e, 1d, side, {states}, dynamic([1h]))"
    assert "the sequence must be a constant array" in str(endpoint.query_error(f"{USERS} Users | evaluate {call}"))


@pytest.mark.parametrize("states", ["pack_array('A', b)", "dynamic(['A', 'B'])", "listed"])
def test_the_states_of_a_funnel_can_be_let_constants(endpoint: Endpoint, states: str) -> None:
    """The sequence of a funnel and its elements can be constants of ``let`` statements."""
    query = (
        f"{STEPS} let b = 'B'; let listed = pack_array('A', 'B'); Steps | evaluate funnel_sequence_completion("
        f"id, t, begin, end_, 1d, s, {states}, dynamic([4h])) | project s, dcount"
    )
    assert endpoint.query_rows(query) == [["A", 2], ["B", 2]]


USERS = """let Users = datatable(Timestamp:datetime, ids:dynamic)[
datetime(2019-11-01), dynamic([0,2,3,4]), datetime(2019-11-02), dynamic([0,1,3,4,5]),
datetime(2019-11-03), dynamic([0,2,4,5]), datetime(2019-11-04), dynamic([0,1,2,3]),
datetime(2019-11-05), dynamic([0,1,2,3,4])] | mv-expand user = ids to typeof(long)
| extend side = iff(user < 3, 'low', 'high');
let s = datetime(2019-11-01); let e = datetime(2019-11-07); let back = Users | where user in (2, 5);
"""


def build_november_datetimes(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the rows; in each, datetimes replace the first two values, which are days of November 2019."""
    return [
        [f"2019-11-{row[0]:02d}T00:00:00.000000Z", f"2019-11-{row[1]:02d}T00:00:00.000000Z", *row[2:]] for row in rows
    ]


def test_new_activity_metrics_have_the_documented_values(endpoint: Endpoint) -> None:
    """The metrics of each cohort in each window have the documented values."""
    table = endpoint.query_table(
        f"{USERS} Users | evaluate new_activity_metrics(user, Timestamp, s, e - 1microsecond, 1d)"
        " | where from_Timestamp < datetime(2019-11-03)"
    )
    assert [column.column_name for column in table.columns] == [
        "from_Timestamp", "to_Timestamp", "dcount_new_values", "dcount_retained_values", "dcount_churn_values",
        "retention_rate", "churn_rate",
    ]  # fmt: skip
    assert table.raw_rows == build_november_datetimes(
        [
            [1, 1, 4, 4, 0, 1.0, 0.0], [1, 2, 2, 3, 1, 0.75, 0.25], [1, 3, 1, 3, 1, 0.75, 0.25],
            [1, 4, 1, 3, 1, 0.75, 0.25], [1, 5, 1, 4, 0, 1.0, 0.0], [1, 6, 0, 0, 4, 0.0, 1.0],
            [2, 2, 2, 2, 0, 1.0, 0.0], [2, 3, 0, 1, 1, 0.5, 0.5], [2, 4, 0, 1, 1, 0.5, 0.5],
            [2, 5, 0, 1, 1, 0.5, 0.5], [2, 6, 0, 0, 2, 0.0, 1.0],
        ]
    )  # fmt: skip


def test_weekly_activity_windows_begin_on_sunday(endpoint: Endpoint) -> None:
    """Windows of ``'week'`` begin on Sunday; events before the start are ignored."""
    assert endpoint.query_rows(
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
def test_new_activity_counts_only_new_ids_of_the_cohort_per_dimension(endpoint: Endpoint, table: str) -> None:
    """Only ids of the cohort table are counted, separately for each dimension value.

    Ids in the lookback period are not new.
    """
    query = (
        f"{USERS} Users | evaluate new_activity_metrics(user, Timestamp, s, datetime(2019-11-02), 1d, s, side, {table})"
    )
    rows = endpoint.query_rows(query)
    assert rows == build_november_datetimes(
        [
            [1, 1, "high", 2, 2, 0, 1.0, 0.0], [1, 1, "low", 1, 1, 0, 1.0, 0.0],
            [1, 2, "high", 0, 2, 0, 1.0, 0.0], [1, 2, "low", 1, 1, 0, 1.0, 0.0],
        ]
    )  # fmt: skip
