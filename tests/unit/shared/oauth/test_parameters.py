"""Tests of the parameters and client credentials of OAuth requests."""

from base64 import b64encode

import pytest

from shared.errors import Kind
from shared.oauth.errors import OAuthError, OAuthErrorCode
from shared.oauth.parameters import (
    FORM,
    ClientIdentification,
    Parameters,
    check_resources_are_this_service,
    collect_parameters,
    identify_client,
    parse_form_parameters,
)

BASE = "https://plant.example"


def catch_error_code(call: object, *arguments: object) -> OAuthErrorCode:
    """Return the OAuth error code of the error that a call raises."""
    with pytest.raises(OAuthError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.error


def encode_basic(text: str) -> str:
    """Return a Basic Authorization header with the given user and password."""
    return f"Basic {b64encode(text.encode()).decode()}"


def test_an_oauth_form_is_parsed() -> None:
    """In a form, empty parameters other than the scope count as missing, and only the resource may be repeated."""
    parsed = parse_form_parameters(FORM, b"a=1&b=&scope=&resource=x&resource=y&c=%C3%BC+z")
    assert parsed == Parameters({"a": "1", "scope": "", "c": "ü z"}, ("x", "y"))


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", b"{}"),
        ("", b"a=1"),
        (FORM, b"a=1&a=1"),
        (FORM, b"a=%ff"),
        (FORM, b"&" * 101),
    ],
)
def test_bodies_that_are_no_valid_form_are_rejected(media_type: str, body: bytes) -> None:
    """A body is rejected for a wrong content type, repeated or too many parameters, or invalid UTF-8."""
    assert catch_error_code(parse_form_parameters, media_type, body) is OAuthErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("authorization", "form", "expected"),
    [
        ("", {"client_id": "a", "client_secret": "s"}, ClientIdentification("a", "s")),
        ("", {"client_id": "a"}, ClientIdentification("a")),
        (encode_basic("a:s"), {}, ClientIdentification("a", "s")),
        (encode_basic("https%3A%2F%2Fx:"), {"client_id": "https://x"}, ClientIdentification("https://x")),
        (encode_basic("a:s:t"), {}, ClientIdentification("a", "s:t")),
    ],
)
def test_client_credentials_are_read_from_header_or_form(
    authorization: str, form: dict[str, str], expected: ClientIdentification
) -> None:
    """A client's id and secret are read from the Authorization header or from the form."""
    assert identify_client(authorization, Parameters(form)) == expected


@pytest.mark.parametrize(
    ("authorization", "form", "expected"),
    [
        ("", {}, OAuthErrorCode.INVALID_CLIENT),
        ("Bearer x", {}, OAuthErrorCode.INVALID_CLIENT),
        ("Basic ?", {}, OAuthErrorCode.INVALID_CLIENT),
        (encode_basic("nothing"), {}, OAuthErrorCode.INVALID_CLIENT),
        (encode_basic(":s"), {}, OAuthErrorCode.INVALID_CLIENT),
        (encode_basic("%ff:s"), {}, OAuthErrorCode.INVALID_CLIENT),
        (encode_basic("a:s"), {"client_secret": "s"}, OAuthErrorCode.INVALID_REQUEST),
        (encode_basic("a:s"), {"client_id": "b"}, OAuthErrorCode.INVALID_REQUEST),
    ],
)
def test_wrong_client_credentials_are_rejected(
    authorization: str, form: dict[str, str], expected: OAuthErrorCode
) -> None:
    """Missing or malformed client credentials get ``invalid_client``, repeated ones ``invalid_request``."""
    assert catch_error_code(identify_client, authorization, Parameters(form)) is expected


def test_the_error_names_the_missing_parameter() -> None:
    """The error about a missing parameter contains the parameter's name."""
    with pytest.raises(OAuthError, match="grant_type") as caught:
        collect_parameters([]).require("grant_type")
    assert caught.value.kind is Kind.INVALID


def test_the_resource_must_be_this_service() -> None:
    """The resource of a request must be the URL of this service or of its MCP server."""
    check_resources_are_this_service(Parameters({}, (BASE, f"{BASE}/", f"{BASE}/oi-api/mcp")), BASE)
    check_resources_are_this_service(Parameters({}), BASE)
    for other in ("https://other.example", f"{BASE}/oi-api", f"{BASE}.evil.example", BASE.upper()):
        assert (
            catch_error_code(check_resources_are_this_service, Parameters({}, (BASE, other)), BASE)
            is OAuthErrorCode.INVALID_TARGET
        )
