"""Headers that every reply has, whoever answers: browsers are told to keep it to itself."""

from collections.abc import MutableMapping
from typing import Final

SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000",
}


def add_security_headers(headers: MutableMapping[str, str]) -> None:
    """Add those that are missing; a page brings its own policy, a file its own rule for caches."""
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
