"""Tests of the size limits of requests: each limit has its own error, and smaller requests succeed."""

import gzip
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from shared.http.size_limits import MAX_HEADER_BYTES, MAX_HEADERS, MAX_TARGET
from tests.service.local_service import Service, check_failing_fields, check_problem

MIB = 1024 * 1024
EVENT = b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":{"v":%b}}'
EVENTS = "/oi-api/provenance/events"
TABLE = "/oi-api/data-stores/mes/databases/orders/tables/notes"


@pytest.fixture(scope="module")
def admin(service: Service) -> httpx.Client:
    """Return a client with all access rights."""
    return service.create_client("admin@t")


@contextmanager
def open_raw_connection(service: Service) -> Iterator[socket.socket]:
    """Yield a TCP connection over which the tests send requests that client libraries cannot send."""
    parts = urlsplit(service.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        yield connection


def read_until_closed(connection: socket.socket) -> httpx.Response:
    """Return all bytes that arrive until the host closes the connection."""
    received = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    return httpx.Response(int(status.split()[1]), headers=headers, content=body)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", each) for each in ("/healthz", "/oi-api/warm-queries", EVENTS + "/query", "/oi-api/openapi")),
        *(("POST", each) for each in (EVENTS, "/oi-api/warm-queries")),
    ],
)
def test_every_route_rejects_too_many_query_parameters(admin: httpx.Client, method: str, path: str) -> None:
    """More than 200 query parameters are rejected on each route, also on routes that have no parameters."""
    parameters = "&".join(f"a{number}=1" for number in range(201))
    assert admin.request(method, f"{path}?{parameters}").status_code == 400


@pytest.mark.parametrize("encoding", ["gzip", "identity, gzip", "x", "br"])
def test_bodies_with_a_content_encoding_are_rejected(admin: httpx.Client, encoding: str) -> None:
    """A body with a Content-Encoding is rejected with the list of accepted encodings."""
    reply = admin.post(EVENTS, content=gzip.compress(EVENT % b"1"), headers={"Content-Encoding": encoding})
    check_problem(reply, 415, "CONTENT_ENCODING_UNSUPPORTED")
    assert reply.headers["accept-encoding"] == "identity"
    for plain in ("identity", ""):
        reply = admin.post(EVENTS, content=EVENT % b"1", headers={"Content-Encoding": plain})
        assert reply.status_code == 201


def test_the_length_of_a_request_target_is_limited(service: Service) -> None:
    """A path with query of 32,768 bytes is accepted; a path with one more byte is rejected with 414."""
    client = service.create_anonymous_client()
    assert client.get("/healthz?" + "a" * (MAX_TARGET - len("/healthz?"))).status_code == 200
    check_problem(client.get("/healthz?" + "a" * (MAX_TARGET - len("/healthz?") + 1)), 414, "URI_TOO_LONG")
    check_problem(client.get("/oi-api/warm-queries/" + "a" * MAX_TARGET), 414, "URI_TOO_LONG")
    check_problem(client.get("/healthz?" + "a" * 60_000), 414, "URI_TOO_LONG")


def test_the_number_of_headers_is_limited(service: Service) -> None:
    """A request with 100 headers is accepted; with more headers it gets 431, even if all have the same name."""
    client = service.create_anonymous_client()
    own = len(client.build_request("GET", "/healthz").headers.raw)
    fitting = [(f"x-{number}", "1") for number in range(MAX_HEADERS - own)]
    assert client.get("/healthz", headers=fitting).status_code == 200
    check_problem(client.get("/healthz", headers=[*fitting, ("x-more", "1")]), 431, "HEADERS_TOO_LARGE")
    check_problem(client.get("/healthz", headers=[("x-same", "1")] * (MAX_HEADERS + 1)), 431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize("size", [MAX_HEADER_BYTES, 300_000, 3_000_000])
def test_the_size_of_headers_is_limited(service: Service, size: int) -> None:
    """Headers below 128 KiB are accepted; larger headers get 431 before they are completely received."""
    client = service.create_anonymous_client()
    assert client.get("/healthz", headers={"x-large": "a" * (MAX_HEADER_BYTES - 1024)}).status_code == 200
    check_problem(client.get("/healthz", headers={"x-large": "a" * size}), 431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize(
    ("begin", "status"),
    [
        (b"GET /", 414),
        (b"GET /healthz?", 414),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n", 431),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nx: ", 431),
    ],
)
def test_an_endless_request_head_is_rejected(service: Service, begin: bytes, status: int) -> None:
    """A target, header name or header value without an end is rejected while it is received."""
    with open_raw_connection(service) as connection:
        connection.sendall(begin)
        sent = 0
        try:
            while sent < 4 * MIB:
                connection.sendall(b"a" * 65_536)
                sent += 65_536
        except OSError:
            pass  # the host closed the connection before it read all
        assert sent <= 4 * MIB
    with open_raw_connection(service) as connection:
        connection.sendall(begin + b"a" * (MAX_HEADER_BYTES * 9))
        reply = read_until_closed(connection)
    assert reply.status_code == status
    check_problem(reply, status, "URI_TOO_LONG" if status == 414 else "HEADERS_TOO_LARGE")


def test_trailers_and_chunk_extensions_are_limited(service: Service) -> None:
    """Trailers and chunk extensions have the same limits as headers."""
    begin = b"POST /oi-api/mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1"
    for flood in (
        b";a=" + b"b" * 600_000,
        b"\r\na\r\n0\r\nx: " + b"b" * 600_000,
        b"\r\na\r\n0\r\n" + b"a: b\r\n" * 200,
    ):
        with open_raw_connection(service) as connection:
            for part in (begin, flood[:1], flood[1:]):
                connection.sendall(part)
            check_problem(read_until_closed(connection), 431, "HEADERS_TOO_LARGE")


def test_credentials_in_trailers_are_ignored(service: Service, admin: httpx.Client) -> None:
    """A credential, a request id or an upgrade in a trailer has no effect."""
    token = admin.headers["Authorization"]
    trailers = f"Authorization: {token}\r\nx-request-id: trailed\r\nContent-Encoding: gzip\r\nHost: b\r\n".encode()
    for path in ("/oi-api/warm-queries", "/oi-api/mcp", "/v1/plant-t/graphql"):
        begin = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        with open_raw_connection(service) as connection:
            connection.sendall(begin.encode() + b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
            reply = read_until_closed(connection)
        assert (reply.status_code, reply.headers["x-request-id"] == "trailed") == (401, False)


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (
            "POST /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked",
            501,
            "TRANSFER_CODING_NOT_IMPLEMENTED",
        ),
        ("GET /healthz HTTP/3.0\r\nHost: a", 505, "HTTP_VERSION_NOT_SUPPORTED"),
        ("GET /healthz HTTP/1.1\r\nHost: a:99999", 400, "INVALID_REQUEST"),
        ("GET ftp://a/healthz HTTP/1.1\r\nHost: a", 400, "INVALID_REQUEST"),
    ],
)
def test_the_error_names_an_unsupported_protocol_feature(service: Service, head: str, status: int, code: str) -> None:
    """An unsupported encoding, version, port or scheme is rejected with an error that names this part."""
    with open_raw_connection(service) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode())
        check_problem(read_until_closed(connection), status, code)


def test_other_callers_are_served_during_a_flood_of_headers(service: Service) -> None:
    """Connections that send endless headers do not affect other callers."""
    with open_raw_connection(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nx: " + b"a" * 20_000)
        assert service.create_anonymous_client().get("/healthz").status_code == 200


def test_the_error_about_too_many_parameters_states_the_limit(admin: httpx.Client) -> None:
    """200 query parameters are accepted; more parameters get 400 and the limit."""
    address = "/oi-api/openapi"
    assert admin.get(f"{address}?" + "&".join(f"a{number}=1" for number in range(200))).status_code == 200
    reply = admin.get(f"{address}?" + "&".join(f"a{number}=1" for number in range(201)))
    assert check_failing_fields(reply) == ["query"]
    assert "more than 200 parameters" in reply.json()["detail"]


def test_the_size_of_a_body_is_limited(admin: httpx.Client) -> None:
    """1 MiB of JSON and 2 MiB of a document are accepted; larger bodies get 413."""
    padding = b" " * (MIB - len(EVENT % b"1"))
    assert admin.post(EVENTS, content=EVENT % b"1" + padding).status_code == 201
    check_problem(admin.post(EVENTS, content=EVENT % b"1" + padding + b" "), 413, "BODY_TOO_LARGE")
    check_problem(admin.post(EVENTS, content=iter([EVENT % b"1", padding, b" "])), 413, "BODY_TOO_LARGE")
    check_problem(admin.post(TABLE, content=b'{"id":"x"}' + b" " * 2 * MIB), 413, "BODY_TOO_LARGE")


def test_a_body_over_the_hosts_limit_is_rejected_unread(admin: httpx.Client, service: Service) -> None:
    """A request with a Content-Length over 100 MB is rejected before its body is received."""
    with open_raw_connection(service) as connection:
        connection.sendall(b"POST /oi-api/telemetry/press HTTP/1.1\r\nHost: a\r\nContent-Length: 104857601\r\n\r\n")
        assert read_until_closed(connection).json()["code"] == "BODY_TOO_LARGE"
    assert admin.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (b"[" * 101 + b"]" * 101, "nested deeper than 100 levels"),
        (b"[" * 5_000 + b"]" * 5_000, "nested deeper than 100 levels"),
        (b"1" * 5_000, "an integer has more than 4300 digits"),
        (b"1e999", "a number is outside the range of a double"),
        (b'{"a":1,"a":2}', "the key 'a' occurs twice in one object"),
        (b'"\\ud800"', "a string has an unpaired surrogate, which is not a character"),
        (b"NaN", "NaN is not JSON"),
    ],
)
def test_the_error_about_json_names_the_broken_rule(admin: httpx.Client, value: bytes, rule: str) -> None:
    """JSON that breaks a rule about depth, digits, range, keys or characters is rejected with the broken rule."""
    reply = admin.post(EVENTS, content=EVENT % value)
    assert check_failing_fields(reply, 400, "BODY_NOT_JSON") == ["body"]
    assert rule in reply.json()["detail"]


def test_json_within_the_limits_is_stored(admin: httpx.Client) -> None:
    """An event with 98 nested levels is stored, and so is an event with a string as large as the body may be."""
    assert admin.post(EVENTS, content=EVENT % (b"[" * 98 + b"]" * 98)).status_code == 201
    assert admin.post(EVENTS, content=EVENT % (b'"' + b"a" * 1_000_000 + b'"')).status_code == 201


@pytest.mark.parametrize(
    ("method", "address", "body", "field"),
    [
        ("POST", "/workspace/api/keys", {"name": "n" * 257}, "name"),
        ("POST", EVENTS, {"ScopeKey": "s" * 1025}, "ScopeKey"),
        ("PUT", "/oi-api/warm-queries/long", {"name": "n" * 257, "surface": "hall", "kql": "Telemetry"}, "name"),
        ("PUT", "/oi-api/warm-queries/long", {"name": "n", "surface": "hall", "kql": "T" * 65_537}, "kql"),
    ],
)
def test_the_length_of_texts_is_limited(
    admin: httpx.Client, method: str, address: str, body: dict[str, str], field: str
) -> None:
    """A string that is too long is rejected with 400 and the name of the field."""
    event = {"ActionType": "a", "EntityType": "b", "EntityID": "c"} if address == EVENTS else {}
    assert check_failing_fields(admin.request(method, address, json={**event, **body})) == [field]


def test_a_body_must_be_a_json_object(admin: httpx.Client) -> None:
    """An empty body, or JSON that is not an object, is rejected with 400 and the reason."""
    for content, rule in ((b"", "not JSON"), (b"  ", "not JSON"), (b"[]", "an object"), (b"null", "an object")):
        reply = admin.post(TABLE, content=content)
        assert check_failing_fields(reply, 400, reply.json()["code"]) == ["body"]
        assert rule in reply.json()["detail"], reply.text


def test_replies_without_content_have_no_content_type(admin: httpx.Client) -> None:
    """Replies without content, such as 204 and 304, have no Content-Type."""
    created = admin.post(TABLE, json={"id": "typeless"})
    known = admin.get(f"{TABLE}/typeless", headers={"If-None-Match": created.headers["ETag"]})
    gone = admin.delete(f"{TABLE}/typeless")
    page = admin.get("/oi-api/explorer")
    same = admin.get("/oi-api/explorer", headers={"If-None-Match": page.headers.get("ETag", '"none"')})
    assert (known.status_code, gone.status_code) == (304, 204)
    for reply in (known, gone, *([same] if same.status_code == 304 else [])):
        assert reply.content == b""
        assert "content-type" not in reply.headers


@pytest.mark.parametrize("headers", [{"Upgrade": "websocket"}, {"Upgrade": "websocket", "Connection": "keep-alive"}])
def test_the_header_upgrade_requires_the_header_connection(admin: httpx.Client, headers: dict[str, str]) -> None:
    """The header Upgrade has an effect only if the header Connection lists it; otherwise the stream returns 426."""
    reply = admin.get("/oi-api/live-stream", headers=headers)
    check_problem(reply, 426, "UPGRADE_REQUIRED")
    assert reply.headers["upgrade"] == "websocket"
