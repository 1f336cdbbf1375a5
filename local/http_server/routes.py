"""Route table with the precedence of ASP.NET Core.

Literal segments precede mixed ones (text and parameters, such as ``v{number}``), then parameters, then catch-alls.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from local.errors import StartError
from local.host.worker import LoadedFunction

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """Function of the app that serves a request path, with the values of the route parameters in the path."""

    function: LoadedFunction
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Route:
    """Function with its HTTP methods (an empty set allows all methods) and the names of its route parameters."""

    function: LoadedFunction
    methods: frozenset[str]
    names: tuple[str, ...]


@dataclass(slots=True)
class _Node:
    """Node of the tree of route segments: its child nodes by kind of segment, and the routes that end here."""

    literals: dict[str, "_Node"] = field(default_factory=dict)
    mixed: list[tuple[re.Pattern[str], "_Node"]] = field(default_factory=list)
    parameter: "_Node | None" = None
    routes: list[_Route] = field(default_factory=list)
    catch_all: list[_Route] = field(default_factory=list)


class RouteTable:
    """HTTP functions of an app, found by path and method."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, function: LoadedFunction, route_prefix: str) -> None:
        """Add an HTTP function to the table; its route is the app's route prefix and the function's own route.

        Raises:
            StartError: the function's route template uses syntax that this host does not support, or another function
                serves the same route and method.
        """
        route = str(function.trigger.get("route", function.name))
        segments = [part for part in f"{route_prefix}/{route}".split("/") if part]
        methods = frozenset(str(method).upper() for method in function.trigger.get("methods") or ())
        names: list[str] = []
        node = self._root
        for position, segment in enumerate(segments):
            last = position == len(segments) - 1
            inside = _get_name_of_sole_placeholder(segment)
            if last and inside.startswith("*"):
                names.append(_require_plain_parameter_name(inside.lstrip("*"), route))
                _append_route(node.catch_all, _Route(function, methods, tuple(names)), route)
                return
            if last and inside.endswith("?"):
                _append_route(node.routes, _Route(function, methods, tuple(names)), route)
                inside = inside[:-1]
                segment = f"{{{inside}}}"  # noqa: PLW2901  the same segment, now required
            node = _find_or_add_child(node, segment, names, route)
        _append_route(node.routes, _Route(function, methods, tuple(names)), route)

    def match(self, raw_path: str, method: str) -> RouteMatch | None:
        """Find the function for a percent-encoded path and an HTTP method; return None if no route matches.

        Path segments are percent-decoded. Letter case and a trailing slash are ignored, but the value of a catch-all
        parameter contains the slash.
        """
        segments = [unquote(segment) for segment in raw_path[1:].split("/")]
        for route, values in _iterate_matching_routes(self._root, segments, 0, ()):
            if not route.methods or method in route.methods:
                return RouteMatch(route.function, dict(zip(route.names, values, strict=True)))
        return None


def _append_route(routes: list[_Route], added_route: _Route, route_template: str) -> None:
    """Add a route to the routes with the same template; raise StartError if they have an HTTP method in common."""
    for other in routes:
        if not added_route.methods or not other.methods or added_route.methods & other.methods:
            names = f"{other.function.name} and {added_route.function.name}"
            raise StartError(f"the functions {names} both serve the route {route_template!r} with the same HTTP method")
    routes.append(added_route)


class _MatchingRoute(NamedTuple):
    """Route that matches a path, and the values of its parameters in the path."""

    route: _Route
    values: tuple[str, ...]


def _iterate_matching_routes(
    node: _Node, segments: list[str], position: int, parameter_values: tuple[str, ...]
) -> Iterator[_MatchingRoute]:
    """Yield the routes that match the segments from ``position`` on, in order of precedence."""
    rest = "/".join(segments[position:])
    if not rest:
        yield from (_MatchingRoute(route, parameter_values) for route in node.routes)
    else:
        segment = segments[position]
        literal = node.literals.get(segment.lower())
        if literal is not None:
            yield from _iterate_matching_routes(literal, segments, position + 1, parameter_values)
        for pattern, child in node.mixed:
            found = pattern.fullmatch(segment)
            if found:
                yield from _iterate_matching_routes(child, segments, position + 1, parameter_values + found.groups())
        if node.parameter is not None and segment:
            yield from _iterate_matching_routes(node.parameter, segments, position + 1, (*parameter_values, segment))
    for route in node.catch_all:
        # A catch-all parameter without any value is omitted.
        yield (
            _MatchingRoute(route, (*parameter_values, rest))
            if rest
            else _MatchingRoute(_drop_last_parameter(route), parameter_values)
        )


def _drop_last_parameter(route: _Route) -> _Route:
    return _Route(route.function, route.methods, route.names[:-1])


def _find_or_add_child(node: _Node, segment: str, parameter_names: list[str], route_template: str) -> _Node:
    """Return the child node for a template segment, created if missing.

    Append the segment's parameter names to ``parameter_names``.
    """
    if "{" not in segment and "}" not in segment:
        return node.literals.setdefault(segment.lower(), _Node())
    parameter_names.extend(
        _require_plain_parameter_name(inside, route_template) for inside in _PLACEHOLDER.findall(segment)
    )
    if _get_name_of_sole_placeholder(segment):
        if node.parameter is None:
            node.parameter = _Node()
        return node.parameter
    texts = _PLACEHOLDER.split(segment)[::2]
    if any("{" in text or "}" in text for text in texts):
        raise StartError(f"the route {route_template!r} has unbalanced braces in the segment {segment!r}")
    literals = [re.escape(text) for text in texts]
    pattern = re.compile("(.+)".join(literals), re.IGNORECASE | re.DOTALL)
    for known, child in node.mixed:
        if known.pattern == pattern.pattern:
            return child
    child = _Node()
    node.mixed.append((pattern, child))
    return child


def _get_name_of_sole_placeholder(segment: str) -> str:
    """Return the parameter name of a template segment that is exactly one placeholder; else return an empty text."""
    found = _PLACEHOLDER.fullmatch(segment)
    return found[1] if found else ""


def _require_plain_parameter_name(placeholder_text: str, route_template: str) -> str:
    if not _NAME.fullmatch(placeholder_text):
        raise StartError(
            f"the route {route_template!r}: {{{placeholder_text}}} is not supported by the local host; "
            "use a plain parameter name"
        )
    return placeholder_text
