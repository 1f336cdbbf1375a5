"""Tests of the query engine adapter with the real Kusto client and prepared replies."""

import json

from shared.backends.azure.kusto import KustoEngine
from tests.unit.shared.backends.azure.kusto_wire import END, PRIMARY, QUERY, Endpoint, endpoint, get_query_error

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
    assert options["query_results_cache_max_age"] == "0:01:00"


async def test_an_unreachable_endpoint_is_unavailable(endpoint: Endpoint) -> None:
    """A refused connection is UNAVAILABLE; plain http is accepted only for loopback addresses."""
    endpoint.close()
    assert (await get_query_error(endpoint)).code == "QUERY_ENGINE_UNAVAILABLE"
    endpoint.url = "http://kusto.example"
    assert "loopback" in (await get_query_error(endpoint)).detail
