"""Check of the Host header, which protects the MCP server against DNS rebinding."""

import re
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply
from shared.http.problems import problem_reply

ANY_PORT: Final = ":*"
_PORT = re.compile(r"(.*):[0-9]{1,5}", re.DOTALL | re.ASCII)


def is_allowed_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a Host header is on a list.

    Args:
        host: value of the header; empty if it is missing.
        hosts: exact values ``name`` or ``name:port``, or ``name:*`` for any port.
    """
    if host in hosts:
        return not host.endswith(ANY_PORT)
    found = _PORT.fullmatch(host)
    return found is not None and found[1] + ANY_PORT in hosts


def build_misdirected_reply(trace_id: str) -> Reply:
    """Return the reply to an unknown Host header (RFC 9110 section 15.5.20), which does not repeat the value.

    Args:
        trace_id: id of the request.
    """
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", "Unknown Host header; use the address of this service.")
    return problem_reply(error, trace_id, HTTPStatus.MISDIRECTED_REQUEST)
