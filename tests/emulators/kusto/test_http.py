"""The endpoint's HTTP manners."""

import gzip

import httpx
import pytest

from tests.emulators.kusto.endpoints import Endpoint


def test_health_and_figures(endpoint: Endpoint) -> None:
    """A serving endpoint is healthy and counts its rows."""
    assert httpx.get(f"{endpoint.url}/healthz").json() == {"status": "ok"}
    assert endpoint.stats()["rows"] == {"Devices": 5, "Telemetry": 2000}


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://example.com"}, {"Origin": "null"}, {"Host": "example.com:8088"}, {"Host": "127.0.0.1.evil"}],
)
def test_browsers_are_refused(endpoint: Endpoint, headers: dict[str, str]) -> None:
    """A page in a browser reaches nothing, not even by a host name that resolves to loopback."""
    response = httpx.post(f"{endpoint.url}/v2/rest/query", json={"csl": "print 1"}, headers=headers)
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
def test_a_malformed_request_is_a_400_with_an_error_document(endpoint: Endpoint, body: bytes) -> None:
    """Whatever is wrong with a request, the answer is the error document that clients read."""
    response = httpx.post(f"{endpoint.url}/v2/rest/query", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["@message"].startswith("Bad request: ")


def test_a_request_above_two_megabytes_is_refused(endpoint: Endpoint) -> None:
    """A body is read up to its limit only."""
    assert httpx.post(f"{endpoint.url}/v2/rest/query", content=b"x" * 2_100_000).status_code == 413


def test_an_unknown_route_is_a_404(endpoint: Endpoint) -> None:
    """What is not served is not found, with an error document."""
    assert httpx.get(f"{endpoint.url}/v2/rest/query").status_code == 404
    assert httpx.get(f"{endpoint.url}/nothing").json()["error"]["code"] == "NotFound"


def test_the_request_id_comes_back(endpoint: Endpoint) -> None:
    """The client's request id is in the answer and in an error document."""
    headers = {"x-ms-client-request-id": "abc;1"}
    response = httpx.post(f"{endpoint.url}/v2/rest/query", json={"csl": "print nope"}, headers=headers)
    assert response.headers["x-ms-client-request-id"] == "abc;1"
    assert response.json()["error"]["@context"]["clientRequestId"] == "abc;1"


def test_the_cloud_document_is_served(endpoint: Endpoint) -> None:
    """Clients that fetch the cloud's metadata before they authenticate find it."""
    assert "LoginEndpoint" in httpx.get(f"{endpoint.url}/v1/rest/auth/metadata").json()["AzureAD"]
