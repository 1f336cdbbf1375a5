"""Tests of the operator ``scan``, with the documented examples."""

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
def test_documented_examples(endpoint: Endpoint, query: str, rows: list[list[Any]]) -> None:
    """A scan returns the documented results."""
    assert endpoint.rows(query) == rows


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
    """Invalid and unsupported scans are rejected."""
    assert code in str(endpoint.error(query))


def test_scan_preserves_the_order(endpoint: Endpoint) -> None:
    """The result of a scan counts as serialized, so that window functions can follow."""
    query = "range x from 1 to 500 step 1 | scan with (step s: x % 2 == 0;) | where prev(x) + 2 == x | count"
    assert endpoint.rows(query) == [[249]]


@pytest.mark.parametrize(
    ("declared", "step"),
    [
        ("declare (c:long = 0)", "x % 3 != 0 => c = iff(s.c + x > 50, 0, s.c + x)"),
        ("declare (c:long = 0, d:long)", "x > s.x + 2 or isnull(s.x) => c = s.c + 1, d = s.x"),
        ("declare (c:long)", "x > 150"),
        ("", "isnull(s.x) or x >= 2 * s.x"),
    ],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_the_query_for_one_step_equals_the_general_one(
    endpoint: Endpoint, declared: str, step: str, *, partitioned: bool
) -> None:
    """The faster SQL for scans with one step returns the same rows as the SQL for any number of steps."""
    results = []
    for steps in (f"step s: {step};", f"step s: {step}; step never: false;"):
        scan = f"sort by x asc | scan with_match_id = m {declared} with ({steps})"
        scan = f"partition hint.strategy=native by g ({scan})" if partitioned else scan
        results.append(endpoint.rows(f"range x from 1 to 200 step 1 | extend g = x % 3 | {scan} | sort by x asc"))
    assert results[0] == results[1] != []
