"""The conditions of a request, and how they are described."""

from collections.abc import Mapping
from typing import Any, Final

from shared.conditional_requests import HEADER_PATTERN, Condition, condition
from shared.http.messages import Request

_TAGS: Final = {"type": "string", "minLength": 1, "pattern": HEADER_PATTERN}
READ_CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "If-Match": {
        "description": "Act only on a state that one of these entity tags names, else 412; `*` names every state.",
        "schema": _TAGS,
        "example": '"1a"',
    },
    "If-None-Match": {
        "description": "Answer 304 where one of these entity tags names the state; `*` names every state.",
        "schema": _TAGS,
        "example": '"1a"',
    },
}
WRITE_CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    **READ_CONDITIONS,
    "If-None-Match": {
        **READ_CONDITIONS["If-None-Match"],
        "description": "Act on no state that one of these entity tags names, else 412; `*` names every state.",
        "example": "*",
    },
}


def condition_of(request: Request) -> Condition:
    """Return what a request asks of what is stored.

    Raises:
        WorkspaceError: INVALID naming the header that is no list of entity tags.
    """
    return condition(request.headers.get("if-match"), request.headers.get("if-none-match"))
