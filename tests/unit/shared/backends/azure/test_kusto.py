"""The engine adapter and the genuine client against canned replies of a Kusto endpoint."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from shared.backends.azure.kusto import KustoEngine
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.ports import EngineQuery, EngineResult
from tests.unit.shared.backends.azure.kusto_wire import END, PRIMARY, Endpoint

QUERY = EngineQuery("line one is ours\nT | take 1", {"p": "long(1)"}, 11, 30, cache_seconds=60, lines_before=1)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Return a running endpoint."""
    with Endpoint() as running:
        yield running


def failure(code: str, message: str, *, permanent: bool = True) -> dict[str, Any]:
    """Return an error document."""
    return {"error": {"code": code, "message": "short", "@message": message, "@type": code, "@permanent": permanent}}


async def query_error(endpoint: Endpoint) -> WorkspaceError:
    """Return the error of a query."""
    engine = KustoEngine(endpoint.url, "db")
    try:
        with pytest.raises(WorkspaceError) as refused:
            await engine.execute(QUERY)
    finally:
        await engine.close()
    return refused.value


async def execute_query(endpoint: Endpoint) -> EngineResult:
    """Return the result of a query."""
    engine = KustoEngine(endpoint.url, "db")
    try:
        return await engine.execute(QUERY)
    finally:
        await engine.close()


async def test_a_query_and_its_result(endpoint: Endpoint) -> None:
    """Parameters, limits and read-only options are sent; rows and the engine's time are returned."""
    consumed = {
        "FrameType": "DataTable",
        "TableId": 1,
        "TableKind": "QueryCompletionInformation",
        "TableName": "QueryCompletionInformation",
        "Columns": [{"ColumnName": name, "ColumnType": "string"} for name in ("EventTypeName", "Level", "Payload")],
        "Rows": [["QueryResourceConsumption", 4, json.dumps({"ExecutionTime": 0.0125})]],
    }
    endpoint.answers([PRIMARY, consumed, END])
    engine = KustoEngine(endpoint.url, "db")
    result = await engine.execute(QUERY)
    await engine.close()
    assert ([column.name for column in result.columns], result.rows, result.execution_ms) == (["n"], [[1], [2]], 12.5)
    assert (endpoint.asked["db"], endpoint.asked["csl"]) == ("db", QUERY.text)
    properties = json.loads(endpoint.asked["properties"])
    assert properties["Parameters"] == {"p": "long(1)"}
    options = properties["Options"]
    assert options["query_take_max_records"] == 11
    assert options["servertimeout"] == "0:00:30"
    assert options["query_results_cache_max_age"] == "0:01:00"


@pytest.mark.parametrize(
    "frames",
    [
        [
            {
                **PRIMARY,
                "Rows": [[1], {"OneApiErrors": [failure("LimitsExceeded", "part is missing", permanent=False)]}],
            },
            END,
        ],
        [
            PRIMARY,
            {**END, "HasErrors": True, "OneApiErrors": [failure("Internal", "part is missing", permanent=False)]},
        ],
        [PRIMARY, {**END, "HasErrors": True}],
        [PRIMARY, {**END, "Cancelled": True}],
    ],
    ids=["row", "completion", "completion without reason", "cancelled"],
)
async def test_a_failure_in_a_successful_reply_is_an_error(endpoint: Endpoint, frames: list[Any]) -> None:
    """A reply 200 that contains a failure is never returned as a short result."""
    endpoint.answers(frames)
    assert (await query_error(endpoint)).kind in (Kind.UNAVAILABLE, Kind.INVALID)


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, failure("General_BadRequest", "Syntax error"), Kind.INVALID, "QUERY_INVALID"),
        (400, failure("E_QUERY_RESULT_SET_TOO_LARGE", "x"), Kind.INVALID, "QUERY_TOO_LARGE"),
        (400, failure("LimitsExceeded", "x"), Kind.INVALID, "QUERY_TOO_LARGE"),
        (400, failure("General_BadRequest", "no column E_RUNAWAY_QUERY"), Kind.INVALID, "QUERY_INVALID"),
        (504, failure("Timeout", "x", permanent=False), Kind.TIMEOUT, "QUERY_TIMEOUT"),
        (429, failure("TooManyRequests", "x"), Kind.THROTTLED, "THROTTLED"),
        (401, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (403, failure("Forbidden", "principal x"), Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (404, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (500, failure("Internal", "secret", permanent=False), Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (503, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (200, {"unexpected": "shape"}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (200, [], Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
    ],
)
async def test_every_failure_has_its_code(endpoint: Endpoint, status: int, body: Any, kind: Kind, code: str) -> None:
    """Rejections are the caller's errors; failures of the engine are a 503 without details."""
    endpoint.answers(body, status)
    error = await query_error(endpoint)
    assert (error.kind, error.code) == (kind, code)
    assert "secret" not in error.detail


async def test_a_position_refers_to_the_callers_text(endpoint: Endpoint) -> None:
    """Line numbers in errors do not count the lines that the service adds before a query."""
    endpoint.answers(failure("General_BadRequest", "Syntax error [line:position=2:5]"), 400)
    error = await query_error(endpoint)
    assert (error.members["line"], error.members["column"]) == (1, 5)
    assert "[line:position=1:5]" in error.detail


@pytest.mark.parametrize("columns", [["a", "b"], "a, b"])
async def test_the_visualization_of_render_is_returned(endpoint: Endpoint, columns: Any) -> None:
    """The annotation of ``render`` has the names of the API, also if the engine sends columns as text."""
    annotation = {"Visualization": "timechart", "YColumns": columns, "Title": "", "Ymin": "NaN", "Accumulate": False}
    endpoint.answers([build_properties(annotation), PRIMARY, END])
    visualization = (await execute_query(endpoint)).visualization or {}
    assert (visualization["visualization"], visualization["yColumns"]) == ("timechart", ["a", "b"])
    assert (visualization["title"], visualization["yMin"], visualization["kind"]) == (None, None, None)


async def test_a_query_without_render_has_no_visualization(endpoint: Endpoint) -> None:
    """The annotation of a query without ``render`` names no visualization."""
    endpoint.answers([build_properties({"Visualization": None, "Title": None}), PRIMARY, END])
    assert (await execute_query(endpoint)).visualization is None


def build_properties(annotation: dict[str, Any]) -> dict[str, Any]:
    """Return the frame with the extended properties of a result."""
    names = ("TableId", "int"), ("Key", "string"), ("Value", "dynamic")
    return {
        "FrameType": "DataTable",
        "TableId": 0,
        "TableKind": "QueryProperties",
        "TableName": "@ExtendedProperties",
        "Columns": [{"ColumnName": name, "ColumnType": kind} for name, kind in names],
        "Rows": [[1, "Visualization", json.dumps(annotation)]],
    }


async def test_a_construct_that_only_data_explorer_supports_is_named(endpoint: Endpoint) -> None:
    """The error of the local emulator for an unsupported construct says where the query runs."""
    endpoint.answers(failure("BadRequest_NotSupported", "Semantic error: EMB0001: 'fork' is not supported"), 400)
    error = await query_error(endpoint)
    assert error.code == "QUERY_INVALID"
    assert "'fork' is not supported. The query runs on Data Explorer only." in error.detail


async def test_no_endpoint_is_unavailable(endpoint: Endpoint) -> None:
    """A refused connection is a 503, and plain http is accepted for loopback addresses only."""
    endpoint.close()
    assert (await query_error(endpoint)).code == "QUERY_ENGINE_UNAVAILABLE"
    endpoint.url = "http://kusto.example"
    assert "loopback" in (await query_error(endpoint)).detail


async def test_several_tables_are_an_invalid_query(endpoint: Endpoint) -> None:
    """A query with several results is rejected instead of answered with the first one."""
    endpoint.answers([PRIMARY, {**PRIMARY, "TableId": 1}, END])
    error = await query_error(endpoint)
    assert (error.kind, error.code) == (Kind.INVALID, "QUERY_INVALID")
    assert "2 results" in error.detail
