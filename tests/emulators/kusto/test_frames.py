"""Tests of the format of timespans, values and errors in replies."""

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from azure.kusto.data._converters import to_timedelta
from hypothesis import given
from hypothesis import strategies as st

from emulators.kusto.errors import QueryError, out_of_memory_error, semantic_error, syntax_error
from emulators.kusto.frames import encode_rows, render_error_document, render_failed_data_set
from emulators.kusto.timespans import format_timespan

NAIVE = datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001  as DuckDB returns instants
BEYOND_DOUBLE = 10**309


@given(st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)))
def test_the_official_client_parses_formatted_timespans(span: timedelta) -> None:
    """The official client reads the text of a timespan as the same duration."""
    assert abs(to_timedelta(format_timespan(span)) - span) <= timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("kind", "value", "formatted"),
    [
        ("datetime", NAIVE, "2026-01-02T03:04:05.000006Z"),
        ("datetime", date(2026, 1, 2), "2026-01-02T00:00:00Z"),
        ("timespan", time(1, 2, 3, 500_000), "01:02:03.5000000"),
        ("timespan", timedelta(days=-1, hours=-2), "-1.02:00:00"),
        ("decimal", Decimal("1.500000000"), "1.5"),
        ("decimal", Decimal("100.000000000"), "100"),
        ("decimal", Decimal("-0.000000000"), "0"),
        ("decimal", Decimal("1E-9"), "0.000000001"),
        ("decimal", Decimal("12345678901234567890123456789.123456789"), "12345678901234567890123456789.123456789"),
        ("guid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("real", float("-inf"), "-Infinity"),
        ("long", 2**63 - 1, 2**63 - 1),
        ("string", b"\x01\xff", "01ff"),
        ("dynamic", "not json", "not json"),
        ("dynamic", '{"a": [1, null]}', {"a": [1, None]}),
        pytest.param("dynamic", f"[{BEYOND_DOUBLE}, -1, NaN]", [BEYOND_DOUBLE, -1, "NaN"], id="long integer"),
        pytest.param("dynamic", f"[{'9' * 5000}, 1]", ["9" * 5000, 1], id="integer of too many digits"),
        pytest.param("dynamic", f"[-{'9' * 4300}, NaN]", [-int("9" * 4300), "NaN"], id="negative of most digits"),
        pytest.param("dynamic", f"[{BEYOND_DOUBLE}, -1e400]", [BEYOND_DOUBLE, "-Infinity"], id="real beyond a double"),
        pytest.param("dynamic", f"-{BEYOND_DOUBLE}", -BEYOND_DOUBLE, id="negative long integer"),
        ("dynamic", [timedelta(seconds=1), Decimal("1.5"), {1: None}], ["00:00:01", 1.5, {"1": None}]),
        *(
            (kind, None, None)
            for kind in ("datetime", "timespan", "decimal", "guid", "real", "long", "dynamic", "bool")
        ),
        ("string", None, ""),
    ],
)
def test_reply_values_have_the_format_of_data_explorer(kind: str, value: Any, formatted: Any) -> None:
    """Each value has the format of Data Explorer; a null string is empty, and integers in JSON keep all digits."""
    assert json.loads(b"[" + encode_rows([("c", kind)], [[value]]) + b"]") == [[formatted]]


@pytest.mark.parametrize(
    ("value", "formatted"),
    [
        (datetime(2024, 1, 31, 23, 59, 59, 999_999), "2024-01-31T23:59:59.9999999Z"),  # noqa: DTZ001
        (datetime(2024, 1, 31, 23, 59, 58, 999_999), "2024-01-31T23:59:58.999999Z"),  # noqa: DTZ001
        (None, None),
    ],
)
def test_the_last_microsecond_of_a_day_becomes_its_last_tick(value: Any, formatted: Any) -> None:
    """If a client requests the ends of time periods, the last microsecond of a day becomes its last tick (100 ns)."""
    encoded = encode_rows([("c", "datetime")], [[value]], extend_ends_of_periods=True)
    assert json.loads(b"[" + encoded + b"]") == [[formatted]]


def test_reals_next_to_an_extreme_integer_keep_their_text() -> None:
    """Reals in a dynamic value keep their text, also next to an integer beyond the range of a double."""
    text = f"[{BEYOND_DOUBLE},1.10,0.10000000000000000001]"
    assert encode_rows([("c", "dynamic")], [[text]]).decode() == f"[{text}]"


def test_formatting_instants_outside_the_range_fails() -> None:
    """Formatting an instant outside the years 1 to 9999 raises an error."""
    with pytest.raises(OverflowError):
        encode_rows([("c", "datetime")], [["10000-12-30 00:00:00"]])


def test_formatting_integers_out_of_range_fails() -> None:
    """Formatting an integer outside the range of its Kusto type raises an error."""
    with pytest.raises(OverflowError):
        encode_rows([("c", "long")], [[2**63]])
    with pytest.raises(OverflowError):
        encode_rows([("c", "dynamic")], [[[2**70]]])


def test_a_syntax_error_document_has_the_position() -> None:
    """The error document of a syntax error has the properties that clients read, and the position in the text."""
    document = json.loads(render_error_document(syntax_error("unexpected end", (3, 14)), "id-1"))
    error = document["error"]
    assert error["code"] == "BadRequest_SyntaxError"
    assert error["@type"] == "Kusto.Data.Exceptions.SyntaxException"
    assert error["@message"].endswith("unexpected end [line:position=3:14]")
    assert error["@permanent"] is True
    assert error["innererror"]["@line"], error["innererror"]["@pos"] == ("3", "14")


def test_a_failure_during_execution_replaces_the_rows() -> None:
    """If execution of a query fails, the reply has the error instead of rows, and the last frame has the error flag."""
    frames = json.loads(render_failed_data_set(out_of_memory_error(), "id-1"))
    (row,) = frames[2]["Rows"]
    assert row["OneApiErrors"][0]["error"]["code"] == "LimitsExceeded"
    assert frames[-1]["HasErrors"] is True


@given(st.text(max_size=30), st.one_of(st.none(), st.tuples(st.integers(1, 99), st.integers(1, 99))))
def test_errors_can_be_transferred_between_processes(message: str, position: tuple[int, int] | None) -> None:
    """An error that is pickled and recreated in another process has the same error document."""
    error = semantic_error(message, position=position)
    assert QueryError(**error.to_constructor_arguments()).to_document() == error.to_document()
