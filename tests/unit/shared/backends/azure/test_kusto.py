"""Tests of the query engine adapter with the real Kusto client and prepared replies."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.backends.azure.kusto import INGEST_SECONDS, MARGIN_SECONDS, KustoEngine, KustoTelemetryTable
from shared.errors import WorkspaceError
from shared.imports.work import LEASE
from tests.unit.shared.backends.azure.kusto_wire import (
    END,
    PRIMARY,
    QUERY,
    Endpoint,
    build_failure,
    endpoint,
    get_query_error,
)

__all__ = ["endpoint"]  # the fixture


async def test_a_query_is_sent_with_its_parameters_and_limits(endpoint: Endpoint) -> None:
    """A query is sent with its parameters, limits and read-only options; its rows and query time are returned."""
    consumed = {
        "FrameType": "DataTable",
        "TableId": 1,
        "TableKind": "QueryCompletionInformation",
        "TableName": "QueryCompletionInformation",
        "Columns": [{"ColumnName": name, "ColumnType": "string"} for name in ("EventTypeName", "Level", "Payload")],
        "Rows": [["QueryResourceConsumption", 4, json.dumps({"ExecutionTime": 0.0125})]],
    }
    endpoint.set_reply([PRIMARY, consumed, END])
    engine = KustoEngine(endpoint.url, "db")
    result = await engine.execute(QUERY)
    await engine.close()
    assert ([column.name for column in result.columns], result.rows, result.execution_ms) == (["n"], [[1], [2]], 12.5)
    assert result.size == len(endpoint.reply)
    assert (endpoint.asked["db"], endpoint.asked["csl"]) == ("db", QUERY.text)
    properties = json.loads(endpoint.asked["properties"])
    assert properties["Parameters"] == {"p": "long(1)"}
    options = properties["Options"]
    assert options["query_take_max_records"] == 11
    assert options["servertimeout"] == "0:00:30"
    assert options["query_results_cache_max_age"] == "0.00:01:00"


async def test_a_cache_time_of_a_day_is_sent_as_a_kusto_timespan(endpoint: Endpoint) -> None:
    """The maximum age of a cached result is sent as a timespan that Data Explorer can parse, also from a day on."""
    endpoint.set_reply([PRIMARY, END])
    engine = KustoEngine(endpoint.url, "db")
    for seconds, timespan in ((86_399, "0.23:59:59"), (86_400, "1.00:00:00")):
        await engine.execute(replace(QUERY, cache_seconds=seconds))
        options = json.loads(endpoint.asked["properties"])["Options"]
        assert options["query_results_cache_max_age"] == timespan
    await engine.close()


async def test_the_engine_stops_an_ingestion_before_its_caller(endpoint: Endpoint) -> None:
    """The engine stops an ingestion before the caller repeats it, and both within the reservation of an import."""

    async def locate_file(blob: str) -> str:
        return f"/files/{blob}"

    column = {"ColumnName": "ExtentId", "DataType": "Guid", "ColumnType": "guid"}
    endpoint.set_reply({"Tables": [{"TableName": "Table_0", "Columns": [column], "Rows": []}]})
    table = KustoTelemetryTable(endpoint.url, "db", locate_file)
    await table.ingest("rows.parquet", "step-1")
    await table.close()
    assert "ingest-by:step-1" in endpoint.asked["csl"]
    assert json.loads(endpoint.asked["properties"])["Options"]["servertimeout"] == "0:03:00"
    assert timedelta(seconds=INGEST_SECONDS + MARGIN_SECONDS) < LEASE


async def test_an_unreachable_endpoint_is_unavailable(endpoint: Endpoint) -> None:
    """A refused connection is UNAVAILABLE; plain http is accepted only for loopback addresses."""
    endpoint.close()
    assert (await get_query_error(endpoint)).code == "QUERY_ENGINE_UNAVAILABLE"
    endpoint.url = "http://kusto.example"
    assert "loopback" in (await get_query_error(endpoint)).detail


@pytest.mark.parametrize("reply", [None, [], {"Tables": None}])
async def test_an_ingestion_without_a_kusto_reply_is_unavailable(endpoint: Endpoint, reply: object) -> None:
    """If the reply to an ingestion is not a Kusto reply, the ingestion is UNAVAILABLE and can be repeated."""

    async def locate_file(blob: str) -> str:
        return f"/files/{blob}"

    endpoint.set_reply(reply)
    table = KustoTelemetryTable(endpoint.url, "db", locate_file)
    with pytest.raises(WorkspaceError) as caught:
        await table.ingest("rows.parquet", "step-1")
    await table.close()
    assert caught.value.code == "QUERY_ENGINE_UNAVAILABLE"


ZERO_ID = "00000000-0000-0000-0000-000000000000"


async def ingest_with_reply(endpoint: Endpoint, rows: Sequence[Sequence[object]], exceptions: Sequence[str]) -> None:
    """Ingest a file; the engine replies 200 with rows of the columns ExtentId and HasErrors, and with exceptions."""

    async def locate(blob: str) -> str:
        return f"https://account.example/{blob}"

    columns = [{"ColumnName": "ExtentId", "DataType": "Guid"}, {"ColumnName": "HasErrors", "DataType": "SByte"}]
    reply = {"Tables": [{"TableName": "Table_0", "Columns": columns, "Rows": rows}], "Exceptions": exceptions}
    endpoint.set_reply(reply)
    table = KustoTelemetryTable(endpoint.url, "db", locate)
    try:
        await table.ingest("part-1", "import-1")
    finally:
        await table.close()


@pytest.mark.parametrize("rows", [[], [[ZERO_ID, 0]], [[ZERO_ID, None]], [["a", False], ["b", False]]])
async def test_an_ingestion_without_a_reported_failure_succeeds(endpoint: Endpoint, rows: list[list[object]]) -> None:
    """An ingestion succeeds if the engine reports no failure, also if it has ingested the file before."""
    await ingest_with_reply(endpoint, rows, [])


@pytest.mark.parametrize(
    ("rows", "exceptions"),
    [([["a", False], ["b", True]], []), ([[ZERO_ID, 1]], []), ([[ZERO_ID, 0]], ["The query lacks memory."])],
)
async def test_an_ingestion_whose_reply_200_reports_a_failure_is_unavailable(
    endpoint: Endpoint, rows: list[list[object]], exceptions: list[str]
) -> None:
    """An ingestion is UNAVAILABLE and can be repeated if the engine reports its failure in a successful HTTP reply."""
    with pytest.raises(WorkspaceError) as caught:
        await ingest_with_reply(endpoint, rows, exceptions)
    assert caught.value.code == "QUERY_ENGINE_UNAVAILABLE"


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [(403, "Forbidden", "needs the role Ingestor"), (500, "Internal", "retry later")],
)
async def test_a_denied_import_names_the_missing_role(
    endpoint: Endpoint, status: int, code: str, expected: str
) -> None:
    """If the engine denies the ingestion of a file, the error names the missing role; other failures can be retried."""

    async def locate(blob: str) -> str:
        return f"https://account.example/{blob}"

    endpoint.set_reply(build_failure(code, "principal x"), status)
    table = KustoTelemetryTable(endpoint.url, "db", locate)
    with pytest.raises(WorkspaceError, match=expected) as refused:
        await table.ingest("part-1", "import-1")
    await table.close()
    assert refused.value.code == "QUERY_ENGINE_UNAVAILABLE"
