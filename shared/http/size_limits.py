"""How large what comes before a request's body may be: the target and the headers."""

from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request

MAX_TARGET: Final = 32_768
"""Bytes of path and query together: a scope key of a thousand characters takes 12 bytes for each when it is escaped."""

MAX_HEADERS: Final = 100
MAX_HEADER_BYTES: Final = 131_072
"""Of all names and values, each with the four bytes that set it off."""

_AROUND: Final = 4


def header_size(name: str | bytes, value: str | bytes) -> int:
    """Return the bytes that a header takes on the wire."""
    return len(name) + len(value) + _AROUND


def check_request_size(request: Request) -> None:
    """Return when target and headers are within their limits.

    Raises:
        WorkspaceError: TARGET_TOO_LONG ``URI_TOO_LONG``; HEADERS_TOO_LARGE ``HEADERS_TOO_LARGE``.
    """
    if len(request.path) + len(request.query) + bool(request.query) > MAX_TARGET:
        raise target_too_long()
    size = sum(header_size(name, value) for name, value in request.headers.items())
    if len(request.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise headers_too_large()


def target_too_long() -> WorkspaceError:
    """Return the refusal of a long path and query (RFC 9110 section 15.5.15)."""
    return WorkspaceError(
        Kind.TARGET_TOO_LONG, "URI_TOO_LONG", f"Path and query are longer than {MAX_TARGET} bytes together."
    )


def headers_too_large() -> WorkspaceError:
    """Return the refusal of many or large headers (RFC 6585 section 5)."""
    return WorkspaceError(
        Kind.HEADERS_TOO_LARGE,
        "HEADERS_TOO_LARGE",
        f"The headers are more than {MAX_HEADERS}, or larger than {MAX_HEADER_BYTES} bytes together.",
    )
