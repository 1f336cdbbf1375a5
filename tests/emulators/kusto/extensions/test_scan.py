"""Tests of the operator ``scan`` and of the plugins over neighbouring rows, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

EVENTS = "datatable(Ts:timespan, Event:string)"
CASES: list[tuple[str, list[list[Any]]]] = [
    (
        "range x from 1 to 5 step 1 | scan declare (c:long=0) with (step s1: true => c = x + s1.c;)",
        [[1, 1], [2, 3], [3, 6], [4, 10], [5, 15]],
    ),
    (
        (
            "range x from 1 to 5 step 1 | extend y = 2 * x | scan declare (a:long=0, b:long=0) with (step s1: true "
            "=> a = iff(s1.a >= 10, x, x + s1.a), b = iff(s1.b >= 10, y, y + s1.b);)"
        ),
        [[1, 2, 1, 2], [2, 4, 3, 6], [3, 6, 6, 12], [4, 8, 10, 8], [5, 10, 5, 18]],
    ),
    (
        (
            f'{EVENTS}[0m, "A", 1m, "", 2m, "B", 3m, ""] | sort by Ts asc | scan declare (f:string="") with '
            "(step s1: true => f = iff(isempty(Event), s1.f, Event);) | project f"
        ),
        [["A"], ["A"], ["B"], ["B"]],
    ),
    (
        (
            f'{EVENTS}[0m, "A", 1m, "A", 32m, "B", 36m, "C", 75m, "A"] | sort by Ts asc | scan with_match_id=id '
            "declare (start:timespan) with (step inSession: true => start = iff(isnull(inSession.start), Ts, "
            "inSession.start); step endSession output=none: Ts - inSession.start > 30m;) | project start, id"
        ),
        [["00:00:00", 0], ["00:00:00", 0], ["00:32:00", 1], ["00:32:00", 1], ["01:15:00", 2]],
    ),
    (
        (
            f'{EVENTS}[0m, "A", 1m, "Start", 2m, "B", 3m, "D", 4m, "Stop", 6m, "C", 8m, "Start", 11m, "E", 12m, '
            '"Stop"] | sort by Ts asc | scan with_match_id=id with (step s1: Event == "Start"; step s2: Event != '
            '"Start" and Event != "Stop" and Ts - s1.Ts <= 5m; step s3: Event == "Stop" and Ts - s1.Ts <= 5m;) '
            "| project Event, id"
        ),
        [["Start", 0], ["B", 0], ["D", 0], ["Stop", 0], ["Start", 1], ["E", 1], ["Stop", 1]],
    ),
    (
        (
            'datatable(t:long, u:int, e:string)[1, 1, "in", 2, 2, "in", 5, 1, "out", 9, 2, "out"] '
            "| partition hint.strategy=native by u (sort by t asc | scan declare (d:long) with (step s1 "
            'output=none: e == "in"; step s2: e == "out" => d = t - s1.t;)) | project u, d | sort by u asc'
        ),
        [[1, 4], [2, 7]],
    ),
    (
        (
            f'{EVENTS}[0m, "A", 1m, "Start", 2m, "B", 3m, "D", 4m, "Stop", 6m, "C", 8m, "Start", 9m, "Start", 11m, '
            '"E", 12m, "Stop"] | sort by Ts asc | scan with_match_id=id with (step s1 output=last: Event == "Start"; '
            'step s2 output=last: Event != "Start" and Event != "Stop" and Ts - s1.Ts <= 5m; step s3 output=last: '
            'Event == "Stop" and Ts - s1.Ts <= 5m;) | project Event, id'
        ),
        [["Start", 0], ["D", 0], ["Stop", 0], ["Start", 1], ["E", 1], ["Stop", 1]],
    ),
    (
        "range x from 1 to 6 step 1 | scan declare (n:long=0) with (step s1 output=last: x > 2 => n = s1.n + 1;)",
        [[6, 4]],
    ),
    (
        (
            "range x from 1 to 6 step 1 | extend k = x % 2 | partition hint.strategy=native by k (sort by x asc | scan "
            "with (step s1 output=last: true;)) | sort by x asc"
        ),
        [[5, 1], [6, 0]],
    ),
    ("let k = 2; range x from 1 to 4 step 1 | scan with (step s1: x > k;)", [[3], [4]]),
    ("range x from 1 to 0 step 1 | scan with (step s1: true;)", []),
    (
        "datatable(x:long)[1, 2, 3] | sort by x asc | scan with (step s1: true => x = x + iff(isnull(s1.x), 0, s1.x);)",
        [[1], [3], [6]],
    ),
    (
        (
            "datatable(x:long, y:string)[1, 'a', 2, 'b', 3, 'c'] | sort by x asc | scan declare (n:long) with "
            "(step s1: x < 3 => n = x, x = 10 * x; step s2: x == 3 => n = s1.x;)"
        ),
        [[10, "a", 1], [20, "b", 2], [3, "c", 20]],
    ),
]


@pytest.mark.parametrize(("query", "rows"), CASES)
def test_the_operator_scan_returns_the_documented_rows(endpoint: Endpoint, query: str, rows: list[list[Any]]) -> None:
    """A scan returns the documented results."""
    assert endpoint.query_rows(query) == rows


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("datatable(x:long)[1] | scan with (step s: true;)", "serialized"),
        ("range x from 1 to 3 step 1 | scan with (step s output=first: true;)", "could not be parsed"),
        ("range x from 1 to 3 step 1 | scan declare (x:long) with (step s: true;)", "EMB0001"),
        ("range x from 1 to 3 step 1 | scan with (step s: y > 1;)", "SEM0100"),
        ("range x from 1 to 3 step 1 | scan with (step s: true => d = x;)", "SEM0100"),
        ("range x from 1 to 3 step 1 | scan declare (d:long) with (step s: true => d = s.z;)", "SEM0100"),
        ("range x from 1 to 3 step 1 | scan declare (d:long=0) with (step s: true => d = d + 1;)", "EMB0001"),
        ("range x from 1 to 3 step 1 | scan declare (d:long=0) with (step s: d < 1 => d = x;)", "EMB0001"),
        ("range x from 1 to 3 step 1 | scan with (step s: true; step s: true;)", "SEM0100"),
        ("range x from 1 to 3 step 1 | scan with (step s: x in (information_schema.tables);)", "Semantic error"),
    ],
)
def test_unsupported_scans_are_rejected(endpoint: Endpoint, query: str, code: str) -> None:
    """Invalid and unsupported forms of the operator ``scan`` are rejected."""
    assert code in str(endpoint.query_error(query))


def test_the_result_of_a_scan_is_serialized(endpoint: Endpoint) -> None:
    """The result of a scan counts as serialized, so that window functions can follow it."""
    query = "range x from 1 to 500 step 1 | scan with (step s: x % 2 == 0;) | where prev(x) + 2 == x | count"
    assert endpoint.query_rows(query) == [[249]]


@pytest.mark.parametrize(
    ("declarations", "step"),
    [
        ("declare (c:long = 0)", "x % 3 != 0 => c = iff(s.c + x > 50, 0, s.c + x)"),
        ("declare (c:long = 0, d:long)", "x > s.x + 2 or isnull(s.x) => c = s.c + 1, d = s.x"),
        ("declare (c:long)", "x > 150"),
        ("", "isnull(s.x) or x >= 2 * s.x"),
    ],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_the_faster_sql_for_scans_with_one_step_returns_the_same_rows(
    endpoint: Endpoint, declarations: str, step: str, *, partitioned: bool
) -> None:
    """The faster SQL for a scan with one step returns the same rows as the SQL for any number of steps."""
    results = []
    for steps in (f"step s: {step};", f"step s: {step}; step never: false;"):
        scan = f"sort by x asc | scan with_match_id = m {declarations} with ({steps})"
        scan = f"partition hint.strategy=native by g ({scan})" if partitioned else scan
        results.append(endpoint.query_rows(f"range x from 1 to 200 step 1 | extend g = x % 3 | {scan} | sort by x asc"))
    assert results[0] == results[1] != []


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


def test_rolling_percentile_includes_preceding_bins(endpoint: Endpoint) -> None:
    """Each bin has the percentile of its own values and the values of the preceding bins."""
    table = endpoint.query_table(f"{HOURS} | evaluate rolling_percentile(val, 50, Timestamp, 1d, 3)")
    assert [each.column_name for each in table.columns] == ["Timestamp", "rolling_3_percentile_val_50"]
    assert [row[1] for row in table.raw_rows] == [12, 24, 36, 60, 84, 108, 132, 156, 180, 204]
    assert [row[0][:10] for row in table.raw_rows][:2] == ["2018-01-01", "2018-01-02"]


def test_rolling_percentiles_are_computed_separately_for_each_dimension(endpoint: Endpoint) -> None:
    """``rolling_percentile`` computes percentiles separately for each value of the dimension."""
    rows = endpoint.query_rows(f"{HOURS} | evaluate rolling_percentile(val, 50, Timestamp, 1d, 3, parity)")
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
def test_rows_near_returns_neighbours_once(endpoint: Endpoint, call: str, expected: list[int]) -> None:
    """``rows_near`` returns the rows before and after each matching row, in order and once."""
    assert endpoint.query_rows(f"{STATES} | evaluate {call} | project Value") == [[each] for each in expected]


def test_rows_near_returns_no_rows_of_other_partitions(endpoint: Endpoint) -> None:
    """In a partition, ``rows_near`` returns no rows of other groups."""
    query = (
        "datatable(k:string, i:long)['a', 1, 'a', 2, 'a', 3, 'b', 1, 'b', 2, 'b', 3]"
        " | partition hint.strategy=native by k (sort by i asc | evaluate rows_near(i == 1, 1)) | sort by k asc, i asc"
    )
    assert endpoint.query_rows(query) == [["a", 1], ["a", 2], ["b", 1], ["b", 2]]


def test_rows_near_requires_sorted_rows(endpoint: Endpoint) -> None:
    """``rows_near`` rejects unsorted rows, because these have no neighbours."""
    assert "must be serialized" in str(
        endpoint.query_error("print x = 1 | union (print x = 2) | evaluate rows_near(x == 1, 1)")
    )


def test_each_pair_of_events_within_the_limits_is_returned_once(endpoint: Endpoint) -> None:
    """Each pair of events that is within the time limits and has equal dimensions is returned once."""
    call = "sequence_detect(StartTime, 5d, 5d, heat=(EventType == 'Heat'), fire=(EventType == 'Wildfire'), State)"
    table = endpoint.query_table(f"{STORMS} | evaluate {call}")
    assert [each.column_name for each in table.columns] == ["State", "heat_StartTime", "fire_StartTime", "Duration"]
    expected: list[list[Any]] = [
        ["CA", "2007-05-08T00:00:00.000000Z", "2007-05-08T16:02:00.000000Z", "16:02:00"],
        ["CA", "2007-05-08T00:00:00.000000Z", "2007-05-10T11:30:00.000000Z", "2.11:30:00"],
    ]
    assert table.raw_rows == expected


def test_the_span_limits_the_whole_sequence_of_events(endpoint: Endpoint) -> None:
    """The whole sequence of events must be within the span, and two successive events within the step window."""
    events = "range t from 1 to 9 step 1 | where t in (1, 3, 6, 7)"
    call = "evaluate sequence_detect(t, {}, {}, a=(t == 1), b=(t > 1 and t < 7), c=(t > 5))"
    assert endpoint.query_rows(f"{events} | {call.format(4, 6)}") == [[1, 3, 6, 5], [1, 3, 7, 6]]
    assert endpoint.query_rows(f"{events} | {call.format(4, 5)}") == [[1, 3, 6, 5]]
    assert endpoint.query_rows(f"{events} | {call.format(3, 9)}") == [[1, 3, 6, 5]]


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
def test_invalid_calls_of_row_plugins_are_rejected(endpoint: Endpoint, call: str, message: str) -> None:
    """The error about an invalid argument names the plugin and the rule."""
    assert message in str(endpoint.query_error(f"{STATES} | evaluate {call}"))
