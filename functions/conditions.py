"""OpenAPI descriptions and parsing of the request headers If-Match and If-None-Match."""

from collections.abc import Mapping
from typing import Any, Final

from shared.conditional_requests import HEADER_PATTERN, Condition, condition_from_headers
from shared.http.messages import Request

_TAGS: Final = {"type": "string", "minLength": 1, "pattern": HEADER_PATTERN}
READ_CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "If-Match": {
        "description": "Run the operation only if one of these ETags matches the stored version, else reply 412. `*` "
        "matches every version.",
        "schema": _TAGS,
        "example": '"1a"',
    },
    "If-None-Match": {
        "description": "Reply 304 if one of these ETags matches the current version. `*` matches every version.",
        "schema": _TAGS,
        "example": '"1a"',
    },
}
KNOWN_VERSION: Final[Mapping[str, Mapping[str, Any]]] = {"If-None-Match": READ_CONDITIONS["If-None-Match"]}
_IF_NONE_MATCH: Final = "Run the operation only if none of these ETags matches the stored version, else reply 412."
WRITE_CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    **READ_CONDITIONS,
    "If-None-Match": {
        "description": f"{_IF_NONE_MATCH} `*` matches every version, so the operation only creates.",
        "schema": _TAGS,
        "example": "*",
    },
}
"""Conditional headers of operations that create or replace an item."""
CHANGE_CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    **READ_CONDITIONS,
    "If-None-Match": {
        "description": f"{_IF_NONE_MATCH} `*` matches every version, so the operation is always rejected.",
        "schema": _TAGS,
        "example": '"1a"',
    },
}
"""Conditional headers of operations that change or delete an existing item, and never create one."""


def parse_conditional_headers(request: Request) -> Condition:
    """Parse the headers If-Match and If-None-Match of a request.

    Raises:
        WorkspaceError: INVALID with the name of a header that is not a list of ETags.
    """
    return condition_from_headers(request.headers.get("if-match"), request.headers.get("if-none-match"))


def parse_if_none_match(request: Request) -> Condition:
    """Parse the header If-None-Match of a request; other conditional headers are ignored.

    Raises:
        WorkspaceError: INVALID with the field ``If-None-Match`` if the header is not a list of ETags.
    """
    return condition_from_headers(None, request.headers.get("if-none-match"))
