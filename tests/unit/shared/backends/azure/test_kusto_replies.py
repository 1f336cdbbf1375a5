"""Tests of the parts of a Kusto reply other than rows, and of the errors of the Kusto SDK."""

import json
from typing import Any

import pytest

from shared.errors import Kind
from shared.warm_queries.ports import EngineQuery
from tests.unit.shared.backends.azure.kusto_wire import (
    END,
    PRIMARY,
    Endpoint,
    build_failure,
    endpoint,
    execute_query,
    get_query_error,
)

__all__ = ["endpoint"]  # the fixture


def build_events(*rows: list[Any]) -> dict[str, Any]:
    """Return the table of a query's events, each with a level and a text."""
    return {
        "FrameType": "DataTable",
        "TableId": 2,
        "TableKind": "QueryCompletionInformation",
        "TableName": "QueryCompletionInformation",
        "Columns": [
            {"ColumnName": name, "ColumnType": kind}
            for name, kind in (
                ("EventTypeName", "string"),
                ("ClientRequestId", "string"),
                ("Level", "int"),
                ("Payload", "string"),
            )
        ],
        "Rows": [["QueryInfo", "oi;1", *row] for row in rows],
    }


@pytest.mark.parametrize(
    "frames",
    [
        [
            {
                **PRIMARY,
                "Rows": [[1], {"OneApiErrors": [build_failure("LimitsExceeded", "part is missing", permanent=False)]}],
            },
            END,
        ],
        [
            PRIMARY,
            {**END, "HasErrors": True, "OneApiErrors": [build_failure("Internal", "part is missing", permanent=False)]},
        ],
        [PRIMARY, {**END, "HasErrors": True}],
        [PRIMARY, {**END, "Cancelled": True}],
        [PRIMARY, build_events([4, "S_OK (0)"], [2, "The query was stopped."]), END],
    ],
    ids=["row", "completion", "completion without reason", "cancelled", "event"],
)
async def test_an_error_in_a_reply_with_status_200_is_raised(endpoint: Endpoint, frames: list[Any]) -> None:
    """If a reply with status 200 contains an error, the error is raised instead of returning partial rows."""
    endpoint.set_reply(frames)
    assert (await get_query_error(endpoint)).kind in (Kind.UNAVAILABLE, Kind.INVALID)


@pytest.mark.parametrize("columns", [["a", "b"], "a, b"])
async def test_the_visualization_of_render_is_returned(endpoint: Endpoint, columns: Any) -> None:
    """The visualization of ``render`` has the property names of the API, even if columns are sent as text."""
    annotation = {"Visualization": "timechart", "YColumns": columns, "Title": "", "Ymin": "NaN", "Accumulate": False}
    endpoint.set_reply([build_properties(annotation), PRIMARY, END])
    visualization = (await execute_query(endpoint)).visualization or {}
    assert (visualization["visualization"], visualization["yColumns"]) == ("timechart", ["a", "b"])
    assert (visualization["title"], visualization["yMin"], visualization["kind"]) == (None, None, None)


async def test_a_query_without_render_has_no_visualization(endpoint: Endpoint) -> None:
    """The result of a query without ``render`` names no visualization."""
    endpoint.set_reply([build_properties({"Visualization": None, "Title": None}), PRIMARY, END])
    assert (await execute_query(endpoint)).visualization is None


def build_properties(annotation: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a reply with the extended properties of a result."""
    names = ("TableId", "int"), ("Key", "string"), ("Value", "dynamic")
    return {
        "FrameType": "DataTable",
        "TableId": 0,
        "TableKind": "QueryProperties",
        "TableName": "@ExtendedProperties",
        "Columns": [{"ColumnName": name, "ColumnType": kind} for name, kind in names],
        "Rows": [[1, "Visualization", json.dumps(annotation)]],
    }


async def test_approximate_functions_are_returned(endpoint: Endpoint) -> None:
    """The names of approximate functions are read from the extended properties; without these, there are none."""
    properties = build_properties({"Visualization": None})
    endpoint.set_reply([properties, PRIMARY, END])
    assert (await execute_query(endpoint)).approximations == ()
    properties["Rows"].append([1, "Approximations", json.dumps(["reduce (approximate)"])])
    endpoint.set_reply([properties, PRIMARY, END])
    assert (await execute_query(endpoint)).approximations == ("reduce (approximate)",)


async def test_a_query_that_returns_several_tables_is_rejected(endpoint: Endpoint) -> None:
    """A query that returns several tables is rejected, because the first table alone would be incomplete."""
    endpoint.set_reply([PRIMARY, {**PRIMARY, "TableId": 1}, END])
    error = await get_query_error(endpoint)
    assert (error.kind, error.code) == (Kind.INVALID, "QUERY_INVALID")
    assert "the query has 2 results; a query of the workspace must have one" in error.detail


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("T | fork (count) (take 1)", "remove the operator fork"),
        ("T | where fork == 'x' | facet by a", "remove the operator facet"),
        ("T | evaluate preview(5)", "remove the operator evaluate preview"),
        ("T | evaluate funnel_sequence(a, b)", "remove the operator evaluate funnel_sequence"),
        ("print x = '| fork'; T | count", "send one statement at a time"),
    ],
)
async def test_the_error_names_the_operator_with_several_results(endpoint: Endpoint, text: str, rule: str) -> None:
    """The error names the operator that gives several results; the same word in a name or text is ignored."""
    endpoint.set_reply([PRIMARY, {**PRIMARY, "TableId": 1}, END])
    error = await get_query_error(endpoint, EngineQuery(text, {}, 10, 5))
    assert error.detail.endswith(f"must have one: {rule}")


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, build_failure("General_BadRequest", "Syntax error"), Kind.INVALID, "QUERY_INVALID"),
        (400, build_failure("E_QUERY_RESULT_SET_TOO_LARGE", "x"), Kind.INVALID, "QUERY_TOO_LARGE"),
        (400, build_failure("LimitsExceeded", "x"), Kind.INVALID, "QUERY_TOO_LARGE"),
        (400, build_failure("General_BadRequest", "no column E_RUNAWAY_QUERY"), Kind.INVALID, "QUERY_INVALID"),
        (504, build_failure("Timeout", "x", permanent=False), Kind.TIMEOUT, "QUERY_TIMEOUT"),
        (429, build_failure("TooManyRequests", "x"), Kind.THROTTLED, "THROTTLED"),
        (401, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (403, build_failure("Forbidden", "principal x"), Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (404, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (500, build_failure("Internal", "secret", permanent=False), Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (503, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (200, {"unexpected": "shape"}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (200, [], Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
    ],
)
async def test_every_query_failure_has_its_error_code(
    endpoint: Endpoint, status: int, body: Any, kind: Kind, code: str
) -> None:
    """A rejected query is the caller's error (4xx); a failure of the engine is a 503 without details."""
    endpoint.set_reply(body, status)
    error = await get_query_error(endpoint)
    assert (error.kind, error.code) == (kind, code)
    assert "secret" not in error.detail


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {}),
        (403, {}),
        (403, build_failure("Forbidden", "principal x")),
        (403, build_failure("AccessDenied", "principal x")),
    ],
)
async def test_the_error_states_that_the_engine_denied_access(endpoint: Endpoint, status: int, body: Any) -> None:
    """If the engine denies access, the error states the missing role, because a retry does not help."""
    endpoint.set_reply(body, status)
    error = await get_query_error(endpoint)
    assert (error.kind, error.code) == (Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE")
    assert "denied access" in error.detail
    assert "role Viewer" in error.detail


async def test_a_position_refers_to_the_callers_text(endpoint: Endpoint) -> None:
    """The line of an error is a line of the caller's query, without the lines that the service inserts before it."""
    endpoint.set_reply(build_failure("General_BadRequest", "Syntax error [line:position=2:5]"), 400)
    error = await get_query_error(endpoint)
    assert (error.members["line"], error.members["column"]) == (1, 5)
    assert "[line:position=1:5]" in error.detail


async def test_a_construct_that_only_data_explorer_supports_is_named(endpoint: Endpoint) -> None:
    """The error about a construct that only Data Explorer supports names the construct and where it can run."""
    endpoint.set_reply(
        build_failure("BadRequest_NotSupported", "Semantic error: EMB0001: 'fork' is not supported"), 400
    )
    error = await get_query_error(endpoint)
    assert error.code == "QUERY_INVALID"
    assert "'fork' is not supported. The query runs on Data Explorer only." in error.detail
