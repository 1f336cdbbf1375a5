"""Tests that principals share the query engine, and that the queries of disconnected clients stop."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.plain_http import NO_TLS
from tests.service.local_service import Service, wait_until

LIMIT = 4
"""Default of MAX_QUERIES_PER_PRINCIPAL."""
ENDLESS = (
    "range a from 1 to 1000000 step 1 | extend k = 1 "
    "| join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | summarize sum(a * b)"
)


@pytest.fixture
def sharing_service(own_service: Service) -> Iterator[Service]:
    """Return a running service that allows long queries."""
    own_service._environment["QUERY_TIMEOUT_SECONDS"] = "100"
    yield own_service.start()
    assert own_service.stop() == 0


def count_running_queries(service: Service) -> int:
    """Return the number of queries that run in the engine."""
    address = (service.data_dir / "kusto-uri").read_text()
    with httpx.Client(trust_env=False, verify=NO_TLS, timeout=30) as client:
        return int(client.get(f"{address}/stats").json()["queries"]["inside"])


def send_post(service: Service, client: httpx.Client, path: str, document: Any) -> socket.socket:
    """Send a POST request and return its connection without waiting for the reply."""
    body = json.dumps(document)
    parts = urlsplit(service.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: {client.headers['Authorization']}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection((parts.hostname or "", parts.port or 0))
    connection.sendall((head + body).encode())
    return connection


def test_queries_of_a_principal_are_limited_and_end_with_the_client(sharing_service: Service) -> None:
    """A principal has at most four running queries, which do not delay others.

    A query stops if its client disconnects.
    """
    editor, admin = sharing_service.create_client("editor@t"), sharing_service.create_client("admin@t")
    with ExitStack() as stack:
        for _ in range(LIMIT + 3):
            stack.enter_context(send_post(sharing_service, editor, "/oi-api/warm-queries", {"query": ENDLESS}))
        wait_until(lambda: count_running_queries(sharing_service), lambda running: running == LIMIT)
        reply = admin.post("/oi-api/warm-queries", json={"query": "print other = 1"})
        assert (reply.status_code, reply.json()["results"]) == (200, [{"other": 1}])
        assert count_running_queries(sharing_service) == LIMIT
    wait_until(lambda: count_running_queries(sharing_service), lambda running: running == 0)
    assert editor.post("/oi-api/warm-queries", json={"query": "print after = 1"}).json()["results"] == [{"after": 1}]
    assert "ERROR" not in sharing_service.read_log()


def test_the_query_of_a_tool_call_stops_if_its_client_disconnects(sharing_service: Service) -> None:
    """If an MCP client disconnects, the engine stops the query of its tool call."""
    editor = sharing_service.create_client("editor@t")
    call = {"name": "run_adhoc_query", "arguments": {"query": ENDLESS}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with send_post(sharing_service, editor, "/oi-api/mcp", message):
        wait_until(lambda: count_running_queries(sharing_service), lambda running: running == 1)
    wait_until(lambda: count_running_queries(sharing_service), lambda running: running == 0)
    assert "ERROR" not in sharing_service.read_log()
