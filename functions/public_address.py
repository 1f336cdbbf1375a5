"""Public base URL of the service, and check of the Host header from which the URL can be derived."""

import re
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request
from shared.http.problems import build_problem_reply
from shared.wiring import services

ANY_PORT: Final = ":*"
FORWARDED_SCHEME: Final = "x-forwarded-proto"
_PORT = re.compile(r"(.*):[0-9]{1,5}", re.DOTALL | re.ASCII)


def get_public_url(request: Request) -> str:
    """Return the base URL for links in replies (scheme, host and port), without a trailing slash.

    The setting ``PUBLIC_URL`` has priority, because a gateway can replace the Host header of the request. Without it,
    the scheme is the first value of ``X-Forwarded-Proto`` if this is http or https, else http. A reply that caches may
    store must name this header in ``Vary``.
    """
    if services().settings.public_url:
        return services().settings.public_url
    scheme = request.headers.get(FORWARDED_SCHEME, "").partition(",")[0].strip().lower()
    return f"{scheme if scheme in {'http', 'https'} else 'http'}://{request.headers.get('host', '')}"


def has_known_host(request: Request) -> bool:
    """Return whether the Host header of a request contains an accepted host name of this service."""
    return is_allowed_host(request.headers.get("host", ""), services().settings.list_accepted_hosts())


def is_allowed_host(host_header: str, allowed_hosts: Collection[str]) -> bool:
    """Return whether a Host header names an allowed host.

    Args:
        host_header: value of the Host header; empty if the header is missing.
        allowed_hosts: allowed hosts: ``name`` or ``name:port`` for this exact value, or ``name:*`` for any port.
    """
    if host_header in allowed_hosts:
        return not host_header.endswith(ANY_PORT)
    found = _PORT.fullmatch(host_header)
    return found is not None and found[1] + ANY_PORT in allowed_hosts


def build_misdirected_reply(trace_id: str) -> Reply:
    """Build the 421 reply to an unknown Host header (RFC 9110 section 15.5.20).

    The reply does not repeat the header, because its value is not trusted.

    Args:
        trace_id: id of the request.
    """
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", "Unknown Host header; use the address of this service.")
    return build_problem_reply(error, trace_id, HTTPStatus.MISDIRECTED_REQUEST)
