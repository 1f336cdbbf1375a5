"""Tests of the funnel plugins, and of wrong arguments of plugins over sets of ids."""

import pytest
from azure.kusto.data import KustoClient, KustoConnectionStringBuilder

from tests.emulators.kusto.endpoints import Endpoint
from tests.emulators.kusto.extensions.test_new_activity import USERS

STEPS = """let Steps = datatable(id:long, t:datetime, s:string)[
1, datetime(2024-01-01 00:00), 'A', 1, datetime(2024-01-01 00:30), 'B', 1, datetime(2024-01-01 03:00), 'C',
2, datetime(2024-01-01 00:00), 'A', 2, datetime(2024-01-01 02:00), 'B', 3, datetime(2024-01-01 05:00), 'B'];
let begin = datetime(2024-01-01); let end_ = datetime(2024-01-02);
"""


def test_funnel_completion(endpoint: Endpoint) -> None:
    """The result has the number of ids that reached each state of the funnel within each period."""
    query = (
        f"{STEPS} let p = dynamic([1h, 4h]); Steps | evaluate funnel_sequence_completion(id, t, begin, end_, 1d, s, "
        "dynamic(['A', 'B', 'C']), p) | project s, Period, dcount"
    )
    assert endpoint.rows(query) == [
        ["A", "01:00:00", 2], ["B", "01:00:00", 1], ["C", "01:00:00", 0],
        ["A", "04:00:00", 2], ["B", "04:00:00", 2], ["C", "04:00:00", 1],
    ]  # fmt: skip


def test_funnel_sequence(endpoint: Endpoint) -> None:
    """The three result tables count ids by the state before and after the sequence of the funnel."""
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


def test_states_have_the_type_of_their_column(endpoint: Endpoint) -> None:
    """The states in the result have the type of the state column; a missing state is null."""
    table = endpoint.table(
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
def test_wrong_arguments(endpoint: Endpoint, call: str) -> None:
    """A call with a wrong number or type of arguments is rejected."""
    assert endpoint.error(f"{USERS} Users | evaluate {call}") is not None
