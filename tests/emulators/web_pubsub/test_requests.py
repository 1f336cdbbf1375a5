"""Tests of the validation of requests to the data plane."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import jwt
import pytest

from tests.emulators.web_pubsub.serving import KEY, VERSION, Running, build_authorization


async def test_a_generated_token_contains_the_requested_claims(
    running_emulator: Running, http: httpx.AsyncClient
) -> None:
    """A generated token contains the requested user, roles, groups and lifetime."""
    query = f"{VERSION}&userId=anna&role=r1&role=r2&group=g&minutesToExpire=5"
    url = f"{running_emulator.url}/api/hubs/plain/:generateToken?{query}"
    token = (await http.post(url, headers=build_authorization(url))).json()["token"]
    audience = f"{running_emulator.url}/client/hubs/plain"
    claims = jwt.decode(token, KEY, algorithms=["HS256"], audience=audience)
    assert (claims["sub"], claims["role"], claims["webpubsub.group"]) == ("anna", ["r1", "r2"], ["g"])
    assert claims["exp"] - claims["iat"] == 300


@pytest.mark.parametrize(
    ("audience", "changes"),
    [
        ("{url}", {"lifetime_seconds": -1}),
        ("{url}", {"key": "another key, which is long enough too"}),
        ("{origin}/api/hubs/plain/groups/h/:send?" + VERSION, {}),
        ("http://other.example/api/hubs/plain/:send?" + VERSION, {}),
        ("{origin}/api/hubs/plain", {}),
        ("{url}&more=1", {}),
    ],
)
async def test_expired_and_foreign_tokens_are_rejected(
    running_emulator: Running, http: httpx.AsyncClient, audience: str, changes: dict[str, Any]
) -> None:
    """A token is rejected if it has expired, is for the URL of another request, or was signed with another key."""
    url = f"{running_emulator.url}/api/hubs/plain/:send?{VERSION}"
    headers = build_authorization(audience.format(url=url, origin=running_emulator.url), **changes)
    reply = await http.post(url, json=1, headers=headers)
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"
    assert reply.json()["code"] == "UNAUTHENTICATED"


async def test_the_token_audience_may_omit_the_query(running_emulator: Running, http: httpx.AsyncClient) -> None:
    """The audience of a token may be the URL of the request without its query."""
    url = f"{running_emulator.url}/api/hubs/plain/:send"
    assert (await http.post(f"{url}?{VERSION}", json=1, headers=build_authorization(url))).status_code == 202
    assert (await http.post(f"{url}?{VERSION}", json=1)).status_code == 401


@pytest.mark.parametrize(
    ("path", "content_type", "body", "status", "field"),
    [
        (":send?" + VERSION + "&filter=userId%20eq%20'a'", "text/plain", b"x", 400, "filter"),
        (":send?" + VERSION + "&messageTtlSeconds=5", "text/plain", b"x", 400, "messageTtlSeconds"),
        (":send?" + VERSION + "&messageTtlSeconds=301", "text/plain", b"x", 400, "messageTtlSeconds"),
        (":send?" + VERSION, "application/xml", b"x", 400, "Content-Type"),
        (":send?" + VERSION, "application/json", b"{", 400, "body"),
        (":send?" + VERSION, "text/plain", b"\xff", 400, "body"),
        (":send", "text/plain", b"x", 400, "api-version"),
        ("groups/%20/:send?" + VERSION, "text/plain", b"x", 400, "group"),
        ("groups/" + "g" * 1025 + "/:send?" + VERSION, "text/plain", b"x", 400, "group"),
        (":generateToken?" + VERSION + "&minutesToExpire=0", "text/plain", b"", 400, "minutesToExpire"),
        (":generateToken?" + VERSION + "&clientType=MQTT", "text/plain", b"", 400, "clientType"),
    ],
)
async def test_unsupported_query_parameters_are_rejected(
    running_emulator: Running,
    http: httpx.AsyncClient,
    path: str,
    content_type: str,
    body: bytes,
    status: int,
    field: str,
) -> None:
    """A request with a malformed or unsupported parameter is rejected with the parameter's name."""
    url = f"{running_emulator.url}/api/hubs/plain/{path}"
    reply = await http.post(url, content=body, headers=build_authorization(url) | {"Content-Type": content_type})
    assert reply.status_code == status
    assert reply.json()["errors"][0]["field"] == field


async def test_compressed_bodies_are_rejected(running_emulator: Running, http: httpx.AsyncClient) -> None:
    """A compressed body is rejected, because clients would receive the compressed bytes."""
    url = f"{running_emulator.url}/api/hubs/plain/:send?{VERSION}"
    headers = build_authorization(url) | {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    assert (await http.post(url, content=b"x", headers=headers)).json()["errors"][0]["field"] == "Content-Encoding"


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_large_bodies_are_rejected(running_emulator: Running, http: httpx.AsyncClient, is_chunked: bool) -> None:  # noqa: FBT001
    """A body of 1 MiB is accepted; a larger body is rejected, also in chunks."""
    url = f"{running_emulator.url}/api/hubs/plain/:send?{VERSION}"
    headers = build_authorization(url) | {"Content-Type": "text/plain"}

    async def yield_parts(size: int) -> AsyncIterator[bytes]:
        yield b"x" * size

    for size, status in ((1024 * 1024, 202), (1024 * 1024 + 1, 413)):
        content = yield_parts(size) if is_chunked else b"x" * size
        assert (await http.post(url, content=content, headers=headers)).status_code == status


async def test_unknown_routes_and_methods_are_rejected(running_emulator: Running, http: httpx.AsyncClient) -> None:
    """An unknown route gets 404; an unsupported method gets 405 with the supported methods."""
    for path in ("/api/hubs/plain/nothing", "/api/hubs/1/:send", "/api/hubs/plain", "/elsewhere"):
        url = f"{running_emulator.url}{path}?{VERSION}"
        assert (await http.post(url, headers=build_authorization(url))).status_code == 404
    url = f"{running_emulator.url}/api/hubs/plain/connections/x?{VERSION}"
    reply = await http.put(url, headers=build_authorization(url))
    assert (reply.status_code, reply.headers["allow"]) == (405, "HEAD, DELETE")


async def test_requests_about_unknown_connections_get_404(running_emulator: Running, http: httpx.AsyncClient) -> None:
    """Requests that send to, join or grant to an unknown connection get 404; removing such a connection succeeds."""
    base = f"{running_emulator.url}/api/hubs/plain"
    calls = [
        ("POST", "connections/x/:send", 404),
        ("PUT", "groups/g/connections/x", 404),
        ("PUT", "permissions/sendToGroup/connections/x", 404),
        ("DELETE", "groups/g/connections/x", 204),
        ("DELETE", "permissions/sendToGroup/connections/x", 204),
        ("DELETE", "connections/x", 204),
        ("DELETE", "connections/x/groups", 204),
    ]
    for method, path, status in calls:
        url = f"{base}/{path}?{VERSION}"
        headers = build_authorization(url) | {"Content-Type": "text/plain"}
        assert (await http.request(method, url, headers=headers)).status_code == status, path


async def test_the_health_route_requires_no_token(running_emulator: Running, http: httpx.AsyncClient) -> None:
    """The health route requires no token."""
    assert (await http.head(f"{running_emulator.url}/api/health")).status_code == 200
