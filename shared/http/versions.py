"""API version: a request can require a version in a header, and each reply states the version."""

from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request

HEADER: Final = "Oi-Version"
CURRENT: Final = "2026-12-01"
SUPPORTED: Final = (CURRENT,)


def check_api_version(request: Request) -> None:
    """Check that the service supports the API version in a request's header; without the header, nothing is checked.

    Raises:
        WorkspaceError: INVALID ``VERSION_UNKNOWN``, whose property ``supported`` lists the versions.
    """
    named = request.headers.get(HEADER.lower())
    if named is not None and named.strip() not in SUPPORTED:
        rule = f"must be a supported version: {', '.join(SUPPORTED)}"
        errors = [{"field": HEADER, "message": rule}]
        raise WorkspaceError(
            Kind.INVALID, "VERSION_UNKNOWN", f"{HEADER}: {rule}", errors=errors, supported=list(SUPPORTED)
        )


def add_version_header(reply: Reply) -> None:
    """Add the header with the API version to a reply."""
    reply.headers[HEADER] = CURRENT
