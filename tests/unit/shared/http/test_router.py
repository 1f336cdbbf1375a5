"""Finding the operation for an address."""

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


def operations() -> list[Operation]:
    """Return an operation for each route, named after it."""
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
def test_the_most_specific_route_with_the_method_wins(
    method: str, path: str, name: str, parameters: dict[str, str]
) -> None:
    """Literals win over parameters and parameters over the rest, in whatever order routes were declared."""
    for order in itertools.islice(itertools.permutations(operations()), 0, 5040, 97):
        match = Router(order).match(method, path)
        assert (match.operation.name, dict(match.path)) == (name, parameters)


@pytest.mark.parametrize("path", ["/", "/nothing", "/things/", "/a/1/b/", "/a//b/1", "/things/%ff"])
def test_an_unknown_address_is_not_found(path: str) -> None:
    """An address without a route, or with a segment that is no UTF-8, is not found."""
    with pytest.raises(WorkspaceError) as refused:
        Router(operations()).match("PUT", path)
    assert refused.value.kind is Kind.NOT_FOUND


def test_a_wrong_method_names_the_right_ones() -> None:
    """A method that no route takes at an address is refused with every method that is taken there."""
    with pytest.raises(WorkspaceError) as refused:
        Router(operations()).match("DELETE", "/things/x")
    assert refused.value.kind is Kind.METHOD_NOT_ALLOWED
    assert refused.value.members["allow"] == ["GET", "HEAD", "PUT"]


def test_two_operations_at_one_address_are_a_mistake() -> None:
    """Declaring a method and route twice fails at start."""
    with pytest.raises(ValueError, match="is declared twice"):
        Router([*operations(), operations()[0]])
