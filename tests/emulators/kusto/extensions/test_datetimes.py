"""Tests of functions over instants and timespans, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

VALUES: list[tuple[str, Any]] = [
    ("unixtime_seconds_todatetime(1546300800)", "2019-01-01T00:00:00.000000Z"),
    ("unixtime_milliseconds_todatetime(1546300800000)", "2019-01-01T00:00:00.000000Z"),
    ("unixtime_microseconds_todatetime(1546300800000000)", "2019-01-01T00:00:00.000000Z"),
    ("unixtime_nanoseconds_todatetime(1546300800000000000)", "2019-01-01T00:00:00.000000Z"),
    ("time(15 seconds) + 1.5h", "01:30:15"),
    ("unixtime_seconds_todatetime(1.5)", "1970-01-01T00:00:01.500000Z"),
    ("datetime_diff('year',datetime(2017-01-01),datetime(2000-12-31))", 17),
    ("datetime_diff('quarter',datetime(2017-07-01),datetime(2017-03-30))", 2),
    ("datetime_diff('month',datetime(2017-01-01),datetime(2015-12-30))", 13),
    ("datetime_diff('week',datetime(2017-10-29 00:00),datetime(2017-09-30 23:59))", 5),
    ("datetime_diff('day',datetime(2017-10-29 00:00),datetime(2017-09-30 23:59))", 29),
    ("datetime_diff('hour',datetime(2017-10-31 01:00),datetime(2017-10-30 23:59))", 2),
    ("datetime_diff('minute',datetime(2017-10-30 23:05:01),datetime(2017-10-30 23:00:59))", 5),
    ("datetime_diff('second',datetime(2017-10-30 23:00:10.100),datetime(2017-10-30 23:00:00.900))", 10),
    ("datetime_diff('millisecond',datetime(2017-10-30 23:00:00.200100),datetime(2017-10-30 23:00:00.100900))", 100),
    ("datetime_diff('nanosecond',datetime(2024-01-01 00:00:00.0000012),datetime(2024-01-01))", 1200),
    ("datetime_part('millisecond',datetime(2024-01-01 00:00:09.8765432))", 876),
    ("datetime_part('microsecond',datetime(1950-01-01 00:00:09.8765432))", 876543),
    ("datetime_part('nanosecond',datetime(2024-01-01 00:00:09.8765432))", 876543200),
    ("format_timespan(1500microseconds,'s.fffffff')", "0.0015000"),
    ("format_timespan(time(29.09:00:05.12345),'dd.hh:mm:ss [FF]')", "29.09:00:05 [12]"),
    ("format_timespan(time(29.09:00:05.12345),'ddd.h:mm:ss [fff]')", "029.9:00:05 [123]"),
    ("format_timespan(90s, 'm:ss')", "1:30"),
    ("make_datetime(2017,10,1,12,10)", "2017-10-01T12:10:00.000000Z"),
    ("make_datetime(2017,10,1)", "2017-10-01T00:00:00.000000Z"),
    ("make_timespan(1,12)", "01:12:00"),
    ("make_timespan(1,12,30)", "01:12:30"),
    ("make_timespan(1,12,30,55)", "1.12:30:55"),
    ("make_timespan(1,12,30,55) == time(1.12:30:55)", True),
    ("isnull(make_datetime(2017,13,1))", True),
    ("bin(4.5,1)", 4.0),
    ("bin(time(16d),7d)", "14.00:00:00"),
    ("bin(datetime(1970-05-11 13:45:07),1d)", "1970-05-11T00:00:00.000000Z"),
    ("bin(7,5)", 5),
    ("bin(-7,5)", -10),
    ("bin(4.6,0.5)", 4.5),
    ("bin(datetime(2007-01-10),7d)", "2007-01-08T00:00:00.000000Z"),
    ("bin(7,-1)", None),
    ("datetime(8:00) == startofday(now()) + 8h", True),
    ("datetime(23:59:01.5) == startofday(now()) + 23h + 59m + 1500ms", True),
    ("isnull(unixtime_seconds_todatetime(parse_ipv4('no address')))", True),
    ("bin_at(6.5,2.5,7)", 4.5),
    ("bin_at(time(1h),1d,12h)", "-12:00:00"),
    ("bin_at(datetime(2017-05-15 10:20:00.0),1d,datetime(1970-01-01 12:00:00.0))", "2017-05-14T12:00:00.000000Z"),
    ("bin_at(datetime(2017-05-17 10:20:00.0),7d,datetime(2017-06-04 00:00:00.0))", "2017-05-14T00:00:00.000000Z"),
    ("datetime_utc_to_local(datetime(2022-01-01T12:00),'US/Eastern')", "2022-01-01T07:00:00.000000Z"),
    ("datetime_local_to_utc(datetime(2022-07-01T12:00),'Europe/Berlin')", "2022-07-01T10:00:00.000000Z"),
    ("datetime_local_to_utc(datetime(2023-03-26T02:30),'Europe/Berlin')", "2023-03-26T00:30:00.000000Z"),
    ("datetime_local_to_utc(datetime(2023-10-29T02:30),'Europe/Berlin')", "2023-10-29T01:30:00.000000Z"),
    ("hourofday(datetime(2015-12-14 18:54))", 18),
    ("dayofyear(datetime(2015-12-14))", 348),
    ("week_of_year(datetime(2020-12-31))", 53),
    ("monthofyear(datetime(2015-12-14))", 12),
    ("datetime_part('week_of_year',datetime(2017-10-30))", 44),
    ("datetime_part('quarter',datetime(2017-10-30))", 4),
    ("bin(bin(bin(bin(7 + 1, 2 + 0), 1 + 1), 1 + 1), 1 + 1)", 8),
    ("startofweek(datetime(2017-01-01 10:10:17))", "2017-01-01T00:00:00.000000Z"),
    ("endofmonth(datetime(2017-02-03))", "2017-02-28T23:59:59.9999999Z"),
    ("datetime(2017-02-28 10:00:00.999999)", "2017-02-28T10:00:00.999999Z"),
    ("startofyear(datetime(2017-02-03), -1)", "2016-01-01T00:00:00.000000Z"),
    ("dayofweek(datetime(2015-12-14))", "1.00:00:00"),
]
ROWS: list[tuple[str, list[Any]]] = [
    ("let window = 5m; print bin(datetime(2020-01-01 00:07), window)", ["2020-01-01T00:05:00.000000Z"]),
    ("datatable(t:timespan, w:timespan)[7m, 5m] | project bin(t, w), bin(t, 5m)", ["00:05:00", "00:05:00"]),
    (
        "datatable(t:datetime, w:timespan)[datetime(2020-01-01 00:07), 5m] | project bin(t, w), bin(t+1m, w*2)",
        ["2020-01-01T00:05:00.000000Z", "2020-01-01T00:00:00.000000Z"],
    ),
    ("datatable(x:long)[3,5] | summarize s=sum(x) | project bin(s, 5)", [5]),
    (
        "print x = endofday(datetime(2024-01-01)), y = datetime(2024-01-01 10:00:00.999999)",
        ["2024-01-01T23:59:59.9999999Z", "2024-01-01T10:00:00.999999Z"],
    ),
    ("print x = datetime(2024-01-01 23:59:59.999999) // endofday(", ["2024-01-01T23:59:59.999999Z"]),
    ("print x = datetime(2024-01-01 23:59:59.999999), y = 'endofday('", ["2024-01-01T23:59:59.999999Z", "endofday("]),
    ("print endofday = datetime(2024-01-01 23:59:59.999999)", ["2024-01-01T23:59:59.999999Z"]),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_functions_over_times_return_the_documented_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function over datetimes and timespans returns the documented value."""
    (result,) = endpoint.query_rows(f"print x = {expression}")[0]
    assert type(result) is type(value)
    assert result == value


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_functions_over_times_return_the_documented_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A function over datetimes and timespans returns the documented rows."""
    assert endpoint.query_rows(text)[0] == row


@pytest.mark.parametrize("date", ["Sat, 8 Nov 14", "8 Nov 14", "Saturday, 08-Nov-14", "08-Nov-14"])
@pytest.mark.parametrize("time", ["15:05:00 GMT", "15:05:00", "15:05 GMT", "15:05"])
def test_a_two_digit_year_belongs_to_this_century(endpoint: Endpoint, date: str, time: str) -> None:
    """In the formats of RFC 822 and RFC 850, a year with two digits is in this century."""
    text = f"{date} {time}"
    assert endpoint.query_rows(f"print datetime({text}), todatetime('{text}')") == [["2014-11-08T15:05:00.000000Z"] * 2]


def test_unsupported_datetime_arguments_are_rejected(endpoint: Endpoint) -> None:
    """An unsupported argument is rejected with its name."""
    assert endpoint.query_error_code("print format_timespan(1h, 'q')") == "BadRequest_NotSupported"


@pytest.mark.parametrize("text", ["hello", "2024-02-30", "12345678901"])
def test_a_datetime_literal_with_an_invalid_text_is_rejected(endpoint: Endpoint, text: str) -> None:
    """A datetime literal whose text is not a datetime is rejected instead of being null."""
    assert "does not have the format of a datetime" in str(endpoint.query_error(f"print datetime({text})"))


@pytest.mark.parametrize(
    "text",
    [
        "10000-01-01",
        "12026-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-05:00",
        "0001-01-01T00:00:00+05:00",
        "2026-01-01 (BC)",
        "infinity",
        "-infinity",
        "epoch",
        "2026-01-01 10:00:00 Europe/Berlin",
        "2026-01-01T10:00:00+25:00",
    ],
)
def test_a_text_that_is_no_datetime_of_the_years_1_to_9999_is_null(endpoint: Endpoint, text: str) -> None:
    """A conversion to a datetime is null for words, names of time zones, and instants outside the years 1 to 9999."""
    source = f"datatable(s:string)[\"{text}\"] | extend d = todynamic(strcat('[\"', s, '\"]'))"
    values = "isnull(todatetime(s)), isnull(todatetime(d[0])), todatetime(s) > datetime(2025-01-01)"
    assert endpoint.query_rows(f"{source} | project {values}") == [[True, True, None]]
    assert endpoint.query_rows(f"{source} | mv-expand d to typeof(datetime) | project isnull(d)") == [[True]]
    assert endpoint.query_rows(f'print s = "v={text};" | parse s with "v=" v:datetime ";" | project v') == [[None]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0001-01-01", "0001-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.999999Z"),
        ("2026-01-01 10:00:00 UTC", "2026-01-01T10:00:00.000000Z"),
        ("2026-01-01T10:00:00+14:00", "2025-12-31T20:00:00.000000Z"),
        ("2026/1/2", "2026-01-02T00:00:00.000000Z"),
    ],
)
def test_a_text_is_converted_to_a_datetime(endpoint: Endpoint, text: str, value: str) -> None:
    """The first and the last instant of Kusto, offsets and short forms are converted, in a dynamic, too."""
    assert endpoint.query_rows(f'print todatetime("{text}"), todatetime(dynamic("{text}"))') == [[value, value]]


def test_a_literal_outside_the_years_1_to_9999_is_an_error(endpoint: Endpoint) -> None:
    """A datetime literal with a year of five digits is an error, also if it is only compared."""
    assert "does not have the format of a datetime" in str(
        endpoint.query_error("print datetime(12026-01-01) > datetime(2025-01-01)")
    )
