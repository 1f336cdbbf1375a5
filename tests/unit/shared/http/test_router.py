"""Tests of how the operation for a method and path is found."""

import itertools

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply
from shared.http.operations import Call, Group, Operation
from shared.http.router import Router

ROUTES = [
    ("GET", "things"),
    ("POST", "things"),
    ("GET", "things/{*rest}"),
    ("PUT", "things/{thing}"),
    ("GET", "things/special"),
    ("POST", "things/{thing}/approve"),
    ("DELETE", "a/{x}/b/{y}"),
]


def build_operations() -> list[Operation]:
    """Return an operation for each route, named after the route."""
    group = Group("test")
    for method, route in ROUTES:

        async def handler(_: Call) -> Reply:
            return Reply()

        handler.__name__ = f"{method} {route}"
        group.endpoint(method, route)(handler)
    return group.operations


@pytest.mark.parametrize(
    ("method", "path", "name", "parameters"),
    [
        ("GET", "/things", "GET things", {}),
        ("HEAD", "/things", "GET things", {}),
        ("GET", "/things/special", "GET things/special", {}),
        ("GET", "/%74hings/%73pecial", "GET things/special", {}),
        ("GET", "/things/a/b%20c", "GET things/{*rest}", {"rest": "a/b c"}),
        ("GET", "/things/x/approve", "GET things/{*rest}", {"rest": "x/approve"}),
        ("POST", "/things/x/approve", "POST things/{thing}/approve", {"thing": "x"}),
        ("PUT", "/things/a%2Fb", "PUT things/{thing}", {"thing": "a/b"}),
        ("DELETE", "/a/1/b/%C3%BC", "DELETE a/{x}/b/{y}", {"x": "1", "y": "ü"}),
    ],
)
def test_the_most_specific_route_is_chosen(method: str, path: str, name: str, parameters: dict[str, str]) -> None:
    """Literal segments have priority over parameters, and parameters over the rest of a path, in any order."""
    for order in itertools.islice(itertools.permutations(build_operations()), 0, 5040, 97):
        match = Router(order).match(method, path)
        assert (match.operation.name, match.path) == (name, parameters)


@pytest.mark.parametrize("path", ["/", "/nothing", "/things/", "/a/1/b/", "/a//b/1"])
def test_an_unknown_path_is_not_found(path: str) -> None:
    """A path without a route is not found."""
    with pytest.raises(WorkspaceError) as caught:
        Router(build_operations()).match("PUT", path)
    assert caught.value.kind is Kind.NOT_FOUND


def test_a_parameter_must_be_utf_8() -> None:
    """A path with a parameter that is not UTF-8 belongs to its route, but has no parameters."""
    match = Router(build_operations()).match("PUT", "/things/%ff")
    assert (match.operation.name, match.path) == ("PUT things/{thing}", None)


def test_the_error_about_a_wrong_method_lists_the_allowed_methods() -> None:
    """The error about an unsupported method lists the methods of the path."""
    with pytest.raises(WorkspaceError) as caught:
        Router(build_operations()).match("DELETE", "/things/x")
    assert caught.value.kind is Kind.METHOD_NOT_ALLOWED
    assert caught.value.members["allow"] == ["GET", "HEAD", "PUT"]


def test_head_is_not_allowed_for_a_get_operation_with_an_effect() -> None:
    """HEAD is neither served nor listed as allowed for a GET operation that does not allow it."""
    group = Group("test")

    @group.endpoint("GET", "tokens/new", allows_head=False)
    async def _issue_token(_: Call) -> Reply:
        return Reply()

    router = Router(group.operations)
    assert router.match("GET", "/tokens/new").operation.allows_head is False
    for method in ("HEAD", "OPTIONS"):
        with pytest.raises(WorkspaceError) as caught:
            router.match(method, "/tokens/new")
        assert caught.value.members["allow"] == ["GET"]


def test_a_duplicate_route_is_rejected() -> None:
    """Two operations with the same method and route raise an error at the start."""
    with pytest.raises(ValueError, match="is declared twice"):
        Router([*build_operations(), build_operations()[0]])
