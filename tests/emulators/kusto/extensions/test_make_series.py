"""Tests of the operator ``make-series``: documented examples, bounds, defaults and keys."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

METRICS = """let data = datatable(timestamp:datetime, metric:real)[
    datetime(2016-12-31T06:00), 50, datetime(2017-01-01), 4, datetime(2017-01-02), 3, datetime(2017-01-03), 4,
    datetime(2017-01-03T03:00), 6, datetime(2017-01-05), 8, datetime(2017-01-05T13:40), 13, datetime(2017-01-06), 4,
    datetime(2017-01-07), 3, datetime(2017-01-08), 8, datetime(2017-01-08T21:00), 8, datetime(2017-01-09), 2,
    datetime(2017-01-09T12:00), 11, datetime(2017-01-10T05:00), 5];
let interval = 1d; let stime = datetime(2017-01-01); let etime = datetime(2017-01-10); """
DAYS = [f"2017-01-{day:02d}T00:00:00.0000000Z" for day in range(1, 10)]
AVERAGES = [4.0, 3.0, 5.0, 0.0, 10.5, 4.0, 3.0, 8.0, 6.5]
NUMBERS = "datatable(x:long, g:string, v:long)[1,'a',10, 5,'a',20, 7,'b',30, 12,'b',40]"
HOURS = "datatable(t:datetime, v:long)[datetime(2026-01-01T00:30:00), 1, datetime(2026-01-01T03:30:00), 2]"


def test_make_series_returns_the_documented_averages(endpoint: Endpoint) -> None:
    """``make-series`` returns the average of each day, and 0 for days without rows."""
    table = endpoint.query_table(
        METRICS + "data | make-series avg(metric) on timestamp from stime to etime step interval"
    )
    assert [(each.column_name, each.column_type) for each in table.columns] == [
        ("avg_metric", "dynamic"),
        ("timestamp", "dynamic"),
    ]
    assert table.raw_rows == [[AVERAGES, DAYS]]


def test_a_series_range_includes_its_stop(endpoint: Endpoint) -> None:
    """With ``in range()``, the series has a bin that contains the end of the range."""
    query = METRICS + "data | make-series avg(metric) on timestamp in range(stime, datetime(2017-01-09), interval)"
    assert endpoint.query_rows(query) == [[AVERAGES, DAYS]]


def test_make_series_over_an_empty_input_gives_no_series(endpoint: Endpoint) -> None:
    """An empty input gives no series or, with ``kind=nonempty``, one series of default values."""
    ending = "avg(metric) default=1.0 on timestamp from stime to etime step interval"
    assert endpoint.query_rows(METRICS + f"data | take 0 | make-series {ending} | count") == [[0]]
    assert endpoint.query_rows(METRICS + f"data | take 0 | make-series kind=nonempty {ending}") == [[[1.0] * 9, DAYS]]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            f"{NUMBERS} | make-series n=count(), s=sum(v) default=long(null) on x step 2 by g | order by g asc",
            [["a", [1, 0, 1], [10, None, 20], [0, 2, 4]], ["b", [1, 0, 0, 1], [30, None, None, 40], [6, 8, 10, 12]]],
        ),
        (
            f"{NUMBERS} | make-series sum(v) on x from 0 to 10 step 5 by g | order by g asc",
            [["a", [10, 20], [0, 5]], ["b", [0, 30], [0, 5]]],
        ),
        (
            "datatable(x:real, v:long)[0.25,1, 0.5,2, 1.75,3] | make-series sum(v) on x from 0.0 to 2.0 step 0.5",
            [[[1, 2, 0, 3], [0.0, 0.5, 1.0, 1.5]]],
        ),
        (
            "datatable(x:timespan, v:long)[1h,1, 90m,2, 26h,3] | make-series sum(v) on x from 0h to 28h step 12h",
            [[[3, 0, 3], ["00:00:00", "12:00:00", "1.00:00:00"]]],
        ),
        (
            f"{HOURS} | make-series s=sum(v) on t from datetime(2026-01-01T00:10) step 90m",
            [[[1, 0, 2], [f"2026-01-01T{each}:00.0000000Z" for each in ("00:10", "01:40", "03:10")]]],
        ),
        (
            f"{HOURS} | make-series s=sum(v) on t to datetime(2026-01-01T06:00) step 1h | project s",
            [[[1, 0, 0, 2, 0, 0]]],
        ),
    ],
)
def test_the_axis_of_a_series_can_have_times_timespans_or_numbers(
    endpoint: Endpoint, query: str, rows: list[Any]
) -> None:
    """An axis may have datetimes, timespans or numbers; without bounds, a series ends at its last row."""
    assert endpoint.query_rows(query) == rows


def test_the_bounds_of_a_series_can_be_parameters_or_subqueries(endpoint: Endpoint) -> None:
    """A bound may be a query parameter or the result of a subquery."""
    query = (
        "declare query_parameters(_from:datetime, step:timespan); Telemetry | where DeviceId == 'dev-01' | make-series"
        " n=count() on Timestamp from _from to toscalar(Telemetry | summarize max(Timestamp)) step step | project n"
    )
    assert endpoint.query_rows(query, {"_from": "datetime(2026-01-01)", "step": "time(12:00:00)"}) == [[[36, 36, 28]]]


def test_a_series_expands_into_typed_rows(endpoint: Endpoint) -> None:
    """``mv-expand`` with types converts a series to rows of these types."""
    query = (
        f"{HOURS} | make-series s=sum(v) default=0.0 on t step 1h | mv-expand t to typeof(datetime), s to typeof(real)"
    )
    table = endpoint.query_table(query)
    assert [each.column_type for each in table.columns] == ["real", "datetime"]
    assert table.raw_rows[3] == [2.0, "2026-01-01T03:00:00.000000Z"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (f"{NUMBERS} | make-series make_list(v) on x step 1", "make-series with make_list() as an aggregate"),
        (f"{NUMBERS} | make-series kind=full sum(v) on x step 1", "make-series kind=full"),
        (f"{NUMBERS} | make-series kind=nonempty sum(v) on x from 0 to 5 step 1 by g", "make-series kind=nonempty"),
        (f"{NUMBERS} | make-series sum(v) on x step 0", "the step of make-series must be above zero"),
        (f"{NUMBERS} | make-series sum(v) on x from 0 to 9999999 step 1", "at most 1048576 elements"),
        (f"{NUMBERS} | make-series sum(v) on x in range(1, 9, 2)", "not a multiple of the step"),
        (f"{NUMBERS} | make-series sum(v) on x from v to 9 step 1", "make-series with bounds that refer to columns"),
        (f"{NUMBERS} | make-series sum(v) on x step 1 by in_other(g)", "in_other"),
    ],
)
def test_unsupported_make_series_constructs_are_rejected(endpoint: Endpoint, query: str, named: str) -> None:
    """An unsupported or invalid construct is rejected with its name."""
    assert named in str(endpoint.query_error(query))
