"""Request and reply types, independent of the Functions host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from shared.text_formats.serialisation import serialise_json

if TYPE_CHECKING:
    from shared.http.deprecations import Deprecation

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
MAX_PARAMETERS = 200


@dataclass(frozen=True)
class Request:
    """HTTP request as received, before its validation.

    Attributes:
        method: upper case.
        path: percent-encoded URL path with the leading slash, without the query.
        query: the raw query string.
        headers: header values by the header's name in lower case.
        body: the bytes of the body.
        trace_context: ``traceparent`` and ``tracestate`` (W3C) from the host; empty if the host sets neither.
        deprecations: deprecations of the operation and names that the request uses; its validation fills this list.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    trace_context: Mapping[str, str] = field(default_factory=dict)
    deprecations: "list[Deprecation]" = field(default_factory=list, compare=False)

    def has_too_many_parameters(self) -> bool:
        """Return whether the query string has more parameters than the service accepts (200)."""
        return self.query.count("&") >= MAX_PARAMETERS

    @property
    def media_type(self) -> str:
        """Media type of the body in lower case, without parameters; empty if the request does not name one."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @cached_property
    def query_pairs(self) -> tuple[tuple[str, str], ...]:
        """The query parameters in their order, including empty values; parsed at the first use.

        Raises:
            ValueError: the query has more than 200 parameters, or a parameter is not UTF-8.
        """
        if self.has_too_many_parameters():
            raise ValueError(f"more than {MAX_PARAMETERS} parameters are not allowed")
        try:
            return tuple(parse_qsl(self.query, keep_blank_values=True, errors="strict"))
        except UnicodeDecodeError:
            raise ValueError("percent-encoded characters must be UTF-8") from None


@dataclass(slots=True)
class Reply:
    """HTTP reply.

    Attributes:
        status: HTTP status.
        body: the bytes of the body.
        headers: all headers, including Content-Type.
        error_code: code of the error, for traces; empty if the reply is not an error.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    error_code: str = ""


def build_json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Build a reply with a JSON body."""
    return Reply(status, serialise_json(value), {"Content-Type": JSON, **(headers or {})})
