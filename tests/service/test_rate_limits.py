"""Tests of rate limits over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.local_service import Service, check_problem

FREE = (
    "workspace: {id: plant-f, name: Small plant}\nteam:\n"
    + "".join(f"  - {{id: {who}@f, name: {who}, role: Viewer}}\n" for who in ("one", "two", "three"))
    + "  - {id: link, name: Link, role: Editor, service: true}\n"
)


@pytest.fixture(scope="module")
def free_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service of the free tier."""
    folder = tmp_path_factory.mktemp("small")
    workspace: Path = folder / "workspace.yaml"
    workspace.write_text(FREE)
    running = Service(folder / "data", workspace).start()
    yield running
    assert running.stop() == 0


def test_the_61st_request_of_a_minute_gets_429(free_service: Service) -> None:
    """Every reply has rate-limit headers; the 61st request of a minute gets 429.

    Other principals are not affected.
    """
    caller = free_service.create_client("one@f")
    for remaining in range(58, -1, -1):
        reply = caller.get("/oi-api/warm-queries")
        assert reply.status_code == 200
        assert reply.headers["ratelimit-policy"] == '"default";q=60;w=60'
        assert reply.headers["ratelimit"].startswith(f'"default";r={remaining};t=')
    refused = caller.get("/oi-api/warm-queries")
    check_problem(refused, 429, "RATE_LIMITED")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["ratelimit"].startswith('"default";r=0;t=')
    assert free_service.create_client("two@f").get("/oi-api/warm-queries").status_code == 200
    assert free_service.create_anonymous_client().get("/healthz").status_code == 200


def test_the_rate_limit_is_checked_after_the_credential_and_before_the_right(free_service: Service) -> None:
    """A request over the rate limit gets 429 even if its access right is missing, but 401 if it has no credential."""
    caller = free_service.create_client("three@f")
    forbidden = caller.delete("/oi-api/warm-queries/none")
    check_problem(forbidden, 403, "ACCESS_RIGHT_MISSING")
    assert "ratelimit" in forbidden.headers
    replies = [caller.delete("/oi-api/warm-queries/none") for _ in range(60)]
    assert {reply.status_code for reply in replies} == {403, 429}
    anonymous = free_service.create_anonymous_client().get("/oi-api/warm-queries")
    assert (anonymous.status_code, "ratelimit" in anonymous.headers) == (401, False)
    graphql = caller.post("/v1/plant-f/graphql", json={"query": "{ workspace { id } }"})
    assert _read_status_and_error_codes(graphql) == (429, ["RATE_LIMITED"])
    assert "retry-after" in graphql.headers


def test_rejected_requests_of_service_tokens_count_towards_the_rate_limit(free_service: Service) -> None:
    """Rejected requests of a service token also count towards its rate limit; over the limit they get 429, not 401."""
    caller = free_service.create_client("link")
    routes = [
        "/oi-api/provenance/events",
        "/oi-api/provenance/amendments",
        "/oi-api/provenance/amendments/000000000001/approve",
        "/oi-api/provenance/amendments/000000000001/reject",
    ]
    for remaining in range(58, -1, -1):
        reply = caller.post(routes[remaining % len(routes)], json={})
        check_problem(reply, 401, "UNAUTHENTICATED")
        assert reply.headers["ratelimit-policy"] == '"default";q=60;w=60'
        assert reply.headers["ratelimit"].startswith(f'"default";r={remaining};t=')
    for route in routes:
        check_problem(caller.post(route, json={}), 429, "RATE_LIMITED")


def _read_status_and_error_codes(reply: httpx.Response) -> tuple[int, list[str]]:
    return reply.status_code, [error["extensions"]["code"] for error in reply.json()["errors"]]
