"""Queries through the real clients: the answers, their types, the options."""

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


def test_rows_come_with_kusto_types(endpoint: Endpoint) -> None:
    """Each column carries the Kusto type of its values, and each value its form on Kusto's wire."""
    table = endpoint.table("Telemetry | where Number == 4 | extend Span = 1h + 30s, Id = 'x' | project-away Note")
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


def test_aggregates_equal_an_independent_answer(endpoint: Endpoint) -> None:
    """Aggregation, join and ordering answer what the same arithmetic in Python answers."""
    rows = endpoint.rows(
        "Telemetry | join kind=inner Devices on DeviceId"
        " | summarize n = count(), top = max(Number) by Model | order by Model asc"
    )
    by_model = {model: [i for i in range(2000) if i % 20 < 5 and "ABABA"[i % 20] == model] for model in "AB"}
    assert rows == [[model, len(numbers), max(numbers)] for model, numbers in by_model.items()]


async def test_the_asynchronous_client_is_served_beside_itself(endpoint: Endpoint) -> None:
    """Many queries of one asyncio client at once each get their own answer."""
    async with AsyncKustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        answers = await asyncio.gather(
            *(client.execute_query("Telemetry", f"Telemetry | where Number == {i} | project Number") for i in range(30))
        )
    assert [answer.primary_results[0].raw_rows for answer in answers] == [[[i]] for i in range(30)]


def test_a_let_may_shadow_its_own_table(endpoint: Endpoint) -> None:
    """A prepended ``let Telemetry = Telemetry | where ...`` narrows what the rest of the query reads."""
    assert endpoint.rows(WINDOW + "Telemetry | count", HOUR) == [[60]]
    query = WINDOW + "Telemetry | where DeviceId == device | summarize min(Number), max(Number)"
    assert endpoint.rows(query, {**HOUR, "device": "dev-05"}) == [[65, 105]]


def test_relative_time_is_relative_to_now(endpoint: Endpoint) -> None:
    """``ago()`` and ``now()`` follow the clock, in UTC, also when the translation is not new."""
    for _ in range(2):
        (row,) = endpoint.rows("print then = ago(1h), n = now()")
        then, now = (datetime.fromisoformat(value) for value in row)
        assert now - then == timedelta(hours=1)
        assert abs(datetime.now(UTC) - now) < timedelta(minutes=5)


def test_non_finite_numbers_and_missing_strings(endpoint: Endpoint) -> None:
    """NaN and infinity are named, a null number is null, and a string is never null."""
    (row,) = endpoint.rows("print a = real(nan), b = real(+inf), c = real(null), d = tostring(dynamic(null)), e = 1.5")
    assert row == ["NaN", "Infinity", None, "", 1.5]
    rows = endpoint.rows("Devices | join kind=fullouter (datatable(DeviceId:string)['zz']) on DeviceId | project Model")
    assert sorted(rows) == [[""], ["A"], ["A"], ["A"], ["B"], ["B"]]


def test_integers_in_dynamic_values_keep_their_digits(endpoint: Endpoint) -> None:
    """A dynamic value arrives as it was written, beyond 64 bits too."""
    assert endpoint.rows("print d = dynamic({'a': 123456789012345678901234567890})") == [
        [{"a": 123456789012345678901234567890}]
    ]


def test_text_that_is_not_all_json_stays_text(endpoint: Endpoint) -> None:
    """A column becomes dynamic only when every one of its values is a JSON object or array."""
    types = {row[0]: row[1] for row in endpoint.rows("Telemetry | getschema | project ColumnName, ColumnType")}
    assert types["Payload"] == "dynamic"
    assert types["Note"] == "string"


def test_take_limit_is_silent_and_truncation_is_not(endpoint: Endpoint) -> None:
    """``query_take_max_records`` shortens a result; a result above ``truncationmaxrecords`` fails."""
    query = "Telemetry | order by Number asc | project Number"
    assert endpoint.rows(query, query_take_max_records=3) == [[0], [1], [2]]
    assert len(endpoint.rows(query, truncationmaxrecords=2000)) == 2000
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in str(endpoint.error(query, truncationmaxrecords=1999))
    assert len(endpoint.rows(query, query_take_max_records=5, truncationmaxrecords=5)) == 5
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in str(endpoint.error(query, truncationmaxsize=1000))


def test_limits_cannot_be_lifted(endpoint: Endpoint) -> None:
    """``notruncation`` and a larger ``truncationmaxrecords`` do not go beyond the endpoint's own limit."""
    query = "range x from 1 to 600000 step 1"
    for options in ({"notruncation": True}, {"truncationmaxrecords": 10_000_000}):
        assert "E_QUERY_RESULT_SET_TOO_LARGE" in str(endpoint.error(query, **options))


@pytest.mark.parametrize("option", ["query_datetimescope_from", "query_now", "validatepermissions"])
def test_an_option_that_would_change_the_answer_is_refused(endpoint: Endpoint, option: str) -> None:
    """An option that is not honoured and not harmless is an error, never ignored."""
    assert endpoint.code("print 1", None, **{option: "2026-01-01"}) == "BadRequest_NotSupported"


@pytest.mark.parametrize("value", ["soon", "00:00:00", "02:00:00", "-00:00:01"])
def test_a_server_timeout_must_be_a_timespan_up_to_an_hour(endpoint: Endpoint, value: Any) -> None:
    """A time-out that is no timespan, zero, negative or above an hour is refused."""
    response = httpx.post(
        f"{endpoint.url}/v2/rest/query",
        json={"db": "Telemetry", "csl": "print 1", "properties": {"Options": {"servertimeout": value}}},
    )
    assert response.status_code == 400
    assert "servertimeout" in response.json()["error"]["@message"]


def test_the_completion_frame_tells_the_execution_time(endpoint: Endpoint) -> None:
    """The answer carries the engine's own time where Data Explorer puts it."""
    frames = httpx.post(f"{endpoint.url}/v2/rest/query", json={"db": "Telemetry", "csl": "print 1"}).json()
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
