"""Router that finds the operation for a method and path.

This module is separate from ``pipeline``, which handles the requests.
"""

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote

from shared.errors import Kind, WorkspaceError
from shared.http.operations import Endpoint, Operation

_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_PARAMETER = re.compile(r"\{(\*?)([a-zA-Z]+)\}")


@dataclass(frozen=True)
class Match:
    """Endpoint whose method and route match a request, and the request's path parameters.

    Attributes:
        endpoint: the endpoint.
        path: decoded path parameters by name; None if a parameter is not UTF-8.
    """

    endpoint: Endpoint
    path: Mapping[str, str] | None

    @cached_property
    def operation(self) -> Operation:
        """The operation; its module is imported at the first use."""
        return self.endpoint.load_operation()


class _RouteMatch(NamedTuple):
    """Route that matches a path: its endpoints by method, and the path parameters by name (None if not UTF-8)."""

    endpoints_by_method: Mapping[str, Endpoint]
    path_parameters: Mapping[str, str] | None


class UnmatchedRequestError(WorkspaceError):
    """Error for a path without a route, or for a method that the route does not have.

    Args:
        kind: class of the error.
        code: stable code.
        detail: one sentence for a person.
        endpoint: endpoint of the same path for another method; None for an unknown path.
        members: further properties of the problem document.
    """

    def __init__(self, kind: Kind, code: str, detail: str, endpoint: Endpoint | None = None, **members: object) -> None:
        super().__init__(kind, code, detail, **members)
        self._endpoint = endpoint

    @property
    def is_versioned(self) -> bool:
        """True if the path belongs to a versioned API; the error reply then states the API version."""
        return self._endpoint is None or self._endpoint.is_versioned

    @property
    def endpoint_with_own_error_format(self) -> Endpoint | None:
        """Endpoint of the same path, if its errors have their own format; None if the error is a problem document."""
        return self._endpoint if self._endpoint is not None and self._endpoint.has_own_error_format else None


class Router:
    """Table of endpoints by route template.

    If several templates match a path, a literal segment takes precedence over a parameter ``{name}``, and ``{name}``
    over a parameter ``{*name}`` for the rest of the path.
    """

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._routes: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            methods = self._routes.setdefault(endpoint.route, {})
            if endpoint.method in methods:
                raise ValueError(f"the operation {endpoint.method} /{endpoint.route} is declared twice")
            methods[endpoint.method] = endpoint
        templates = sorted((route for route in self._routes if "{" in route), key=_build_route_sort_key)
        self._patterns = [(_compile_route_pattern(route), self._routes[route]) for route in templates]

    def match(self, method: str, path: str) -> Match:
        """Find the endpoint for a method and a percent-encoded path.

        Raises:
            UnmatchedRequestError: NOT_FOUND ``ROUTE_NOT_FOUND`` if no route matches the path; METHOD_NOT_ALLOWED
                ``METHOD_NOT_ALLOWED``, whose property ``allow`` lists the methods of the route.
        """
        wanted = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        other: Endpoint | None = None
        for methods, parameters in self._iterate_matching_routes(_normalise_path(path.removeprefix("/"))):
            endpoint = methods.get(wanted)
            if endpoint is not None and (method != "HEAD" or endpoint.allows_head):
                return Match(endpoint, parameters)
            allowed.update(methods)
            if "GET" in methods and methods["GET"].allows_head:
                allowed.add("HEAD")
            other = other or next(iter(methods.values()))
        if other is None:
            raise UnmatchedRequestError(Kind.NOT_FOUND, "ROUTE_NOT_FOUND", "Route not found.")
        raise UnmatchedRequestError(
            Kind.METHOD_NOT_ALLOWED,
            "METHOD_NOT_ALLOWED",
            f"Method {method} is not allowed for this route.",
            other,
            allow=sorted(allowed),
        )

    def _iterate_matching_routes(self, path: str) -> Iterable[_RouteMatch]:
        literal = self._routes.get(path)
        if literal is not None:
            yield _RouteMatch(literal, {})
        for pattern, methods in self._patterns:
            found = pattern.fullmatch(path)
            if found:
                yield _RouteMatch(methods, _decode_path_parameters(found.groupdict()))


def _normalise_path(path: str) -> str:
    """Return a path with its unreserved characters decoded (RFC 3986 section 6.2.2.2)."""
    return _ENCODED.sub(_decode_character_if_unreserved, path) if "%" in path else path


def _decode_character_if_unreserved(encoded: re.Match[str]) -> str:
    character = chr(int(encoded[1], 16))
    return character if character in _UNRESERVED else encoded[0]


def _build_route_sort_key(route: str) -> list[tuple[int, str]]:
    """Return a sort key of a route template; templates that take precedence have smaller keys."""
    return [(0 if "{" not in part else 2 if "{*" in part else 1, part) for part in route.split("/")]


def _compile_route_pattern(route: str) -> re.Pattern[str]:
    position, text = 0, ""
    for parameter in _PARAMETER.finditer(route):
        text += re.escape(route[position : parameter.start()])
        text += f"(?P<{parameter[2]}>{'.+' if parameter[1] else '[^/]+'})"
        position = parameter.end()
    return re.compile(text + re.escape(route[position:]), re.DOTALL)


def _decode_path_parameters(parameters: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the percent-decoded path parameters; None if one of them is not UTF-8."""
    try:
        return {name: unquote(value, errors="strict") for name, value in parameters.items()}
    except UnicodeDecodeError:
        return None
