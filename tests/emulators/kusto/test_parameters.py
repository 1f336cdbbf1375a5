"""Query parameters: values stay values, ill-typed ones are refused."""

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
from emulators.kusto.parameters import read
from tests.emulators.kusto.endpoints import Endpoint


def utc(*parts: int) -> datetime:
    """Return an instant in UTC without its zone, as DuckDB takes it."""
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  parts end before the zone


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize(
    ("kind", "wire", "value"),
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
        ("datetime", "datetime(2026-01-02T03:04:05.1234567Z)", utc(2026, 1, 2, 3, 4, 5, 123456)),
        ("datetime", "datetime('2026-01-02T03:04:05+02:00')", utc(2026, 1, 2, 1, 4, 5)),
        ("datetime", "2026-01-02", utc(2026, 1, 2)),
        ("timespan", "time(1.02:03:04.5)", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
        ("timespan", "timespan(-00:00:01)", timedelta(seconds=-1)),
        ("timespan", "2h", timedelta(hours=2)),
        ("guid", "guid(74be27de-1e4e-49d9-b579-fe0b331d3642)", uuid.UUID("74be27de-1e4e-49d9-b579-fe0b331d3642")),
        ("dynamic", 'dynamic({"a":[1,")"]})', '{"a":[1,")"]}'),
        ("dynamic", {"a": 1}, '{"a": 1}'),
        ("dynamic", "[1]", "[1]"),
    ],
)
def test_wire_forms(kind: str, wire: Any, value: Any) -> None:
    """Each wire form of a KQL literal becomes the value that it names."""
    assert read(wire, kind, "p") == value


@pytest.mark.parametrize(
    ("kind", "wire"),
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
def test_ill_typed_values_are_refused(kind: str, wire: Any) -> None:
    """A value that is no literal of its declared type is an error that names the parameter, not the value."""
    with pytest.raises(QueryError, match="'p' is not of its declared type"):
        read(wire, kind, "p")


@pytest.mark.parametrize(
    ("kind", "wire"),
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
def test_values_that_would_lose_digits_are_refused_by_name(kind: str, wire: str) -> None:
    """A decimal or timespan that the engine cannot hold in full is an error, never rounded."""
    with pytest.raises(QueryError, match=r"EMB0001: .* is not supported"):
        read(wire, kind, "p")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**28), max_value=10**28))
def test_decimals_of_nine_places_arrive_in_full(value: Decimal) -> None:
    """A decimal within what the engine holds is the value that was sent."""
    assert read(f"decimal({value:f})", "decimal", "p") == value


@given(st.integers(-(2**63) // 10 + 1, 2**63 // 10))
def test_timespans_of_whole_microseconds_arrive_in_full(microseconds: int) -> None:
    """A timespan of Kusto's whole range is read to the microsecond."""
    days, rest = divmod(abs(microseconds), 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"
    text = f"{'-' if microseconds < 0 else ''}{days}.{clock}"
    assert read(f"time({text})", "timespan", "p") == timedelta(microseconds=microseconds)


@given(TEXTS, st.sampled_from(["bool", "int", "long", "real", "decimal", "datetime", "timespan", "guid", "dynamic"]))
def test_any_text_is_a_value_or_an_error(text: str, kind: str) -> None:
    """No text makes the reader fail in another way than its own error."""
    with contextlib.suppress(QueryError):
        read(text, kind, "p")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TEXTS)
def test_a_string_arrives_as_it_was_sent(endpoint: Endpoint, text: str) -> None:
    """Any text given for a string parameter comes back unchanged; nothing of it is read as KQL or SQL."""
    query = "declare query_parameters(p:string); print a = p, n = strlen(p)"
    assert endpoint.rows(query, {"p": text}) == [[text, len(text)]]


@pytest.mark.parametrize(
    "value",
    ["x' or 1=1 --", 'x" or true | project Payload //', "'; DROP TABLE Telemetry; --", "$kqlp0", "%", "\\'", "\0"],
)
def test_hostile_strings_filter_nothing_out_and_nothing_in(endpoint: Endpoint, value: Any) -> None:
    """A value that looks like the end of a literal is compared like any other."""
    query = "declare query_parameters(p:string); Telemetry | where DeviceId == p | count"
    assert endpoint.rows(query, {"p": value}) == [[0]]


def test_every_type_binds(endpoint: Endpoint) -> None:
    """A parameter of each type reaches the query as that type; defaults stand in for what is not given."""
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
    row = endpoint.rows(query, values)[0]
    guid = "74be27de-1e4e-49d9-b579-fe0b331d3642"
    assert row[:8] == [True, 5, 9, 3.0, "2026-01-01T01:00:00.000000Z", "01:00:00", "z", guid]
    assert row[8] in ("' or", json.dumps("' or"))


@pytest.mark.parametrize("values", [{}, {"p": "x"}, {"p": "5", "q": "1"}])
def test_missing_unknown_and_ill_typed_parameters(endpoint: Endpoint, values: dict[str, Any]) -> None:
    """A query with a parameter that has no value, a wrong one or no declaration is refused."""
    assert endpoint.code("declare query_parameters(p:long); print p", values) == "General_BadRequest"


def test_one_translation_serves_different_values(endpoint: Endpoint) -> None:
    """The values are no part of the translation: the same text answers each request with its own."""
    query = "declare query_parameters(p:long); Telemetry | where Number == p | project Number"
    assert [endpoint.rows(query, {"p": str(i)}) for i in (3, 5, 3)] == [[[3]], [[5]], [[3]]]
    before = endpoint.stats()["translations"]
    endpoint.rows(query, {"p": "8"})
    after = endpoint.stats()["translations"]
    assert (after["hits"], after["misses"]) == (before["hits"] + 1, before["misses"])
