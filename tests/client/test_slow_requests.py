"""Tests of the requests for which the service works for minutes before it replies."""

import httpx
import pytest
from oi import Workspace

_RESULT = {
    "query": "latest",
    "executedAt": "2026-01-01T00:00:00Z",
    "columns": [],
    "results": [],
    "governance": {"queryApprovedBy": None, "queryApprovedAt": None},
    "truncated": False,
}


@pytest.fixture
def workspace_and_requests() -> tuple[Workspace, list[httpx.Request]]:
    """Return a workspace that gets an empty result for each request, and the list of its requests."""
    requests: list[httpx.Request] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        headers = {"X-Provenance-Has-More": "false", "Content-Type": request.headers["Accept"]}
        return httpx.Response(200, json=_RESULT, headers=headers)

    workspace = Workspace("https://plant.example", token="t")
    transport = httpx.MockTransport(reply_to_request)
    workspace._transport.client = httpx.Client(transport=transport, base_url="https://plant.example", timeout=60.0)
    return workspace, requests


def test_queries_and_audit_walks_wait_as_long_as_the_service_works(
    workspace_and_requests: tuple[Workspace, list[httpx.Request]],
) -> None:
    """A query, an audit export and a verification wait longer for the reply than the service works on them."""
    workspace, requests = workspace_and_requests
    workspace.audit.verify()
    workspace.audit.export()
    workspace.queries.run("latest")
    workspace.queries.run_raw("latest", "text/csv")
    workspace.kql("Telemetry")
    assert [each.extensions["timeout"]["read"] for each in requests] == [240.0] * 5
