"""Tests of the rules for the addresses of services."""

import pytest
from oi.addresses import can_use_proxy, check_address_protects_credentials, find_proxy_url, is_this_computer


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:7071", True),
        ("http://LOCALHOST", True),
        ("https://[::1]:7071/a", True),
        ("https://plant.example", False),
        ("http://127.0.0.1@plant.example", False),
        ("http://localhost.plant.example", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_only_loopback_names_are_this_computer(url: str, *, expected: bool) -> None:
    """A URL names this computer only if its host is a loopback name or address."""
    assert is_this_computer(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:7071", False),
        ("HTTP://localhost", False),
        ("https://localhost", True),
        ("http://plant.example", True),
        ("https://plant.example", True),
    ],
)
def test_http_requests_to_this_computer_use_no_proxy(url: str, *, expected: bool) -> None:
    """Only requests that stay on this computer without encryption use no proxy."""
    assert can_use_proxy(url) == expected


@pytest.mark.parametrize(
    ("variables", "url", "expected"),
    [
        ({}, "https://plant.example", None),
        ({"ALL_PROXY": "http://all:2"}, "https://plant.example", "http://all:2"),
        ({"ALL_PROXY": "all:2"}, "https://plant.example:8443/a", "http://all:2"),
        ({"HTTPS_PROXY": "http://https:1", "ALL_PROXY": "http://all:2"}, "https://plant.example", "http://https:1"),
        ({"HTTP_PROXY": "http://http:1"}, "https://plant.example", None),
        ({"ALL_PROXY": "http://all:2", "NO_PROXY": "plant.example"}, "https://plant.example:8443/a", None),
        ({"ALL_PROXY": "http://all:2"}, "http://127.0.0.1:7071", None),
    ],
)
def test_the_environment_variables_name_the_proxy(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, expected: str | None
) -> None:
    """The variable for the scheme has priority over ALL_PROXY, and NO_PROXY over both."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_proxy_url(url) == expected


@pytest.mark.parametrize("url", ["https://plant.example", "https://plant.example:8443/a", "http://127.0.0.1:7071"])
def test_a_credential_can_be_sent_to_an_https_address(url: str) -> None:
    """The address of a service is an https address, or an http address of this computer."""
    check_address_protects_credentials(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://plant.example",
        "https://user:secret@plant.example",
        "http://127.0.0.1@plant.example",
        "https://plant.example:secret",
        "https://",
        "https://plant example",
        "file:///etc/passwd",
        "plant.example",
    ],
)
def test_no_credential_is_sent_to_another_address(url: str) -> None:
    """An http address of another computer, a user name and a malformed address are rejected."""
    with pytest.raises(ValueError, match=r"must begin with https|user name or a password|is not a valid address"):
        check_address_protects_credentials(url)
