"""Tests of the rules for redirect URIs."""

import pytest

from shared.validation.redirect_uris import describe_redirect_host, find_redirect_uri_error, is_redirect_allowed


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example",
        "https://app.example:8443/cb?x=1",
        "http://127.0.0.1/cb",
        "http://[::1]:1/",
        "http://localhost:3000/cb",
        "com.example.app:/callback",
    ],
)
def test_valid_redirect_uris_are_accepted(uri: str) -> None:
    """A redirect URI with https, with http to this machine, or with an app's scheme is valid."""
    assert find_redirect_uri_error(uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        *("", "/cb", "http://app.example/cb", "https:///cb", "https:app.example", "https://u@app.example/"),
        *("https://app.example/#x", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "app:/cb"),
        *("http://127.0.0.1@evil.example/", "http://127.0.0.1.evil.example/", "http://localhost.evil.example/"),
        *("https://app.example/a b", "https://app.example\\@evil.example", "https://[x]/", "HTTPS://app.example"),
        *("https://app.example/" + "x" * 2048, "http://127.0.0.1:999999/", "https://ä.example/"),
    ],
)
def test_invalid_redirect_uris_are_rejected(uri: str) -> None:
    """Another scheme, a user name, a fragment, remote http or an unusual spelling is rejected with the broken rule."""
    fault = find_redirect_uri_error(uri)
    assert fault is not None
    assert fault.startswith("must")


@pytest.mark.parametrize(
    ("requested", "declared"),
    [
        ("https://app.example/cb", "https://app.example/cb"),
        ("http://127.0.0.1:4711/cb", "http://127.0.0.1/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:80/cb"),
        ("http://[::1]:4711/cb?x=1", "http://[::1]:1/cb?x=1"),
        ("http://localhost:4711", "http://localhost:1"),
    ],
)
def test_equal_uris_and_loopback_ports_are_allowed(requested: str, declared: str) -> None:
    """A redirect URI must equal a declared one, except for the port of a loopback address."""
    assert is_redirect_allowed(requested, declared)


@pytest.mark.parametrize(
    ("requested", "declared"),
    [
        ("https://app.example/cb/", "https://app.example/cb"),
        ("https://app.example:8443/cb", "https://app.example/cb"),
        ("https://app.example/cb?x=1", "https://app.example/cb"),
        ("https://APP.example/cb", "https://app.example/cb"),
        ("http://127.0.0.1:4711/other", "http://127.0.0.1/cb"),
        ("http://localhost:4711/cb", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:4711@evil.example/cb", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:4711/cb#x", "http://127.0.0.1/cb#x"),
        ("https://127.0.0.1:4711/cb", "http://127.0.0.1/cb"),
        ("http://127.0.0.1:99999/cb x", "http://127.0.0.1/cb x"),
    ],
)
def test_redirect_uris_that_differ_are_not_allowed(requested: str, declared: str) -> None:
    """A redirect URI is rejected if it differs in any part other than a loopback port."""
    assert not is_redirect_allowed(requested, declared)


def test_the_consent_page_names_the_destination() -> None:
    """The consent page shows a redirect URI as its host and port, or as the app's scheme."""
    assert describe_redirect_host("https://app.example:8443/cb") == "app.example:8443"
    assert describe_redirect_host("com.example.app:/cb") == "com.example.app:"


@pytest.mark.parametrize(
    "uri", ["com.example.app://trusted.example/cb", "com.example.app://[x]/", "com.example.app:///cb"]
)
def test_the_uri_of_an_app_is_described_by_its_scheme(uri: str) -> None:
    """The URI of an app is shown as its scheme, even if it has a host, because the browser opens the app."""
    assert find_redirect_uri_error(uri) is None
    assert describe_redirect_host(uri) == "com.example.app:"


def test_the_query_of_a_redirect_uri_is_not_part_of_its_host() -> None:
    """The displayed host ends before the path or query of the URI."""
    assert describe_redirect_host("https://app.example?x=trusted.example/cb") == "app.example"
    assert describe_redirect_host("http://[::1]:4711/cb") == "[::1]:4711"
