"""Tests of route templates and route parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.errors import StartError
from local.host.worker import LoadedFunction
from local.http_server.routes import RouteTable


def build_table(*templates: str, prefix: str = "", **methods: list[str]) -> RouteTable:
    routes = RouteTable()
    for template in templates:
        trigger = {"type": "httpTrigger", "name": "req", "route": template}
        if template in methods:
            trigger |= {"methods": methods[template]}  # type: ignore[dict-item]  # JSON mixes its types
        routes.add(LoadedFunction(template, template, trigger, None), prefix)
    return routes


def find_match(routes: RouteTable, path: str, method: str = "GET") -> tuple[str, dict[str, str]] | None:
    match = routes.match(path, method)
    return None if match is None else (match.function.name, dict(match.parameters))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b", ("a/b", {})),
        ("/A/B/", ("a/b", {})),
        ("/a/x", ("a/{id}", {"id": "x"})),
        ("/a/v1.json", ("a/v{n}.json", {"n": "1"})),
        ("/a/x/y", ("a/{*rest}", {"rest": "x/y"})),
        ("/a", ("a/{*rest}", {})),
        ("/a/%7Bx%7D", ("a/{id}", {"id": "{x}"})),
        ("/a/x%2Fy", ("a/{id}", {"id": "x/y"})),
        ("/a/x%252Fy", ("a/{id}", {"id": "x%2Fy"})),
        ("/a%2Fb", None),
        ("/a//b", ("a/{*rest}", {"rest": "/b"})),
        ("/b", None),
        ("/", None),
        ("/a/x/y/", ("a/{*rest}", {"rest": "x/y/"})),
        ("/a/%2520", ("a/{id}", {"id": "%20"})),
    ],
)
def test_the_most_specific_template_matches(path: str, expected: tuple[str, dict[str, str]] | None) -> None:
    """If several templates match, the order is literal, mixed, parameter, catch-all; letter case is ignored."""
    assert find_match(build_table("a/{*rest}", "a/{id}", "a/v{n}.json", "a/b"), path) == expected


def test_a_parameter_is_tried_if_a_literal_segment_leads_to_no_match() -> None:
    """If a literal segment leads to no match, a parameter at its position is tried."""
    routes = build_table("x/literal/end", "x/{id}/other")
    assert find_match(routes, "/x/literal/other") == ("x/{id}/other", {"id": "literal"})


def test_a_template_for_other_methods_is_skipped() -> None:
    """A template for other methods is skipped; a template without methods accepts each method."""
    routes = build_table("a", "{any}", a=["POST"])
    assert find_match(routes, "/a", "POST") == ("a", {})
    assert find_match(routes, "/a", "GET") == ("{any}", {"any": "a"})
    assert find_match(build_table("a", a=["GET"]), "/a", "HEAD") is None


def test_optional_parameter_may_be_missing() -> None:
    """A route with an optional last parameter matches with and without this segment."""
    routes = build_table("a/{id?}")
    assert find_match(routes, "/a") == ("a/{id?}", {})
    assert find_match(routes, "/a/7") == ("a/{id?}", {"id": "7"})


def test_each_route_begins_with_the_prefix() -> None:
    """Each route begins with the prefix; an empty route equals the prefix."""
    assert find_match(build_table("", prefix="api"), "/api") == ("", {})
    assert find_match(build_table("", prefix=""), "/") == ("", {})


@pytest.mark.parametrize("template", ["{id:int}", "{}", "{a b}", "{1}", "x{", "{a}}", "{*}"])
def test_unsupported_route_templates_stop_the_start(template: str) -> None:
    """A route template with an unsupported form stops the start."""
    with pytest.raises(StartError):
        build_table(template)


@given(st.text())
def test_a_catch_all_route_matches_any_path(text: str) -> None:
    """A catch-all route matches any path."""
    routes = build_table("{*rest}")
    assert routes.match("/" + text, "GET") is not None


@pytest.mark.parametrize(("first", "second"), [("a/{x}", "A/{y}/"), ("a", "a"), ("a/{*x}", "a/{*y}")])
def test_two_functions_with_one_route_stop_the_start(first: str, second: str) -> None:
    """If two functions have the same method and route, the start stops, as on the Functions host."""
    with pytest.raises(StartError, match="with the same HTTP method"):
        build_table(first, second)


def test_one_route_may_have_a_function_for_each_method() -> None:
    """Functions with different methods may share a route."""
    routes = build_table("a", "a/", prefix="", **{"a": ["POST"], "a/": ["GET"]})
    assert find_match(routes, "/a", "GET") == ("a/", {})
