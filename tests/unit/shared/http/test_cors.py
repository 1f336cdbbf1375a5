"""Tests of cross-origin requests."""

from shared.http.cors import Cors
from shared.http.messages import Request

KNOWN = "https://dash.example"


def build_request(method: str = "OPTIONS", **headers: str) -> Request:
    """Return a request with the given headers; the names are passed with underscores instead of hyphens."""
    return Request(method, "/x", "", {name.replace("_", "-"): value for name, value in headers.items()}, b"")


def test_a_preflight_of_a_known_origin_lists_the_methods() -> None:
    """The reply to a preflight lists the methods of the route, sorted."""
    reply = Cors([KNOWN]).build_preflight_reply(
        build_request(origin=KNOWN, access_control_request_method="PUT"), {"PUT", "GET"}
    )
    assert reply is not None
    assert (reply.status, reply.headers["Access-Control-Allow-Methods"]) == (204, "GET, PUT")


def test_requests_without_preflight_headers_are_not_preflights() -> None:
    """A preflight has the method OPTIONS, the header Access-Control-Request-Method and an allowed origin."""
    cors = Cors([KNOWN])
    for request in (
        build_request("GET", origin=KNOWN, access_control_request_method="PUT"),
        build_request(origin=KNOWN),
        build_request(origin="https://other.example", access_control_request_method="PUT"),
        build_request(access_control_request_method="PUT"),
    ):
        assert cors.build_preflight_reply(request, {"PUT"}) is None


def test_only_a_known_origin_may_read_the_reply() -> None:
    """A reply names the origin only if it is allowed; by default, no origin is allowed."""
    request = build_request("GET", origin=KNOWN)
    assert Cors([KNOWN]).build_headers(request)["Access-Control-Allow-Origin"] == KNOWN
    assert Cors().build_headers(request) == {}
    assert Cors([KNOWN]).build_headers(build_request("GET", origin=f"{KNOWN}.evil")) == {}
    assert (Cors([KNOWN]).is_reply_dependent_on_origin(), Cors().is_reply_dependent_on_origin()) == (True, False)
