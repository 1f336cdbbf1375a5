"""Settings: what they accept and what they derive."""

import pytest
from pydantic import ValidationError

from shared.settings import Settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ""),
        ("https://plant.example", "https://plant.example"),
        ("https://plant.example/", "https://plant.example"),
        ("http://127.0.0.1:7071", "http://127.0.0.1:7071"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_public_url_is_an_origin(given: str, expected: str) -> None:
    """PUBLIC_URL is scheme, host and port; one slash at the end is dropped."""
    assert Settings.read({"PUBLIC_URL": given}).public_url == expected


@pytest.mark.parametrize(
    "given",
    [
        "plant.example",
        "ftp://plant.example",
        "https://",
        "https://plant.example/base",
        "https://plant.example?x=1",
        "https://plant.example#x",
        "https://user:secret@plant.example",
        "https://plant.example:port",
        "https://plant.example//",
    ],
)
def test_other_public_urls_are_rejected(given: str) -> None:
    """A PUBLIC_URL with anything beyond an origin stops the start with a message that names the setting."""
    with pytest.raises(ValidationError, match="PUBLIC_URL"):
        Settings.read({"PUBLIC_URL": given})


def test_host_of_the_public_url_is_accepted() -> None:
    """The Host header that a gateway passes on belongs to the service."""
    assert "plant.example:8443" in Settings.read({"PUBLIC_URL": "https://plant.example:8443"}).hosts()
