"""Finds the operation for a path and method, whatever order the host matches routes in."""

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from shared.errors import Kind, WorkspaceError
from shared.http.operations import Endpoint, Operation, Problems
from shared.http.problems import problem_document

_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_PARAMETER = re.compile(r"\{(\*?)([a-zA-Z]+)\}")


@dataclass(frozen=True, slots=True)
class Match:
    """An endpoint and the decoded path parameters that led to it."""

    endpoint: Endpoint
    path: Mapping[str, str]

    @property
    def operation(self) -> Operation:
        """The operation; its group's module is imported at the first use."""
        return self.endpoint.load()


class Router:
    """All endpoints, by route; literal segments win over parameters, parameters over the rest of a path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._routes: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            methods = self._routes.setdefault(endpoint.route, {})
            if endpoint.method in methods:
                raise ValueError(f"two operations answer {endpoint.method} /{endpoint.route}")
            methods[endpoint.method] = endpoint
        templates = sorted((route for route in self._routes if "{" in route), key=_precedence)
        self._patterns = [(_pattern(route), self._routes[route]) for route in templates]

    def match(self, method: str, path: str) -> Match:
        """Return the operation for a method and a percent-encoded path.

        Raises:
            WorkspaceError: NOT_FOUND ``ROUTE_NOT_FOUND``; METHOD_NOT_ALLOWED ``METHOD_NOT_ALLOWED`` with ``allow``.
        """
        wanted = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        for methods, parameters in self._candidates(_normalised(path.removeprefix("/"))):
            endpoint = methods.get(wanted)
            if endpoint is not None:
                return Match(endpoint, parameters)
            allowed.update(methods)
        if not allowed:
            raise WorkspaceError(Kind.NOT_FOUND, "ROUTE_NOT_FOUND", "There is nothing at this address.")
        raise WorkspaceError(
            Kind.METHOD_NOT_ALLOWED,
            "METHOD_NOT_ALLOWED",
            f"{method} is not answered here.",
            allow=sorted(allowed | {"HEAD"} if "GET" in allowed else allowed),
        )

    def problems(self, path: str) -> Problems:
        """Return what makes the replies that tell of errors at a path, whatever the method.

        Groups are not loaded for it but where they tell of errors in a form of their own.
        """
        for methods, _ in self._candidates(_normalised(path.removeprefix("/"))):
            endpoint = next(iter(methods.values()))
            return endpoint.load().problems if endpoint.has_own_error_format else problem_document
        return problem_document

    def _candidates(self, path: str) -> Iterable[tuple[Mapping[str, Endpoint], Mapping[str, str]]]:
        literal = self._routes.get(path)
        if literal is not None:
            yield literal, {}
        for pattern, methods in self._patterns:
            found = pattern.fullmatch(path)
            parameters = found and _decoded(found.groupdict())
            if parameters:
                yield methods, parameters


def _normalised(path: str) -> str:
    """Return a path without the percent-encodings that change nothing (RFC 3986 section 6.2.2.2)."""
    return _ENCODED.sub(_decoded_unreserved, path) if "%" in path else path


def _decoded_unreserved(encoded: re.Match[str]) -> str:
    character = chr(int(encoded[1], 16))
    return character if character in _UNRESERVED else encoded[0]


def _precedence(route: str) -> list[tuple[int, str]]:
    return [(0 if "{" not in part else 2 if "{*" in part else 1, part) for part in route.split("/")]


def _pattern(route: str) -> re.Pattern[str]:
    position, text = 0, ""
    for parameter in _PARAMETER.finditer(route):
        text += re.escape(route[position : parameter.start()])
        text += f"(?P<{parameter[2]}>{'.+' if parameter[1] else '[^/]+'})"
        position = parameter.end()
    return re.compile(text + re.escape(route[position:]), re.DOTALL)


def _decoded(parameters: Mapping[str, str]) -> Mapping[str, str] | None:
    try:
        return {name: unquote(value, errors="strict") for name, value in parameters.items()}
    except UnicodeDecodeError:
        return None
