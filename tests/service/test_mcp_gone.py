"""Tests that a disconnected MCP client frees its slot while a slow tool runs."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.service.local_service import Service, wait_until

ADDRESS = "/oi-api/mcp"
LONGEST_SECONDS = 90
"""Maximum duration: the query timeout, and a restart of the engine on a busy machine."""

ENDLESS = """range a from 1 to 2000000 step 1 | extend k = 1
| join kind=inner (range b from 1 to 2000000 step 1 | extend k = 1) on k
| summarize s = sum(a * b)"""
DOCUMENT = """
workspace: {id: plant-g, name: Plant G}
tier: enterprise
limits: {requestsPerMinute: 100000, concurrent: 1}
team: [{id: ann@g, name: Ann, role: Admin}]
"""
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "run_adhoc_query", "arguments": {"query": ENDLESS}},
}


@pytest.fixture(scope="module")
def limited_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service with one concurrent request per caller and a query timeout of two seconds."""
    folder: Path = tmp_path_factory.mktemp("gone")
    (folder / "workspace.yaml").write_text(DOCUMENT)
    running = Service(folder / "data", folder / "workspace.yaml", {"QUERY_TIMEOUT_SECONDS": "2"}).start()
    yield running
    running.stop()


def test_a_slow_tool_returns_a_timeout_error(limited_service: Service) -> None:
    """A tool that exceeds the query timeout returns an error as its result."""
    result = limited_service.create_client("ann@g").post(ADDRESS, json=CALL).json()["result"]
    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"])["code"] == "QUERY_TIMEOUT"


def send_slow_call(caller: httpx.Client) -> HTTPConnection | None:
    """Send a slow call and return its connection without waiting for the reply.

    Return None if the call has ended before the next request, because then it occupies no slot.
    """
    connection = HTTPConnection(caller.base_url.host, caller.base_url.port, timeout=0.5)
    connection.request("POST", ADDRESS, json.dumps(CALL), dict(caller.headers) | {"Content-Type": "application/json"})
    try:
        connection.getresponse().read()
    except TimeoutError:
        if caller.post(ADDRESS, json=PING).status_code == 429:
            return connection
    connection.close()
    return None


@pytest.mark.parametrize("cancels", [False, True])
def test_a_disconnected_client_frees_its_request_slot(limited_service: Service, cancels: bool) -> None:  # noqa: FBT001  a parameter
    """If a client disconnects during a call, with or without cancelling it, the caller can soon send another call."""
    caller = limited_service.create_client("ann@g")

    def count_successful_calls() -> int:
        return caller.post(ADDRESS, json=PING).status_code

    assert wait_until(count_successful_calls, lambda status: status == 200) == 200
    for _ in range(2):
        connection = wait_until(lambda: send_slow_call(caller), bool, LONGEST_SECONDS)
        assert connection is not None
        if cancels:
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
            assert caller.post(ADDRESS, json=cancelled).status_code in {202, 429}
        connection.close()
        assert wait_until(count_successful_calls, lambda status: status == 200, LONGEST_SECONDS) == 200
