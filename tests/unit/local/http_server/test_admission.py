"""Tests of the admission of requests before the app is invoked."""

import json
from typing import Any, cast

import pytest

from local.http_server.application import HttpApp
from shared.http.load_shedding import build_overload_error


class OverloadedShedder:
    """Fake load shedder that rejects every request."""

    def admit(self, path: str) -> "OverloadedShedder":
        """Return this object, which rejects the request when its block begins."""
        assert path
        return self

    async def __aenter__(self) -> None:
        raise build_overload_error()

    async def __aexit__(self, *args: object) -> None: ...


class NoRoutes:
    """Fake route table without routes."""

    def match(self, raw_path: str, method: str) -> None:
        """Return None, because no route matches."""


async def read_overload_error_code(path: str) -> str:
    """Send a request to an overloaded host that has no routes, and return the error code of the reply."""
    unused = cast("Any", None)
    app = HttpApp(cast("Any", NoRoutes()), unused, unused, load_shedder=cast("Any", OverloadedShedder()))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"127.0.0.1")],
    }
    body = bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        body.extend(message.get("body", b""))

    await app(cast("Any", scope), cast("Any", receive), cast("Any", send))
    return str(json.loads(bytes(body))["code"])


@pytest.mark.parametrize("path", ["/oi-api/warm-queries", "/oi-api/mcp", "/workspace/api/keys"])
async def test_an_overloaded_host_rejects_requests_before_the_app(path: str) -> None:
    """Under overload the host rejects requests without calling the app, if their errors are problem documents."""
    assert await read_overload_error_code(path) == "OVERLOADED"


@pytest.mark.parametrize("path", ["/v1/plant-a/graphql", "/oauth2/token"])
async def test_an_overloaded_host_leaves_requests_with_other_error_formats_to_the_app(path: str) -> None:
    """Under overload the app rejects GraphQL and OAuth requests, because it replies in their error formats."""
    assert await read_overload_error_code(path) == "ROUTE_NOT_FOUND"
