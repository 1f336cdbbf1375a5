"""Tests of the URL paths that execute warm queries."""

from collections.abc import Iterator

import httpx
import pytest
from oi import NotFoundError, Workspace

REPLY = {
    "query": "Q",
    "executedAt": "2026-01-05T08:00:00.000000Z",
    "columns": [],
    "results": [],
    "governance": {"queryApprovedBy": None, "queryApprovedAt": None},
    "truncated": False,
}


@pytest.fixture
def requested_paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of URL paths that the clients of the test have requested."""
    requested: list[str] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        requested.append(request.url.raw_path.decode())
        return httpx.Response(200, json=REPLY)

    client = httpx.Client(base_url="https://plant.example", transport=httpx.MockTransport(reply_to_request))
    monkeypatch.setattr("oi._sync.transport.httpx.Client", lambda **_: client)
    return requested


@pytest.fixture
def workspace(requested_paths: list[str]) -> Iterator[Workspace]:
    """Yield a client whose requests are recorded instead of sent."""
    assert requested_paths == []
    with Workspace("https://plant.example", token="t") as opened:
        yield opened


@pytest.mark.parametrize("lookup", ["", ".", "..", "../workspace", "hall/../../team", "/team", "hall//rows", "hall/"])
def test_a_lookup_that_would_change_the_url_path_is_not_found(
    workspace: Workspace, requested_paths: list[str], lookup: str
) -> None:
    """A lookup (id in URLs) that would lead to another URL path is reported as not found, and no request is sent."""
    with pytest.raises(NotFoundError, match="No warm query"):
        workspace.queries.run(lookup)
    with pytest.raises(NotFoundError, match="No warm query"):
        workspace.queries.run_raw(lookup, "text/csv")
    assert requested_paths == []


def test_slashes_of_an_api_path_are_not_encoded(workspace: Workspace, requested_paths: list[str]) -> None:
    """The slashes of an API path are not encoded; other special characters are percent-encoded."""
    workspace.queries.run("hall/rows", parameters={"a": "x&y"})
    workspace.queries.run("what?#%")
    assert requested_paths == ["/oi-api/warm-queries/hall/rows?p.a=x%26y", "/oi-api/warm-queries/what%3F%23%25"]
