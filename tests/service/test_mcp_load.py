"""The Model Context Protocol server with many tools, many calls at once, and large answers."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.service.local_service import Service, query_rows

ADDRESS = "/oi-api/mcp"
QUERIES = 250
LARGE = "range i from 1 to 9000 step 1 | extend text = strrep('x', 1000)"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
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
        "team": [{"id": "admin@t", "name": "Administrator", "role": "Admin"}],
        "connections": [],
        "surfaces": [{"lookup": "hall", "name": "Hall"}],
        "warmQueries": queries,
    }
    (folder / "workspace.yaml").write_text(yaml.safe_dump(workspace))
    running = Service(folder / "data", folder / "workspace.yaml").start()
    yield running
    assert running.stop() == 0


def request(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of the protocol."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def answered(caller: httpx.Client, method: str, **params: Any) -> dict[str, Any]:
    """Return what a request of the protocol is answered."""
    reply = caller.post(ADDRESS, json=request(method, **params), headers={"Accept": "application/json"})
    body: dict[str, Any] = reply.json()
    return body


def test_tools_come_in_pages(large: Service) -> None:
    """Every approved query is a tool; lists come in pages of 200, each item once."""
    caller = large.caller("admin@t")
    for method, kind in (("tools/list", "tools"), ("resources/list", "resources")):
        first = answered(caller, method)["result"]
        second = answered(caller, method, cursor=first["nextCursor"])["result"]
        names = [one["name"] for page in (first, second) for one in page[kind]]
        assert (len(first[kind]), "nextCursor" in second) == (200, False)
        assert len(names) == len(set(names)) > QUERIES
    assert {f"warm_query_q_{n}" for n in range(QUERIES)} <= {
        tool["name"]
        for cursor in ({}, {"cursor": "200"})
        for tool in answered(caller, "tools/list", **cursor)["result"]["tools"]
    }


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1e3", "٣", "9" * 400, "201", "400", " 200"])
def test_cursors_of_no_list_are_refused(large: Service, cursor: str) -> None:
    """A cursor that this list did not give is an error of the parameters."""
    assert answered(large.caller("admin@t"), "tools/list", cursor=cursor)["error"]["code"] == -32602


async def test_many_calls_at_once_are_each_answered(large: Service) -> None:
    """Of a hundred calls at once each gets its own answer."""
    headers = {**large.caller("admin@t").headers, "Accept": "application/json"}
    async with httpx.AsyncClient(base_url=large.url, headers=headers, timeout=40, trust_env=False) as client:

        async def called(n: int) -> int:
            body = {**request("tools/call", name=f"warm_query_q_{n}", arguments={}), "id": n}
            answer = (await client.post(ADDRESS, json=body)).json()
            assert answer["id"] == n
            [row] = answer["result"]["structuredContent"]["results"]
            return int(row["n"])

        assert await asyncio.gather(*map(called, range(100))) == list(range(100))


def test_answer_too_large_for_an_assistant_is_refused(large: Service) -> None:
    """A tool's answer over 4 MiB is an error that says what to do, though the route gives it whole."""
    caller = large.caller("admin@t")
    assert len(query_rows(caller, LARGE)) == 9000
    result = answered(caller, "tools/call", name="run_adhoc_query", arguments={"query": LARGE, "limit": 10000})[
        "result"
    ]
    assert result["isError"]
    assert json.loads(result["content"][0]["text"])["code"] == "RESULT_TOO_LARGE"
    fewer = answered(caller, "tools/call", name="run_adhoc_query", arguments={"query": LARGE, "limit": 10})["result"]
    assert len(fewer["structuredContent"]["results"]) == 10


def test_a_call_is_counted_once_and_logged(large: Service) -> None:
    """A call counts as one request, whatever routes its tool passes; the log names the caller and the tool."""
    caller = large.caller("admin@t")
    left = []
    for _ in range(3):
        reply = caller.post(ADDRESS, json=request("tools/call", name="run_warm_query", arguments={"lookup": "q-1"}))
        left.append(int(reply.headers["ratelimit"].partition("r=")[2].partition(";")[0]))
    assert left[0] - left[2] == 2
    entries = [json.loads(line) for line in large.log().splitlines() if line.startswith("{")]
    calls = [entry for entry in entries if entry.get("tool") == "run_warm_query"]
    assert len(calls) == 3
    assert {(entry["principal"], entry["failed"]) for entry in calls} == {("admin@t", False)}
