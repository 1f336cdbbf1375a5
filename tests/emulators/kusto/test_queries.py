"""Tests of queries with the official clients: results, types and request options."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from azure.kusto.data import KustoConnectionStringBuilder
from azure.kusto.data.aio import KustoClient as AsyncKustoClient

from tests.emulators.kusto.endpoints import Endpoint

WINDOW = (
    "declare query_parameters(_from:datetime, _to:datetime, device:string = '');"
    " let Telemetry = Telemetry | where Timestamp between (_from .. _to); "
)
HOUR = {"_from": "datetime(2026-01-01T01:00:00Z)", "_to": "datetime(2026-01-01T01:59:59Z)"}


def test_columns_have_kusto_types(endpoint: Endpoint) -> None:
    """Each column has the Kusto type of its values, and each value the format of Data Explorer."""
    table = endpoint.query_table("Telemetry | where Number == 4 | extend Span = 1h + 30s, Id = 'x' | project-away Note")
    types = {column.column_name: column.column_type for column in table.columns}
    assert types == {
        "Timestamp": "datetime",
        "DeviceId": "string",
        "Number": "long",
        "Value": "real",
        "Running": "bool",
        "Payload": "dynamic",
        "Span": "timespan",
        "Id": "string",
    }
    payload = {"temp": 24.5, "motor": {"rpm": 1004}, "tags": ["t1"]}
    assert table.raw_rows == [
        ["2026-01-01T00:04:00.000000Z", "dev-04", 4, 1.0, True, payload, "01:00:30", "x"],
    ]
    typed = table.rows[0]
    assert typed["Timestamp"] == datetime(2026, 1, 1, 0, 4, tzinfo=UTC)
    assert typed["Span"] == timedelta(hours=1, seconds=30)


def test_aggregates_equal_an_independent_computation(endpoint: Endpoint) -> None:
    """Aggregation, join and sort return the same results as Python."""
    rows = endpoint.query_rows(
        "Telemetry | join kind=inner Devices on DeviceId"
        " | summarize n = count(), top = max(Number) by Model | order by Model asc"
    )
    by_model = {model: [i for i in range(2000) if i % 20 < 5 and "ABABA"[i % 20] == model] for model in "AB"}
    assert rows == [[model, len(numbers), max(numbers)] for model, numbers in by_model.items()]


async def test_concurrent_queries_get_their_own_results(endpoint: Endpoint) -> None:
    """Each concurrent query of an asyncio client gets its own result."""
    async with AsyncKustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        results = await asyncio.gather(
            *(client.execute_query("Telemetry", f"Telemetry | where Number == {i} | project Number") for i in range(30))
        )
    assert [result.primary_results[0].raw_rows for result in results] == [[[i]] for i in range(30)]


def test_a_let_statement_may_shadow_a_table(endpoint: Endpoint) -> None:
    """``let Telemetry = Telemetry | where ...`` filters the table for the rest of the query."""
    assert endpoint.query_rows(WINDOW + "Telemetry | count", HOUR) == [[60]]
    query = WINDOW + "Telemetry | where DeviceId == device | summarize min(Number), max(Number)"
    assert endpoint.query_rows(query, {**HOUR, "device": "dev-05"}) == [[65, 105]]


def test_ago_and_now_use_the_current_time(endpoint: Endpoint) -> None:
    """``ago()`` and ``now()`` use the current UTC time, also in a cached translation."""
    for _ in range(2):
        (row,) = endpoint.query_rows("print then = ago(1h), n = now()")
        then, now = (datetime.fromisoformat(value) for value in row)
        assert now - then == timedelta(hours=1)
        assert abs(datetime.now(UTC) - now) < timedelta(minutes=5)


def test_nan_is_returned_as_a_name_and_missing_strings_as_empty(endpoint: Endpoint) -> None:
    """A reply has NaN and infinity as names, null numbers as null, and null strings as empty strings."""
    (row,) = endpoint.query_rows(
        "print a = real(nan), b = real(+inf), c = real(null), d = tostring(dynamic(null)), e = 1.5"
    )
    assert row == ["NaN", "Infinity", None, "", 1.5]
    rows = endpoint.query_rows(
        "Devices | join kind=fullouter (datatable(DeviceId:string)['zz']) on DeviceId | project Model"
    )
    assert sorted(rows) == [[""], ["A"], ["A"], ["A"], ["B"], ["B"]]


def test_integers_in_dynamic_values_are_exact(endpoint: Endpoint) -> None:
    """An integer beyond 64 bits in a dynamic value is returned unchanged."""
    assert endpoint.query_rows("print d = dynamic({'a': 123456789012345678901234567890})") == [
        [{"a": 123456789012345678901234567890}]
    ]


def test_a_text_column_with_a_value_that_is_not_json_is_a_string(endpoint: Endpoint) -> None:
    """A column of a Parquet file is dynamic only if all values are JSON objects or arrays."""
    types = {row[0]: row[1] for row in endpoint.query_rows("Telemetry | getschema | project ColumnName, ColumnType")}
    assert types["Payload"] == "dynamic"
    assert types["Note"] == "string"


def test_the_take_limit_shortens_a_result_and_the_truncation_limit_rejects_it(endpoint: Endpoint) -> None:
    """``query_take_max_records`` shortens a result; more rows than ``truncationmaxrecords`` cause an error."""
    query = "Telemetry | order by Number asc | project Number"
    assert endpoint.query_rows(query, query_take_max_records=3) == [[0], [1], [2]]
    assert len(endpoint.query_rows(query, truncationmaxrecords=2000)) == 2000
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in str(endpoint.query_error(query, truncationmaxrecords=1999))
    assert len(endpoint.query_rows(query, query_take_max_records=5, truncationmaxrecords=5)) == 5
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in str(endpoint.query_error(query, truncationmaxsize=1000))


def test_request_options_cannot_raise_limits(endpoint: Endpoint) -> None:
    """No request option can raise a limit of the emulator."""
    query = "range x from 1 to 600000 step 1"
    for options in ({"notruncation": True}, {"truncationmaxrecords": 10_000_000}):
        assert "E_QUERY_RESULT_SET_TOO_LARGE" in str(endpoint.query_error(query, **options))


@pytest.mark.parametrize("option", ["query_datetimescope_from", "query_now", "validatepermissions"])
def test_unsupported_options_are_rejected(endpoint: Endpoint, option: str) -> None:
    """An unsupported request option that would change the result is rejected."""
    assert endpoint.query_error_code("print 1", None, **{option: "2026-01-01"}) == "BadRequest_NotSupported"


@pytest.mark.parametrize("value", ["soon", "00:00:00", "02:00:00", "-00:00:01"])
def test_a_server_timeout_must_be_a_timespan_up_to_an_hour(endpoint: Endpoint, value: Any) -> None:
    """A server timeout that is not a timespan, not positive or over an hour is rejected."""
    response = httpx.post(
        f"{endpoint.url}/v2/rest/query",
        json={"db": "Telemetry", "csl": "print 1", "properties": {"Options": {"servertimeout": value}}},
    )
    assert response.status_code == 400
    assert "servertimeout" in response.json()["error"]["@message"]


def test_the_completion_frame_contains_the_execution_time(endpoint: Endpoint) -> None:
    """The reply contains the execution time in the frame ``QueryCompletionInformation``."""
    frames = httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, json={"db": "Telemetry", "csl": "print 1"}).json()
    kinds = [frame.get("TableKind", frame["FrameType"]) for frame in frames]
    assert kinds == [
        "DataSetHeader",
        "QueryProperties",
        "PrimaryResult",
        "QueryCompletionInformation",
        "DataSetCompletion",
    ]
    used = next(row for row in frames[3]["Rows"] if row[10] == "QueryResourceConsumption")
    assert 0 < httpx.Response(200, text=used[11]).json()["ExecutionTime"] < 60
