"""Tests of parameter values of Kusto's scalar types."""

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.durations import DURATION_PATTERN, parse_duration
from shared.catalog.models import ParameterType
from shared.catalog.parameters import parse_timespan, to_kql_literal


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("bool", "TRUE", "bool(true)"),
        ("bool", False, "bool(false)"),
        ("int", "-5", "int(-5)"),
        ("long", 2**63 - 1, "long(9223372036854775807)"),
        ("long", 5.0, "long(5)"),
        ("real", "1e3", "real(1000.0)"),
        ("real", 2, "real(2.0)"),
        ("decimal", "1.50", "decimal(1.50)"),
        ("string", "a'b\"|\n//", "a'b\"|\n//"),
        ("datetime", "2026-01-01T01:00:00+01:00", "datetime(2026-01-01T00:00:00.000000Z)"),
        ("timespan", "PT1H30M", "time(0.01:30:00.000000)"),
        ("timespan", "1.02:03:04.5", "time(1.02:03:04.500000)"),
        ("timespan", "-5m", "time(-0.00:05:00.000000)"),
        ("timespan", "100ms", "time(0.00:00:00.100000)"),
        ("timespan", "-1.5ms", "time(-0.00:00:00.001500)"),
        ("timespan", "2 hours", "time(0.02:00:00.000000)"),
        ("timespan", "1min", "time(0.00:01:00.000000)"),
        ("timespan", "3days", "time(3.00:00:00.000000)"),
        ("timespan", "20ticks", "time(0.00:00:00.000002)"),
        ("timespan", "00:00:00.1234560", "time(0.00:00:00.123456)"),
        ("guid", "0F8FAD5B-D9CB-469F-A165-70867728950E", "guid(0f8fad5b-d9cb-469f-a165-70867728950e)"),
        ("guid", "{0f8fad5b-d9cb-469f-a165-70867728950e}", "guid(0f8fad5b-d9cb-469f-a165-70867728950e)"),
        ("guid", "0f8fad5bd9cb469fa16570867728950e", "guid(0f8fad5b-d9cb-469f-a165-70867728950e)"),
        ("dynamic", '{"a":[1]}', 'dynamic({"a": [1]})'),
        ("dynamic", [1, "x"], 'dynamic([1, "x"])'),
        ("long", None, "long(null)"),
    ],
)
def test_a_parameter_value_becomes_a_kql_literal(kind: str, value: Any, expected: str) -> None:
    """A value from a query string or JSON becomes a KQL literal of the parameter's type."""
    assert to_kql_literal(ParameterType(kind), value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bool", "1"),
        ("bool", 1),
        ("int", "2147483648"),
        ("int", True),
        ("int", "1.5"),
        ("int", " 1"),
        ("long", "9223372036854775808"),
        ("long", "1_000"),
        ("long", "\u0661"),
        ("real", "NaN"),
        ("real", "inf"),
        ("real", "1e999"),
        ("real", "0x10"),
        ("decimal", "1e"),
        ("string", 5),
        ("string", None),
        ("string", "\ud800"),
        ("string", "x" * 65_537),
        ("datetime", "2026-01-01T00:00:00"),
        ("datetime", "2026-01-01"),
        ("datetime", "now()"),
        ("datetime", 5),
        ("timespan", "P1Y"),
        ("timespan", "five"),
        ("timespan", "999999999999d"),
        ("timespan", ""),
        ("guid", "1"),
        ("guid", "{0f8fad5b-d9cb-469f-a165-70867728950e"),
        ("guid", "7-4-b-e-27de1e4e49d9b579fe0b331d3642"),
        ("guid", "urn:uuid:74be27de-1e4e-49d9-b579-fe0b331d3642"),
        ("guid", "\u0667" + "4be27de-1e4e-49d9-b579-fe0b331d3642"),
        ("timespan", "1tick"),
        ("timespan", "00:00:00.1234567"),
        ("timespan", "5mms"),
        ("timespan", "5months"),
        ("timespan", "5M"),
        ("timespan", "P400000000D"),
        ("decimal", "1" * 35),
        ("decimal", "1e40"),
        ("dynamic", "{"),
        ("dynamic", '{"a":NaN}'),
        ("dynamic", '{"a":1,"a":2}'),
    ],
)
def test_an_invalid_parameter_value_is_rejected(kind: str, value: Any) -> None:
    """An invalid value raises a ValueError that states the rule."""
    with pytest.raises(ValueError, match=r"must be|expected|no fixed length|zone"):
        to_kql_literal(ParameterType(kind), value)


@given(st.sampled_from(list(ParameterType)), st.text(max_size=40))
def test_any_text_becomes_one_kql_literal(kind: ParameterType, text: str) -> None:
    """Any text becomes one KQL literal and cannot add code to the query."""
    try:
        written = to_kql_literal(kind, text)
    except ValueError:
        return
    if kind is ParameterType.STRING:
        assert written == text
    else:
        assert written.startswith("time(" if kind is ParameterType.TIMESPAN else f"{kind}(")
        assert written.endswith(")")
        assert kind is ParameterType.DYNAMIC or not set(written) & set("\"'|;\n\\")


@given(st.timedeltas(min_value=timedelta(days=-9999), max_value=timedelta(days=9999)))
def test_a_timespan_literal_is_parsed_to_the_same_duration(span: timedelta) -> None:
    """Parsing the literal of a timespan returns the same duration."""
    sign = "-" if span < timedelta(0) else ""
    size = abs(span)
    text = f"{sign}{size.days}.{size.seconds // 3600:02d}:{size.seconds // 60 % 60:02d}:{size.seconds % 60:02d}"
    text += f".{size.microseconds:06d}"
    assert parse_timespan(text) == span
    assert parse_timespan(to_kql_literal(ParameterType.TIMESPAN, text)[5:-1]) == span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT5M", timedelta(minutes=5)),
        ("P1W", timedelta(weeks=1)),
        ("P1DT12H", timedelta(days=1, hours=12)),
        ("PT0.5S", timedelta(seconds=0.5)),
        ("-PT5M", timedelta(minutes=-5)),
    ],
)
def test_durations_of_fixed_length_are_parsed(text: str, expected: timedelta) -> None:
    """Weeks, days, hours, minutes and seconds are parsed, with or without a sign."""
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "five",
        "5m",
        "P1Y",
        "P1M",
        "P1Y2D",
        "PT1H ",
        "pt5m",
        "P-1D",
        "P0001-02-03T04:05:06",
        "P" + "9" * 99 + "D",
        "P99999999999D",
    ],
)
def test_durations_of_variable_length_are_rejected(text: str) -> None:
    """Years, months and other text raise a ValueError."""
    with pytest.raises(ValueError, match=r"must be|expected|no fixed length"):
        parse_duration(text)


_TIMES = st.one_of(
    st.text(alphabet="+-PT0123.,WDHMSY", max_size=14),
    st.from_regex(r"\A[+-]?P([0-9]{1,4}([.,][0-9]{1,3})?[WDY])*(T([0-9]{1,4}([.,][0-9]{1,3})?[HMS])*)?\Z"),
)


@given(_TIMES)
def test_the_published_timespan_pattern_matches_the_parser(text: str) -> None:
    """The parser accepts exactly the timespans that match the published pattern."""
    try:
        parse_duration(text)
    except ValueError:
        read = False
    else:
        read = True
    assert read is bool(re.fullmatch(rf"[+-]?{DURATION_PATTERN}", text))
