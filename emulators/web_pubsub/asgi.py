"""Types of ASGI 3, and functions that read headers, query parameters and the bearer token from an ASGI scope."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Application = Callable[[Message, Receive, Send], Awaitable[None]]
type RawHeaders = Iterable[tuple[bytes, bytes]]


def read_headers(scope: Message) -> dict[str, list[str]]:
    """Return all values of each request header, by name in lower case."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return headers


def read_query_parameters(scope: Message) -> dict[str, list[str]]:
    """Return all values of each query parameter, by name; empty values are included."""
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def find_bearer_token(headers: dict[str, list[str]]) -> str | None:
    """Return the token of the header ``Authorization: Bearer``; None if the request has no such header."""
    for value in headers.get("authorization", ()):
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            return token.strip(" \t")
    return None


def read_host_and_port(scope: Message, headers: dict[str, list[str]]) -> str:
    """Return the host and port of the requested URL, in lower case; without a header ``Host``, the server's address."""
    host = headers.get("host", [""])[0] or "{}:{}".format(*scope["server"])
    return host.lower()
