"""Tests of the emulator's HTTP interface."""

import gzip

import httpx
import pytest

from tests.emulators.kusto.endpoints import Endpoint


def test_health_and_row_counts_are_reported(endpoint: Endpoint) -> None:
    """A running emulator reports that it is healthy, and how many rows its tables have."""
    assert httpx.get(f"{endpoint.url}/healthz", timeout=60).json() == {"status": "ok"}
    assert endpoint.read_statistics()["rows"] == {"Devices": 5, "Telemetry": 2000}


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://example.com"}, {"Origin": "null"}, {"Host": "example.com:8088"}, {"Host": "127.0.0.1.evil"}],
)
def test_requests_from_browser_pages_are_rejected(endpoint: Endpoint, headers: dict[str, str]) -> None:
    """A request with an Origin header or another host name is forbidden."""
    response = httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, json={"csl": "print 1"}, headers=headers)
    assert response.status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"csl": 5}',
        b"{}",
        b'{"csl": "print 1", "properties": "{"}',
        b'{"csl": "print 1", "properties": []}',
        b'{"csl": "print 1", "properties": {"Options": []}}',
        b'{"csl": "print 1", "properties": {"Options": {"truncationmaxrecords": -1}}}',
        b'{"csl": "print 1", "properties": "\\ud800"}',
        gzip.compress(b'{"csl": "print 1"}', mtime=0),
    ],
)
def test_a_malformed_request_gets_400_with_an_error_document(endpoint: Endpoint, body: bytes) -> None:
    """A malformed request is rejected with 400 and an error document that clients can read."""
    response = httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, content=body)
    assert response.status_code == 400
    assert response.json()["error"]["@message"].startswith("Bad request: ")


def test_a_request_above_two_megabytes_is_rejected(endpoint: Endpoint) -> None:
    """A body over two megabytes is rejected with 413."""
    assert httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, content=b"x" * 2_100_000).status_code == 413


def test_an_unknown_route_gets_404(endpoint: Endpoint) -> None:
    """An unknown route gets 404 with an error document."""
    assert httpx.get(f"{endpoint.url}/v2/rest/query", timeout=60).status_code == 404
    assert httpx.get(f"{endpoint.url}/nothing", timeout=60).json()["error"]["code"] == "NotFound"


def test_the_reply_contains_the_request_id(endpoint: Endpoint) -> None:
    """The reply's header and the error document contain the client's request id."""
    headers = {"x-ms-client-request-id": "abc;1"}
    response = httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, json={"csl": "print nope"}, headers=headers)
    assert response.headers["x-ms-client-request-id"] == "abc;1"
    assert response.json()["error"]["@context"]["clientRequestId"] == "abc;1"


def test_the_cloud_metadata_is_served(endpoint: Endpoint) -> None:
    """Clients can read the cloud metadata without authentication."""
    assert "LoginEndpoint" in httpx.get(f"{endpoint.url}/v1/rest/auth/metadata", timeout=60).json()["AzureAD"]
