"""Tests of query parameters: conversion, validation, and protection from injected KQL or SQL."""

import contextlib
import json
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulators.kusto.errors import QueryError
from emulators.kusto.parameters import parse_parameter_value
from tests.emulators.kusto.endpoints import Endpoint
from tests.random_examples import scale_examples


def build_utc_instant(*parts: int) -> datetime:
    """Return an instant in UTC without a time zone, as DuckDB expects it."""
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  parts end before the zone


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize(
    ("kind", "literal", "value"),
    [
        ("string", "datetime(2026-01-01)", "datetime(2026-01-01)"),
        ("string", '"quoted"', '"quoted"'),
        ("string", "", ""),
        ("long", "5", 5),
        ("long", "long(5)", 5),
        ("long", "int(-5)", -5),
        ("long", 7, 7),
        ("long", "0x1F", 31),
        ("long", "long(null)", None),
        ("int", "2147483647", 2147483647),
        ("real", "5", 5.0),
        ("real", "real(-1.5e3)", -1500.0),
        ("real", 2.5, 2.5),
        ("decimal", "decimal(1.10)", Decimal("1.10")),
        ("bool", "bool(true)", True),
        ("bool", "False", False),
        ("bool", True, True),
        ("datetime", "datetime(2026-01-02T03:04:05.1234567Z)", build_utc_instant(2026, 1, 2, 3, 4, 5, 123456)),
        ("datetime", "datetime('2026-01-02T03:04:05+02:00')", build_utc_instant(2026, 1, 2, 1, 4, 5)),
        ("datetime", "2026-01-02", build_utc_instant(2026, 1, 2)),
        ("timespan", "time(1.02:03:04.5)", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
        ("timespan", "timespan(-00:00:01)", timedelta(seconds=-1)),
        ("timespan", "2h", timedelta(hours=2)),
        ("guid", "guid(74be27de-1e4e-49d9-b579-fe0b331d3642)", uuid.UUID("74be27de-1e4e-49d9-b579-fe0b331d3642")),
        ("dynamic", 'dynamic({"a":[1,")"]})', '{"a":[1,")"]}'),
        ("dynamic", {"a": 1}, '{"a": 1}'),
        ("dynamic", "[1]", "[1]"),
    ],
)
def test_parameter_literals_are_converted_to_values(kind: str, literal: Any, value: Any) -> None:
    """Each form of a KQL literal is converted to its value."""
    assert parse_parameter_value(literal, kind, "p") == value


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("string", 5),
        ("string", "\ud800"),
        ("long", "5; drop"),
        ("long", "5.0"),
        ("long", "\u0665"),
        ("long", "9223372036854775808"),
        ("long", "real(5)"),
        ("long", True),
        ("int", "2147483648"),
        ("real", "one"),
        ("real", "1_0"),
        ("decimal", "nan"),
        ("bool", "yes"),
        ("datetime", "yesterday"),
        ("datetime", "datetime(2026-02-30)"),
        ("datetime", "now()"),
        ("datetime", "0001-01-01T00:00:00+14:00"),
        ("timespan", "soon"),
        ("guid", "x"),
        ("dynamic", "dynamic({)"),
        ("dynamic", "NaN"),
        ("dynamic", "dynamic(" + "[" * 100_000 + ")"),
    ],
)
def test_parameter_values_of_a_wrong_type_are_rejected(kind: str, literal: Any) -> None:
    """A parameter value of a wrong type is rejected with the parameter's name, but without the value."""
    with pytest.raises(QueryError, match="'p' is not of its declared type"):
        parse_parameter_value(literal, kind, "p")


@pytest.mark.parametrize(
    ("kind", "literal"),
    [
        ("decimal", "1.1234567891"),
        ("decimal", "decimal(1.123456789012345678901234567890)"),
        ("decimal", "123456789012345678901234567890"),
        ("decimal", "1e40"),
        ("timespan", "1tick"),
        ("timespan", "time(00:00:00.0000001)"),
        ("timespan", "-0.0000001s"),
        ("timespan", "10675200d"),
        ("timespan", "-10675199.02:48:05.4775808"),
    ],
)
def test_parameter_values_that_would_lose_digits_are_rejected(kind: str, literal: str) -> None:
    """A decimal or timespan with more digits than can be stored is rejected; the error names the parameter."""
    with pytest.raises(QueryError, match=r"EMB0001: 'the value of the query parameter 'p'' is not supported"):
        parse_parameter_value(literal, kind, "p")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**28), max_value=10**28))
def test_decimal_parameters_of_nine_places_are_exact(value: Decimal) -> None:
    """A decimal with nine places is converted exactly."""
    assert parse_parameter_value(f"decimal({value:f})", "decimal", "p") == value


@given(st.integers(-(2**63) // 10 + 1, 2**63 // 10))
def test_timespan_parameters_of_whole_microseconds_are_exact(microseconds: int) -> None:
    """A timespan of whole microseconds in the range of Kusto is converted exactly."""
    days, rest = divmod(abs(microseconds), 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"
    text = f"{'-' if microseconds < 0 else ''}{days}.{clock}"
    assert parse_parameter_value(f"time({text})", "timespan", "p") == timedelta(microseconds=microseconds)


@given(TEXTS, st.sampled_from(["bool", "int", "long", "real", "decimal", "datetime", "timespan", "guid", "dynamic"]))
def test_any_parameter_text_is_converted_or_rejected(text: str, kind: str) -> None:
    """Any text as parameter value is either converted to a value or rejected with a QueryError."""
    with contextlib.suppress(QueryError):
        parse_parameter_value(text, kind, "p")


@settings(max_examples=scale_examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TEXTS)
def test_string_parameters_are_never_read_as_kql(endpoint: Endpoint, text: str) -> None:
    """A string parameter is never read as KQL or SQL."""
    query = "declare query_parameters(p:string); print a = p, n = strlen(p)"
    assert endpoint.query_rows(query, {"p": text}) == [[text, len(text)]]


@pytest.mark.parametrize(
    "value",
    ["x' or 1=1 --", 'x" or true | project Payload //', "'; DROP TABLE Telemetry; --", "$kqlp0", "%", "\\'", "\0"],
)
def test_parameters_with_quotes_or_sql_are_compared_as_values(endpoint: Endpoint, value: Any) -> None:
    """A parameter with quotes or SQL is compared as a value."""
    query = "declare query_parameters(p:string); Telemetry | where DeviceId == p | count"
    assert endpoint.query_rows(query, {"p": value}) == [[0]]


def test_query_parameters_have_the_declared_type(endpoint: Endpoint) -> None:
    """A query parameter has its declared type and, if the request gives no value, the default."""
    query = (
        "declare query_parameters(b:bool, i:int, l:long = 9, r:real, d:datetime, t:timespan = 1h, s:string = 'z',"
        " g:guid, y:dynamic); print b, i + 1, l, r * 2, d + t, t, s, g, y.a"
    )
    values = {
        "b": "bool(true)",
        "i": "int(4)",
        "r": "real(1.5)",
        "d": "datetime(2026-01-01)",
        "g": "guid(74be27de-1e4e-49d9-b579-fe0b331d3642)",
        "y": 'dynamic({"a": "\' or"})',
    }
    row = endpoint.query_rows(query, values)[0]
    guid = "74be27de-1e4e-49d9-b579-fe0b331d3642"
    assert row[:8] == [True, 5, 9, 3.0, "2026-01-01T01:00:00.000000Z", "01:00:00", "z", guid]
    assert row[8] in ("' or", json.dumps("' or"))


@pytest.mark.parametrize("values", [{}, {"p": "x"}, {"p": "5", "q": "1"}])
def test_missing_undeclared_and_invalid_query_parameters_are_rejected(
    endpoint: Endpoint, values: dict[str, Any]
) -> None:
    """A request with a missing, invalid or undeclared query parameter is rejected."""
    assert endpoint.query_error_code("declare query_parameters(p:long); print p", values) == "General_BadRequest"


def test_a_cached_translation_uses_the_current_values(endpoint: Endpoint) -> None:
    """A cached translation is used with the current parameter values."""
    query = "declare query_parameters(p:long); Telemetry | where Number == p | project Number"
    assert [endpoint.query_rows(query, {"p": str(i)}) for i in (3, 5, 3)] == [[[3]], [[5]], [[3]]]
    before = endpoint.read_statistics()["translations"]
    endpoint.query_rows(query, {"p": "8"})
    after = endpoint.read_statistics()["translations"]
    assert (after["hits"], after["misses"]) == (before["hits"] + 1, before["misses"])
