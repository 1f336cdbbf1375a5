"""A request and a reply, free of any host's types."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

import orjson

from shared.timestamps import rfc3339

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
MAX_PARAMETERS = 200
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it stood on the wire.

    Attributes:
        method: upper case.
        path: percent-encoded, with the leading slash, without the query.
        query: the raw query string.
        headers: by lower-case name.
        body: the bytes of the body.
        trace_context: ``traceparent`` and ``tracestate`` (W3C) as the host gives them, empty where it gives none.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    trace_context: Mapping[str, str] = field(default_factory=dict)

    def has_many_parameters(self) -> bool:
        """Return whether the query has more parameters than any request may have."""
        return self.query.count("&") >= MAX_PARAMETERS

    def query_pairs(self) -> list[tuple[str, str]]:
        """Return the decoded query parameters in order, blank values included.

        Raises:
            ValueError: there are more than 200 of them, or one is not UTF-8.
        """
        if self.has_many_parameters():
            raise ValueError(f"it has more than {MAX_PARAMETERS} parameters")
        return parse_qsl(self.query, keep_blank_values=True, errors="strict")


@dataclass(slots=True)
class Reply:
    """What goes back.

    Attributes:
        status: HTTP status.
        body: the bytes of the body.
        headers: names as they are to be sent; Content-Type is one of them.
        error_code: of the error that it tells of, for traces; empty where it tells of none.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    error_code: str = ""


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as UTF-8 text; datetimes in UTC with ``Z``, NaN and infinities as null."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        # Integers beyond 64 bits, which telemetry may hold; the standard library writes every digit.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_text).encode()


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return rfc3339(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a JSON reply."""
    return Reply(status, json_bytes(value), {"Content-Type": JSON, **(headers or {})})
