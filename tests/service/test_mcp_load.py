"""Tests of the MCP server with many tools, concurrent calls and large results."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.service.local_service import Service, query_rows
from tests.service.test_amendments import create_amendment

ADDRESS = "/oi-api/mcp"
QUERIES = 250
LARGE = "range i from 1 to 9000 step 1 | extend text = strrep('x', 1000)"


@pytest.fixture(scope="module")
def service_with_many_queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service of a workspace with 250 approved queries."""
    folder = tmp_path_factory.mktemp("large")
    approval = {"approvedBy": "admin@t", "approvedAt": "2026-01-05T08:00:00Z"}
    queries = [
        {"lookup": f"q-{n}", "name": f"Query {n}", "surface": "hall", "kql": f"print n = {n}", "approval": approval}
        for n in range(QUERIES)
    ]
    workspace = {
        "workspace": {"id": "plant-t", "name": "Large plant"},
        "tier": "enterprise",
        "limits": {"requestsPerMinute": 5000, "concurrent": 500},
        "policies": {"provenance": {"requireApproval": True}},
        "team": [{"id": "admin@t", "name": "Administrator", "role": "Admin"}],
        "connections": [],
        "surfaces": [{"lookup": "hall", "name": "Hall"}],
        "warmQueries": queries,
    }
    (folder / "workspace.yaml").write_text(yaml.safe_dump(workspace))
    running = Service(folder / "data", folder / "workspace.yaml").start()
    yield running
    assert running.stop() == 0


def build_request(method: str, **params: Any) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call_method(caller: httpx.Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a JSON-RPC request and return its result."""
    reply = caller.post(ADDRESS, json=build_request(method, **params), headers={"Accept": "application/json"})
    body: dict[str, Any] = reply.json()
    return body


def test_the_list_of_tools_has_pages(service_with_many_queries: Service) -> None:
    """The list of tools has pages of at most 200 tools, and contains each approved query once."""
    caller = service_with_many_queries.create_client("admin@t")
    tools: list[str] = []
    for method, kind, found in (("tools/list", "tools", tools), ("resources/list", "resources", [])):
        first = call_method(caller, method)["result"]
        second = call_method(caller, method, cursor=first["nextCursor"])["result"]
        found += [one["name"] for page in (first, second) for one in page[kind]]
        assert (len(first[kind]), "nextCursor" in second) == (200, False)
        assert len(found) == len(set(found)) > QUERIES
    assert {f"warm_query_q_{n}" for n in range(QUERIES)} <= set(tools)


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1e3", "٣", "9" * 400, "200", "201", "400", " 200"])
def test_cursors_that_are_not_from_the_tool_list_are_rejected(service_with_many_queries: Service, cursor: str) -> None:
    """A cursor that is not from the list of tools causes a JSON-RPC error for invalid parameters."""
    assert (
        call_method(service_with_many_queries.create_client("admin@t"), "tools/list", cursor=cursor)["error"]["code"]
        == -32602
    )


async def test_concurrent_tool_calls_get_their_own_results(service_with_many_queries: Service) -> None:
    """Each of a hundred concurrent calls gets its own result."""
    headers = {**service_with_many_queries.create_client("admin@t").headers, "Accept": "application/json"}
    async with httpx.AsyncClient(
        base_url=service_with_many_queries.url, headers=headers, timeout=40, trust_env=False
    ) as client:

        async def call_tool(n: int) -> int:
            body = {**build_request("tools/call", name=f"warm_query_q_{n}", arguments={}), "id": n}
            answer = (await client.post(ADDRESS, json=body)).json()
            assert answer["id"] == n
            [row] = answer["result"]["structuredContent"]["results"]
            return int(row["n"])

        assert await asyncio.gather(*map(call_tool, range(100))) == list(range(100))


def test_a_tool_result_over_4_mib_is_replaced_by_an_error(service_with_many_queries: Service) -> None:
    """If a result is over 4 MiB, a tool returns an error with advice; the REST route returns the whole result."""
    caller = service_with_many_queries.create_client("admin@t")
    assert len(query_rows(caller, LARGE)) == 9000
    result = call_method(caller, "tools/call", name="run_adhoc_query", arguments={"query": LARGE, "limit": 10000})[
        "result"
    ]
    assert result["isError"]
    assert json.loads(result["content"][0]["text"])["code"] == "RESULT_TOO_LARGE"
    fewer = call_method(caller, "tools/call", name="run_adhoc_query", arguments={"query": LARGE, "limit": 10})["result"]
    assert len(fewer["structuredContent"]["results"]) == 10


def test_a_page_of_pending_amendments_over_4_mib_is_replaced_by_an_error(service_with_many_queries: Service) -> None:
    """Pending amendments of over 4 MiB give an error; a smaller page has the records that the REST route returns."""
    caller = service_with_many_queries.create_client("admin@t")
    for _ in range(20):
        assert create_amendment(caller, "line", OriginalRecord={"text": "x" * 900_000}).status_code == 201
    name = "list_pending_decisions"
    for limit in (5, 20):
        large = call_method(caller, "tools/call", name=name, arguments={"limit": limit})["result"]
        assert (large["isError"], json.loads(large["content"][0]["text"])["code"]) == (True, "RESULT_TOO_LARGE")
    page = call_method(caller, "tools/call", name=name, arguments={"limit": 4})["result"]["structuredContent"]
    assert page["amendments"] == caller.get("/oi-api/provenance/pending?limit=4").json()["amendments"]
    following = {"limit": 4, "cursor": page["cursor"]}
    rest = call_method(caller, "tools/call", name=name, arguments=following)["result"]["structuredContent"]
    assert [one["RecordID"] for one in rest["amendments"]] == [f"{number:012}" for number in range(5, 9)]


def test_a_tool_call_counts_as_one_request_and_is_logged(service_with_many_queries: Service) -> None:
    """A tool call counts as one request for the rate limit, and has a log line with the caller and the tool."""
    caller = service_with_many_queries.create_client("admin@t")
    left = []
    for _ in range(3):
        reply = caller.post(
            ADDRESS, json=build_request("tools/call", name="run_warm_query", arguments={"lookup": "q-1"})
        )
        left.append(int(reply.headers["ratelimit"].partition("r=")[2].partition(";")[0]))
    assert left[0] - left[2] == 2
    entries = [json.loads(line) for line in service_with_many_queries.read_log().splitlines() if line.startswith("{")]
    calls = [entry for entry in entries if entry.get("tool") == "run_warm_query"]
    assert len(calls) == 3
    assert {(entry["principal"], entry["failed"]) for entry in calls} == {("admin@t", False)}
