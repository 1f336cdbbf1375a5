"""Size limits of a request's URL (path and query) and headers."""

from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request

MAX_TARGET: Final = 32_768
"""Maximum bytes of path and query; each of the 1,000 characters of an audit scope's key may take 12 escaped bytes."""

MAX_HEADERS: Final = 100
MAX_HEADER_BYTES: Final = 131_072
"""Maximum bytes of all header names and values, including four bytes of separators for each header."""

_SEPARATORS: Final = 4


def compute_header_size(name: str | bytes, value: str | bytes) -> int:
    """Return the size of a header in bytes, including its separators."""
    return len(name) + len(value) + _SEPARATORS


def check_request_size(request: Request) -> None:
    """Reject a request whose URL or headers exceed the limits.

    Raises:
        WorkspaceError: TARGET_TOO_LONG ``URI_TOO_LONG`` for the URL; HEADERS_TOO_LARGE ``HEADERS_TOO_LARGE`` for the
            headers.
    """
    if len(request.path) + len(request.query) + bool(request.query) > MAX_TARGET:
        raise target_too_long_error()
    size = sum(compute_header_size(name, value) for name, value in request.headers.items())
    if len(request.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise headers_too_large_error()


def target_too_long_error() -> WorkspaceError:
    """Build the error for a path and query that are too long (RFC 9110 section 15.5.15)."""
    return WorkspaceError(
        Kind.TARGET_TOO_LONG, "URI_TOO_LONG", f"Path and query must have at most {MAX_TARGET} bytes together."
    )


def headers_too_large_error() -> WorkspaceError:
    """Build the error for too many or too large headers (RFC 6585 section 5)."""
    return WorkspaceError(
        Kind.HEADERS_TOO_LARGE,
        "HEADERS_TOO_LARGE",
        f"A request must have at most {MAX_HEADERS} headers with {MAX_HEADER_BYTES} bytes together.",
    )
