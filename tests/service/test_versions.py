"""Tests of API versions and of deprecated names over HTTP."""

import re
from email.utils import parsedate_to_datetime

import httpx
import pytest

from functions import GROUPS
from shared.http.operations import Access, Endpoint
from tests.service.local_service import Service, check_problem

VERSION = "2026-12-01"
UNKNOWN = {"Oi-Version": "2020-01-01"}
ENDPOINTS = [endpoint for group in GROUPS for endpoint in group.endpoints]
RANGES = [
    {"from": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"},
    {"start": "2026-01-05T00:00:00Z", "to": "2026-01-06T00:00:00Z"},
    {"from": "2026-01-05T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
]


def build_path(endpoint: Endpoint) -> str:
    """Return the path of an operation with values for its parameters."""
    return "/" + re.sub(r"\{[^}]*\}", "x", endpoint.route)


def check_deprecation(reply: httpx.Response) -> None:
    """Check that a reply has the headers Deprecation, Sunset and Link for a deprecated name."""
    assert re.fullmatch(r"@\d+", reply.headers["deprecation"])
    assert reply.headers["sunset"] == "Sat, 01 Jan 2028 00:00:00 GMT"
    seconds = parsedate_to_datetime(reply.headers["sunset"]).timestamp() - int(reply.headers["deprecation"][1:])
    assert seconds >= 365 * 86_400
    assert 'rel="deprecation"' in reply.headers["link"]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} /{each.route}")
def test_every_operation_checks_and_states_the_version(service: Service, endpoint: Endpoint) -> None:
    """Each REST operation returns the API version and rejects unknown versions; GraphQL and pages have no version."""
    path = build_path(endpoint)
    plain = service.create_anonymous_client().request(endpoint.method, path)
    if not endpoint.is_versioned:
        unknown = service.create_anonymous_client().request(endpoint.method, path, headers=UNKNOWN)
        assert "oi-version" not in plain.headers
        assert unknown.status_code == plain.status_code
        return
    assert plain.headers["oi-version"] == VERSION
    operation = endpoint.load_operation()
    is_public = operation.access is Access.PUBLIC
    client = service.create_anonymous_client() if is_public else service.create_client("admin@t")
    unknown = client.request(endpoint.method, path, headers=UNKNOWN)
    assert unknown.headers["oi-version"] == VERSION
    if operation.check_sender is not None:
        # The check of the sender comes first, and this client is not the sender.
        assert unknown.status_code == 401
        return
    assert unknown.status_code == 400
    if not endpoint.has_own_error_format:
        problem = check_problem(unknown, 400, "VERSION_UNKNOWN")
        assert problem["supported"] == [VERSION]
        assert problem["errors"][0]["field"] == "Oi-Version"


def test_an_unknown_version_is_checked_after_the_credential_and_the_rate_limit(service: Service) -> None:
    """A request with an unknown version and without a token gets 401; with a token, it counts for the rate limit."""
    path = "/oi-api/warm-queries"
    check_problem(service.create_anonymous_client().get(path, headers=UNKNOWN), 401, "UNAUTHENTICATED")
    reply = service.create_client("viewer@t").get(path, headers=UNKNOWN)
    check_problem(reply, 400, "VERSION_UNKNOWN")
    assert "ratelimit" in reply.headers


def test_replies_without_an_operation_state_the_version(service: Service) -> None:
    """404 and 405 replies that belong to no operation also contain the API version."""
    client = service.create_anonymous_client()
    for reply in (client.get("/nowhere"), client.delete("/healthz"), client.patch("/oi-api/warm-queries")):
        assert reply.status_code in {404, 405}
        assert reply.headers["oi-version"] == VERSION
    assert "oi-version" not in client.delete("/console").headers


def test_the_current_api_version_is_accepted(service: Service) -> None:
    """A request with the current API version is accepted."""
    reply = service.create_client("viewer@t").get("/oi-api/warm-queries", headers={"Oi-Version": VERSION})
    assert (reply.status_code, reply.headers["oi-version"]) == (200, VERSION)


def test_former_name_of_the_ad_hoc_body_is_deprecated(service: Service) -> None:
    """If the body of an ad-hoc query uses the former name `Query`, headers of the reply announce the deprecation."""
    client = service.create_client("editor@t")
    reply = client.post("/oi-api/warm-queries", json={"Query": "print x = 1"})
    assert reply.status_code == 200
    check_deprecation(reply)
    assert "deprecation" not in client.post("/oi-api/warm-queries", json={"query": "print x = 1"}).headers


@pytest.mark.parametrize("date_range", RANGES)
def test_former_names_of_date_ranges_are_deprecated(service: Service, date_range: dict[str, str]) -> None:
    """If a date range uses the former names `from` or `to`, headers of the reply or error announce the deprecation."""
    body = {"format": "csv", "dateRange": date_range}
    check_deprecation(service.create_client("editor@t").post("/oi-api/downloads/data-connections/unknown", json=body))


def test_openapi_marks_former_names_as_deprecated(service: Service) -> None:
    """The OpenAPI document marks the former names as deprecated."""
    schemas = service.create_client("admin@t").get("/oi-api/openapi").json()["components"]["schemas"]
    assert schemas["AdHocBody"]["properties"]["Query"]["deprecated"] is True
    assert {name for name, each in schemas["DateRange"]["properties"].items() if each.get("deprecated")} == {
        "from",
        "to",
    }
