"""Security headers of every reply."""

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
    """Add the standard security headers to the headers of a reply, except those that the reply already has.

    Pages set their own Content-Security-Policy, and static files their own Cache-Control.
    """
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
