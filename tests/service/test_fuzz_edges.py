"""Fuzz tests of WebSocket handshakes, file links, pages, GraphQL documents and MCP messages."""

import json
import os
import random
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.service.local_service import Service
from tests.service.test_fuzz import FEWEST, MAX_GROWTH_BYTES, SLOWEST_SECONDS, SUITE_SECONDS, TEXTS, draw_value

SOAK_SECONDS = float(os.environ.get("FUZZ_SECONDS", "600"))
PAGES = ("/oi-api/explorer", "/console", "/", "/graphiql", "/static", "/v1/plant-t/graphql")
WORDS: tuple[str, ...] = (
    "{",
    "}",
    "(",
    ")",
    ":",
    "[",
    "]",
    '"',
    "#",
    "!",
    "$x",
    "id",
    "query",
    "mutation",
    "workspace",
    "connections",
    "nodes",
    "__schema",
    "executeQuery",
    "...F",
)
WORDS += ("fragment F on Query", "@skip(if: true)", "first: 1", "\\u0000", "😀")
METHODS = (
    "initialize",
    "tools/list",
    "tools/call",
    "resources/read",
    "prompts/get",
    "ping",
    "notifications/x",
    "",
    "x",
)
TOOLS = ("run_adhoc_query", "tail_telemetry", "query_audit_events", "verify_audit_chain", "list_surfaces", "nothing")

type Raw = tuple[str, str, dict[str, str], bytes]
"""Method, target, headers and body."""


def draw_text(rng: random.Random) -> str:
    """Return random text, sometimes percent-encoded."""
    chosen = rng.choice(TEXTS)[:200]
    return quote(chosen, safe="") if rng.random() < 0.7 else quote(chosen, safe="/.%:?#&=")


def draw_handshake(rng: random.Random) -> Raw:
    """Return a WebSocket handshake with random missing, repeated or wrong parts."""
    path = rng.choice(("/oi-api/live-stream", "/oi-api/live-stream/", "/client/hubs/live", "/api/hubs/live", "/x"))
    names = ("connection", "surface", "token", "since", "windowSec", "access_token", "x")
    query = "&".join(f"{rng.choice(names)}={draw_text(rng)}" for _ in range(rng.randrange(4)))
    headers = {"Connection": "Upgrade", "Upgrade": rng.choice(("websocket", "WebSocket", "h2c", "x"))}
    headers["Sec-WebSocket-Version"] = rng.choice(("13", "8", "x"))
    headers["Sec-WebSocket-Key"] = rng.choice(("dGhlIHNhbXBsZSBub25jZQ==", "", "x"))
    if rng.random() < 0.5:
        headers["Sec-WebSocket-Protocol"] = rng.choice(("bearer.x", "json.webpubsub.azure.v1", "a,b", ","))
    for name in rng.sample(list(headers), rng.randrange(2)):
        del headers[name]
    return "GET", f"{path}?{query}", headers, b""


def draw_file_link(rng: random.Random) -> Raw:
    """Return a random file link, whose file does not exist."""
    container = rng.choice(("downloads", "cold", "checkpoints", "..", ".drafts", draw_text(rng)))
    query = "&".join(f"{rng.choice(('name', 'expires', 'signature', 'x'))}={draw_text(rng)}" for _ in range(3))
    headers = {"Range": rng.choice(("bytes=0-", "bytes=-1", "bytes=9-1", "x", "bytes=" + "9" * 50))}
    return rng.choice(("GET", "HEAD", "POST")), f"/files/{container}/{draw_text(rng)}?{query}", headers, b""


def draw_page(rng: random.Random) -> Raw:
    """Return a random URL below a path of the console or the API pages."""
    parts = "/".join(draw_text(rng) for _ in range(rng.randrange(1, 4)))
    return "GET", f"{rng.choice(PAGES)}/{parts}", {}, b""


def draw_graphql_request(rng: random.Random) -> Raw:
    """Return a request with a random sequence of GraphQL tokens."""
    document = " ".join(rng.choices(WORDS, k=rng.randrange(40)))
    body = {"query": document, "variables": draw_value(rng), "operationName": rng.choice(TEXTS)}
    return "POST", "/v1/plant-t/graphql", {"Content-Type": "application/json"}, json.dumps(body).encode()


def draw_mcp_request(rng: random.Random) -> Raw:
    """Return a random MCP message."""
    params = {"name": rng.choice(TOOLS), "arguments": draw_value(rng), "uri": rng.choice(TEXTS)}
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": rng.choice((1, "a", None, 1.5)),
        "method": rng.choice(METHODS),
    }
    message["params"] = rng.choice((params, draw_value(rng)))
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if rng.random() < 0.5:
        headers["MCP-Protocol-Version"] = rng.choice(("2026-07-28", "2025-11-25", "x"))
    return "POST", "/oi-api/mcp", headers, json.dumps(message).encode()


KINDS: tuple[Callable[[random.Random], Raw], ...] = (
    draw_handshake,
    draw_file_link,
    draw_page,
    draw_graphql_request,
    draw_mcp_request,
)


def request_status(service: Service, raw_request: Raw, authorization: str) -> int:
    """Send a request over a new connection and return the status of the reply."""
    method, target, headers, body = raw_request
    address = urlsplit(service.url)
    lines = [f"{method} {target} HTTP/1.1", f"Host: {address.netloc}", f"Authorization: {authorization}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}"] if body else []
    with socket.create_connection((address.hostname or "", address.port or 0), SLOWEST_SECONDS) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        head = connection.recv(65536)
    return int(head.split(b" ", 2)[1])


def send_random_requests(service: Service, member: str, seconds: float, seed: int) -> None:
    """Send random requests for some seconds; the message of a failure contains the seed."""
    rng, sent, ends = random.Random(seed), 0, time.monotonic() + seconds
    authorization = service.create_client(member).headers["Authorization"]
    while sent < FEWEST or time.monotonic() < ends:
        raw = rng.choice(KINDS)(rng)
        status = request_status(service, raw, authorization)
        assert status < 500 or status in (501, 503, 504), f"seed {seed}, request {sent}: {raw}: {status}"
        sent += 1


@pytest.mark.parametrize("member", ["admin@t", "editor@t"])
def test_the_service_works_after_random_edge_requests(own_module_service: Service, member: str) -> None:
    """Random handshakes, file links, page URLs, GraphQL documents and MCP messages cause no internal error."""
    send_random_requests(own_module_service, member, SUITE_SECONDS / 2, random.randrange(2**32))
    assert own_module_service.create_anonymous_client().get("/healthz").is_success


@pytest.mark.soak
def test_random_edge_requests_do_not_leak_memory_soak(own_module_service: Service) -> None:
    """After many random requests, the service works and uses no more memory than before."""
    send_random_requests(own_module_service, "admin@t", SUITE_SECONDS, 1)
    before = own_module_service.read_memory_bytes()
    for member in ("admin@t", "editor@t"):
        send_random_requests(own_module_service, member, SOAK_SECONDS / 2, random.randrange(2**32))
    assert own_module_service.read_memory_bytes() - before < MAX_GROWTH_BYTES / 4
