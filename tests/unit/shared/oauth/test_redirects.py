"""Tests of redirects to OAuth clients."""

from urllib.parse import parse_qs, urlsplit

import pytest

from shared.oauth.errors import OAuthError, OAuthErrorCode
from shared.oauth.parameters import Parameters
from shared.oauth.redirects import append_parameters_to_redirect_uri, build_access_denied_error, build_error_redirect

BASE = "https://plant.example"


@pytest.mark.parametrize("address", ["https://tool.example/cb", "https://tool.example/cb?a=1", "tool:/cb"])
def test_a_redirect_keeps_the_query_of_the_redirect_uri(address: str) -> None:
    """Result, state and issuer (RFC 9207) are appended to the query of the registered redirect URI."""
    target = append_parameters_to_redirect_uri(address, Parameters({"state": "x&y=z"}), BASE, {"code": "c d"})
    assert target.startswith(address)
    query = parse_qs(urlsplit(target).query)
    assert (query["code"], query["state"], query["iss"]) == (["c d"], ["x&y=z"], [BASE])
    assert query.get("a") == (["1"] if "?" in address else None)


def test_a_reply_repeats_the_state_of_the_request() -> None:
    """A redirect contains the request's state, even an empty one; without a state, it contains none."""
    assert "state" not in append_parameters_to_redirect_uri("https://t/", Parameters({}), BASE, {})
    assert "state=&" in append_parameters_to_redirect_uri("https://t/", Parameters({"state": ""}), BASE, {})


@pytest.mark.parametrize(
    "error",
    [build_access_denied_error("The member denied access."), OAuthError(OAuthErrorCode.INVALID_SCOPE, "No scope.")],
)
def test_an_error_redirect_contains_code_and_description(error: OAuthError) -> None:
    """A redirect with an error contains the error's code and description."""
    redirect = build_error_redirect("https://t/", Parameters({}), BASE, error)
    query = parse_qs(urlsplit(redirect.address).query)
    assert (query["error"], query["error_description"]) == ([str(error.error)], [error.detail])
