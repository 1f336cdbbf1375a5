"""Tests of HTTP requests and responses of functions on a local host."""

import json
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from shared.http.versions import CURRENT

ECHO = """
@app.route(route="echo/{name}/{*rest}", methods=["GET", "POST", "HEAD"])
async def echo(req: func.HttpRequest) -> func.HttpResponse:
    seen = {"method": req.method, "url": req.url, "headers": dict(req.headers), "params": dict(req.params),
            "route": dict(req.route_params), "body": req.get_body().hex()}
    return func.HttpResponse(json.dumps(seen), mimetype="application/json")

@app.route(route="reflect", methods=["POST"])
async def reflect(req: func.HttpRequest) -> func.HttpResponse:
    response = func.HttpResponse(req.get_body(), status_code=201, mimetype="application/octet-stream",
                                 headers={"x-one": "1", "x-two": "zwei; q=\\xe9"})
    response.headers.add("Set-Cookie", "a=1; Path=/; HttpOnly; SameSite=Lax")
    response.headers.add("Set-Cookie", "b=2; Max-Age=60; Secure")
    return response

@app.route(route="boom")
async def boom(req: func.HttpRequest) -> func.HttpResponse:
    raise RuntimeError("the password is swordfish")

@app.route(route="cancelled")
async def cancelled(req: func.HttpRequest) -> func.HttpResponse:
    raise asyncio.CancelledError

@app.route(route="exits")
async def exits(req: func.HttpRequest) -> func.HttpResponse:
    raise SystemExit(3)

@app.route(route="wrong")
async def wrong(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("x", headers={"x-bad": "\\u2603"})

@app.route(route="nothing", methods=["DELETE"])
async def nothing(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse(status_code=204)

@app.route(route="sync")
def sync(req: func.HttpRequest) -> str:
    print("a stray print")
    return "from a thread"

@app.route(route="slow")
async def slow(req: func.HttpRequest) -> func.HttpResponse:
    record("begun")
    await asyncio.sleep(0.3)
    record("finished")
    return func.HttpResponse("late")

@app.route(route="any", methods=None)
async def any_method(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse(req.method)

@app.route(route="trace")
async def trace(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
    return func.HttpResponse(context.trace_context.Traceparent)
"""


@pytest.fixture(scope="module")
def host(start_module_host: Any) -> Iterator[Any]:
    """Return a host that the tests of this module share."""
    running = start_module_host(ECHO)
    yield running
    assert running.terminate() == 0, running.read_log()


def send_raw_request(url: str, request: bytes) -> bytes:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while received := connection.recv(65536):
            answer += received
        return answer


def test_function_sees_the_request_as_sent(host: Any, http: httpx.Client) -> None:
    """The function gets method, URL, headers, parameters and body unchanged."""
    url = f"{host.url}/echo/a%20b%2Fc%252F/x%C3%A9/y%2520?q=1&q=2&empty=&p=%2B+"
    seen = http.post(url, content=b"\x00\xff", headers=[("X-Twice", "1"), ("X-Twice", "2")]).json()
    assert seen["method"] == "POST"
    assert seen["url"] == url
    assert seen["route"] == {"name": "a b/c%2F", "rest": "xé/y%20"}
    assert seen["params"] == {"q": "1,2", "p": "+ "}
    assert seen["headers"]["x-twice"] == "1,2"
    assert seen["body"] == "00ff"


def test_complete_response_reaches_the_caller(host: Any, http: httpx.Client) -> None:
    """The caller gets the status, headers, cookies and binary body that the function returns."""
    body = bytes(range(256)) * 5000
    answer = http.post(f"{host.url}/reflect", content=body)
    assert (answer.status_code, answer.content) == (201, body)
    assert (answer.headers["x-one"], answer.headers["x-two"]) == ("1", "zwei; q=é")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers.get_list("set-cookie") == ["a=1; Path=/; HttpOnly; SameSite=Lax", "b=2; Max-Age=60; Secure"]


def test_a_chunked_body_reaches_the_function_as_one_body(host: Any, http: httpx.Client) -> None:
    """A chunked body reaches the function as one body."""
    answer = http.post(f"{host.url}/reflect", content=iter([b"a" * 70_000, b"b", b"c" * 70_000]))
    assert answer.content == b"a" * 70_000 + b"b" + b"c" * 70_000


def test_a_chunked_body_reaches_the_function_with_its_length(host: Any, http: httpx.Client) -> None:
    """The function gets the length of a chunked body instead of the transfer coding, also for an empty body."""
    for parts in ([b"ab", b"c"], []):
        seen = http.post(f"{host.url}/echo/a/b", content=iter(parts)).json()
        assert seen["headers"]["content-length"] == str(sum(map(len, parts)))
        assert "transfer-encoding" not in seen["headers"]


def assert_problem(answer: httpx.Response, status: int, code: str, request_id: str) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.headers["x-request-id"] == request_id
    problem = answer.json()
    assert set(problem) >= {"type", "title", "status", "detail", "code", "traceId"}
    assert problem["type"] == "urn:oi:problem:" + code.lower().replace("_", "-")
    assert (problem["status"], problem["code"], problem["traceId"]) == (status, code, request_id)


@pytest.mark.parametrize("path", ["/none", "/echo/x", "/", "//echo/a/b", "/admin/host/status"])
def test_unknown_path_is_a_404(host: Any, http: httpx.Client, path: str) -> None:
    """An unknown route gets a 404 problem document with the caller's request id."""
    method = "PUT" if path == "/echo/x" else "GET"
    answer = http.request(method, host.url + path, headers={"x-request-id": "abc~1"})
    assert_problem(answer, 404, "ROUTE_NOT_FOUND", "abc~1")


@pytest.mark.parametrize("method", ["TRACE", "PROPFIND", "MKCOL", "QUERY", "GET", "OPTIONS"])
def test_function_without_methods_accepts_all_methods(host: Any, http: httpx.Client, method: str) -> None:
    """If a function declares no methods, it is called for each method."""
    assert http.request(method, f"{host.url}/any").text == method


@pytest.mark.parametrize(
    "head",
    [
        b"GET /any HTTP/1.1\r\nHost: 127.0.0.1/echo/a/b?x\r\n",
        b"GET /any HTTP/1.1\r\n",
        b"GET /any HTTP/1.1\r\nHost: a\r\nHost: a\r\n",
        b"GET /any HTTP/1.0\r\nHost: a\r\nHost: a\r\n",
        b"GET http://a@b/any HTTP/1.1\r\nHost: a\r\n",
        b"GET http:///any HTTP/1.1\r\nHost: a\r\n",
        b"GET /any\x01 HTTP/1.1\r\nHost: a\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n",
        b"NONSENSE any thing\r\n",
        b"\x16\x03\x01 /any HTTP/1.1\r\nHost: a\r\n",
    ],
)
def test_invalid_target_is_rejected(host: Any, head: bytes) -> None:
    """A request with an invalid host or target gets a 400 problem document, and its connection is closed."""
    head_line, _, body = send_raw_request(host.url, head + b"X-Request-Id: mine\r\n\r\n").partition(b"\r\n\r\n")
    assert head_line.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"application/problem+json" in head_line
    problem = json.loads(body)
    assert (problem["code"], problem["status"]) == ("INVALID_REQUEST", 400)
    assert f"x-request-id: {problem['traceId']}".encode() in head_line


@pytest.mark.parametrize("method", [b"FOO", b"get", b"NONSENSE"])
def test_an_unknown_method_gets_501(host: Any, method: bytes) -> None:
    """An unknown method gets a 501 problem document, and its connection is closed."""
    head, _, body = send_raw_request(host.url, method + b" /any HTTP/1.1\r\nHost: a\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 501 Not Implemented\r\n")
    problem = json.loads(body)
    assert (problem["code"], problem["status"]) == ("METHOD_NOT_IMPLEMENTED", 501)


@pytest.mark.parametrize("line", [b"GET /any HTTP/2.0", b"GET /any HTTP/0.9", b"FOO /any HTTP/9.9", b"PRI * HTTP/2.0"])
def test_an_http_version_other_than_1_gets_505(host: Any, line: bytes) -> None:
    """A request with an HTTP version other than 1.x gets a 505 problem document, and its connection is closed."""
    head, _, body = send_raw_request(host.url, line + b"\r\nHost: a\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 505 HTTP Version Not Supported\r\n")
    problem = json.loads(body)
    assert (problem["code"], problem["status"]) == ("HTTP_VERSION_NOT_SUPPORTED", 505)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET %s HTTP/1.1\r\n\r\n", 400),
        (b"GET %s HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET %s HTTP/1.1\r\nHost: a\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n", 400),
        (b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 200000000\r\n\r\n", 413),
        (b"GET %s?" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET %s HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n", 431),
        (b"FOO %s HTTP/1.1\r\n\r\n", 501),
        (b"POST %s HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET %s HTTP/2.0\r\n\r\n", 505),
    ],
)
def test_error_replies_of_the_rest_api_state_the_version(host: Any, request_bytes: bytes, status: int) -> None:
    """The host's own error replies state the API version at addresses of the REST API, and only there."""
    for path, versions in ((b"/oi-api/team", [CURRENT.encode()]), (b"/v1/plant-a/graphql", [])):
        head, _, _ = send_raw_request(host.url, request_bytes.replace(b"%s", path)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status)
        assert re.findall(rb"(?i)\r\noi-version: ([0-9-]*)", head) == versions


@pytest.mark.parametrize(
    "coding", [b"gzip", b"gzip, chunked", b"gzip\r\nTransfer-Encoding: chunked", b"identity,chunked"]
)
def test_a_transfer_coding_other_than_chunked_gets_501(host: Any, coding: bytes) -> None:
    """A transfer coding other than chunked gets a 501 problem document."""
    body = b"1\r\na\r\n0\r\n\r\n"
    sent = b"POST /any HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: " + coding + b"\r\n\r\n" + body
    head, _, told = send_raw_request(host.url, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 501 Not Implemented\r\n")
    assert json.loads(told)["code"] == "TRANSFER_CODING_NOT_IMPLEMENTED"


@pytest.mark.parametrize("coding", [b"chunked, gzip", b"chunked, chunked"])
def test_a_body_is_rejected_unless_chunked_is_its_last_coding(host: Any, coding: bytes) -> None:
    """A request body is rejected with 400 unless chunked is its last transfer coding and is applied once."""
    sent = b"POST /any HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: " + coding + b"\r\n\r\n"
    assert send_raw_request(host.url, sent).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("target", "url"),
    [
        (b"http://other:81/echo/a/b?q=1", "http://other:81/echo/a/b?q=1"),
        (b"HTTP://[::1]/echo/a/b", "http://[::1]/echo/a/b"),
        (b"/echo/a/http://other/b", "http://mine/echo/a/http://other/b"),
    ],
)
def test_the_host_of_an_absolute_target_overrides_the_host_header(host: Any, target: bytes, url: str) -> None:
    """If the request target is an absolute URL, its host overrides the Host header."""
    answer = send_raw_request(host.url, b"GET " + target + b" HTTP/1.1\r\nHost: mine\r\nConnection: close\r\n\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["url"] == url


def test_a_reply_to_head_has_no_body(host: Any, http: httpx.Client) -> None:
    """A reply to HEAD has headers but no body, and the connection stays open."""
    assert http.head(f"{host.url}/echo/a/b").headers["content-type"] == "application/json"
    assert http.get(f"{host.url}/echo/a/b").json()["method"] == "GET"


def test_a_204_reply_has_no_body(host: Any, http: httpx.Client) -> None:
    """A 204 response has no body and no Content-Length."""
    answer = http.delete(f"{host.url}/nothing")
    assert (answer.status_code, answer.content, "content-length" in answer.headers) == (204, b"", False)


@pytest.mark.parametrize("route", ["boom", "wrong", "cancelled", "exits"])
def test_a_failed_function_shows_no_details(host: Any, http: httpx.Client, route: str) -> None:
    """If a function fails, the caller gets a 500 problem document without details; the log has the reason."""
    before = len(host.read_log())
    answer = http.get(f"{host.url}/{route}")
    assert_problem(answer, 500, "INTERNAL_ERROR", answer.headers["x-request-id"])
    assert "swordfish" not in answer.text
    log = host.read_log()[before:]
    assert f'"requestId": "{answer.headers["x-request-id"]}"' in log
    assert ("swordfish" in log) == (route == "boom")
    assert f'"function": "{route}"' in log


def test_sync_function_runs_in_a_thread(host: Any, http: httpx.Client) -> None:
    """A synchronous function runs in a thread, and its output is logged."""
    assert http.get(f"{host.url}/sync").text == "from a thread"
    host.wait_until(lambda: "a stray print" in host.read_log())


def test_a_body_over_the_limit_is_rejected(host: Any) -> None:
    """A body over 100 MB gets 413 before it is read."""
    request = b"POST /reflect HTTP/1.1\r\nHost: x\r\nContent-Length: 104857601\r\n\r\n"
    head, _, body = send_raw_request(host.url, request).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    problem = json.loads(body)
    assert problem["code"] == "BODY_TOO_LARGE"
    assert f"x-request-id: {problem['traceId']}".encode() in head


def test_a_body_that_the_host_itself_parses_has_at_most_1024_bytes(host: Any, http: httpx.Client) -> None:
    """The administration API rejects a body of more than 1,024 bytes, because the event loop parses it."""
    url, body = f"{host.url}/admin/functions/boom", json.dumps({"input": "x" * 1_011}).encode()
    assert_problem(http.post(url, content=body, headers={"x-request-id": "a1"}), 400, "INVALID_REQUEST", "a1")
    for content in (body + b" ", iter([body, b" "])):
        reply = http.post(url, content=content, headers={"x-request-id": "a2"})
        assert_problem(reply, 413, "BODY_TOO_LARGE", "a2")
        assert reply.json()["detail"] == "The body must have at most 1024 bytes."


def test_a_disconnect_does_not_cancel_the_function(host: Any) -> None:
    """A function completes although the caller has disconnected."""
    parts = urlsplit(host.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        host.wait_until(lambda: host.read_records() == ["begun"])
    host.wait_until(lambda: host.read_records() == ["begun", "finished"])


def test_trace_context_is_forwarded(host: Any, http: httpx.Client) -> None:
    """A valid trace context of the request is passed to the function."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert http.get(f"{host.url}/trace", headers={"traceparent": parent}).text == parent
    assert http.get(f"{host.url}/trace", headers={"traceparent": "junk"}).text == ""


def test_the_prefix_of_host_json_applies_to_every_route(start_host: Any, http: httpx.Client) -> None:
    """Each route begins with the prefix in host.json."""
    host = start_host(ECHO, prefix="api/v2")
    assert http.get(f"{host.url}/api/v2/sync").status_code == 200
    assert http.get(f"{host.url}/sync").status_code == 404
