"""Writes the cookies that functions set, from the form that the worker library gives them."""

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any


def header(cookie: Any) -> str:
    """Return the Set-Cookie header of a cookie (RFC 6265 section 4.1)."""
    parts = [f"{cookie.name}={cookie.value}"]
    if cookie.expires is not None:
        instant = datetime.fromtimestamp(cookie.expires.value.seconds, UTC)
        parts.append(f"Expires={format_datetime(instant, usegmt=True)}")
    if cookie.max_age is not None:
        parts.append(f"Max-Age={int(cookie.max_age.value)}")
    if cookie.domain is not None and cookie.domain.value:
        parts.append(f"Domain={cookie.domain.value}")
    if cookie.path is not None and cookie.path.value:
        parts.append(f"Path={cookie.path.value}")
    if cookie.secure is not None and cookie.secure.value:
        parts.append("Secure")
    if cookie.http_only is not None and cookie.http_only.value:
        parts.append("HttpOnly")
    if cookie.same_site:
        parts.append(f"SameSite={cookie.same_site}")
    return "; ".join(parts)
