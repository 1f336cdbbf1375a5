"""Tests of CORS and browser security headers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.local_service import Service, check_problem

ORIGIN = "https://dash.example"
WORKSPACE = Path(__file__).with_name("workspace.yaml")
MCP = "/oi-api/mcp"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PREFLIGHT = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "PUT",
    "Access-Control-Request-Headers": "authorization",
}


@pytest.fixture(scope="module")
def cors_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that allows browser requests from one origin besides its own."""
    running = Service(
        tmp_path_factory.mktemp("cors") / "data", WORKSPACE, {"CORS_ORIGINS": f"{ORIGIN}/, https://b.example"}
    )
    yield running.start()
    running.stop()


def test_cross_origin_requests_are_rejected_by_default(service: Service) -> None:
    """If no origin is configured, no reply permits cross-origin requests, and preflight requests are rejected."""
    caller = service.create_anonymous_client()
    for reply in (
        caller.options("/oi-api/warm-queries/x", headers=PREFLIGHT),
        caller.get("/healthz", headers={"Origin": ORIGIN}),
    ):
        assert not [name for name in reply.headers if name.startswith("access-control-")]
    assert caller.options("/oi-api/warm-queries/x", headers=PREFLIGHT).status_code == 405


def test_an_allowed_origin_can_call_the_service(cors_service: Service) -> None:
    """Scripts of an allowed origin can call the service and read its replies and errors.

    Scripts of other origins cannot.
    """
    caller = cors_service.create_anonymous_client()
    preflight = caller.options("/oi-api/warm-queries/x", headers=PREFLIGHT)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == ORIGIN
    assert {"GET", "PUT"} <= set(preflight.headers["access-control-allow-methods"].split(", "))
    assert {"Authorization", "Content-Encoding"} <= set(preflight.headers["access-control-allow-headers"].split(", "))
    refused = caller.get("/oi-api/warm-queries", headers={"Origin": ORIGIN})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, ORIGIN)
    assert "Origin" in refused.headers["vary"]
    assert "access-control-allow-credentials" not in refused.headers
    for origin in ("https://evil.example", "null", f"{ORIGIN}.evil.example", "*", ""):
        reply = caller.get("/healthz", headers={"Origin": origin})
        assert "access-control-allow-origin" not in reply.headers
    assert caller.options("/oi-api/nothing", headers=PREFLIGHT).status_code == 404


def test_an_allowed_origin_can_use_mcp(cors_service: Service) -> None:
    """Scripts of an allowed origin can use the MCP server with its headers; scripts of other origins are rejected."""
    needed = ["authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"]
    parameters = PREFLIGHT | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ",".join(needed),
    }
    preflight = cors_service.create_anonymous_client().options(MCP, headers=parameters)
    assert preflight.status_code == 204
    allowed = preflight.headers["access-control-allow-headers"].lower().split(", ")
    assert set(needed) | {"last-event-id"} <= set(allowed)
    caller = cors_service.create_client("viewer@t")
    for origin in (ORIGIN, "https://b.example"):
        reply = caller.post(MCP, json=PING, headers={"Origin": origin, "MCP-Protocol-Version": "2025-11-25"})
        assert (reply.status_code, reply.json()["result"]) == (200, {})
        assert reply.headers["access-control-allow-origin"] == origin
    for origin in ("https://evil.example", "null", f"{ORIGIN}.evil.example", f"{ORIGIN}:444", "http://dash.example"):
        check_problem(caller.post(MCP, json=PING, headers={"Origin": origin}), 403, "PROTOCOL_REFUSED")
    check_problem(
        caller.post(MCP, json=PING, headers={"Origin": ORIGIN, "Host": "evil.example"}), 421, "PROTOCOL_REFUSED"
    )


def test_documented_headers_are_exposed(cors_service: Service) -> None:
    """Scripts of an allowed origin can read all documented response headers."""
    reply = cors_service.create_client("admin@t").get("/oi-api/openapi", headers={"Origin": ORIGIN})
    exposed = {name.lower() for name in reply.headers["access-control-expose-headers"].split(", ")}
    operations = [one for path in reply.json()["paths"].values() for one in path.values() if isinstance(one, dict)]
    answers = [answer for one in operations for answer in one.get("responses", {}).values()]
    described = {name.lower() for answer in answers for name in answer.get("headers", {})}
    assert len(described) > 5
    assert described - exposed == set()
    assert exposed >= {
        *("ratelimit", "ratelimit-policy", "retry-after", "www-authenticate", "x-request-id", "etag", "location"),
        *("x-query-approved-by", "x-query-approved-at", "x-query-truncated", "x-query-executed-at"),
        "x-query-execution-time-ms",
        *("x-provenance-has-more", "x-provenance-ignored", "content-disposition"),
    }


def test_every_reply_has_security_headers(service: Service) -> None:
    """Every reply, including those of the host itself, forbids content sniffing, framing, caching and referrers."""
    client = service.create_anonymous_client()
    replies = [client.get(path) for path in ("/healthz", "/oi-api/warm-queries", "/nothing", "/files/none/none")]
    replies.append(client.get("/healthz?" + "a" * 60_000))
    replies.append(client.get("/healthz", headers=[("x-same", "1")] * 101))
    replies.append(client.get("/healthz", headers={"Host": "a/b"}))
    replies.append(client.get("/local/sign-in"))
    replies.append(client.post("/local/sign-in", json={"code": "none"}))
    replies.append(client.post("/admin/functions/background"))
    replies.append(client.post("/admin/functions/none"))
    assert {reply.status_code for reply in replies} > {200, 202, 400, 401, 403, 404, 414, 431}
    for headers in (reply.headers for reply in replies):
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "max-age=" in headers["strict-transport-security"]
