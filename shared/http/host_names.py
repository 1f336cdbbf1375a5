"""Which values of the Host header are taken where a name that leads here without being ours would be a danger."""

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
    """Return whether a Host is on a list.

    Args:
        host: the header's value, empty where there is none.
        hosts: ``name`` or ``name:port`` as they stand, ``name:*`` for any port.
    """
    if host in hosts:
        return not host.endswith(ANY_PORT)
    found = _PORT.fullmatch(host)
    return found is not None and found[1] + ANY_PORT in hosts


def misdirected_reply(trace_id: str) -> Reply:
    """Return the refusal of a Host that is not on the list (RFC 9110 section 15.5.20), in which nothing of it stands.

    Args:
        trace_id: the request's id.
    """
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", "The Host is none of this service's.")
    return problem_reply(error, trace_id, HTTPStatus.MISDIRECTED_REQUEST)
