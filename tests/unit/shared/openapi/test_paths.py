"""Tests of the paths of OpenAPI."""

from typing import Any

import pytest

from functions import GROUPS
from shared.http.messages import Reply
from shared.http.operation_docs import OperationDocs
from shared.http.operations import Call, Group, Operation
from shared.openapi.paths import PLACEHOLDER, build_path_parameters, build_path_template, to_camel_case


async def handle(_: Call[Any, Any]) -> Reply:
    """Do nothing."""
    return Reply()


def build_operation(route: str, **docs: Any) -> Operation:
    """Return an operation with a route."""
    group = Group("test")
    group.endpoint("GET", route, docs=OperationDocs(**docs))(handle)
    return group.operations[0]


@pytest.mark.parametrize(
    ("route", "template"),
    [("oi-api/me", "/oi-api/me"), ("oi-api/data-stores/{store}/{*file}", "/oi-api/data-stores/{store}/{file}")],
)
def test_a_template_names_each_parameter_once(route: str, template: str) -> None:
    """A path template contains each parameter once, even a parameter of several segments."""
    assert build_path_template(build_operation(route)) == template


@pytest.mark.parametrize(("name", "converted"), [("me", "me"), ("get_warm_query", "getWarmQuery")])
def test_an_operation_id_is_in_camel_case(name: str, converted: str) -> None:
    """An operation id is in camel case, because client generators derive method names from it."""
    assert to_camel_case(name) == converted


def test_the_operation_may_restrict_a_parameter() -> None:
    """An operation can restrict a path parameter; the length of each path parameter is always limited."""
    [parameter] = build_path_parameters(
        build_operation("oi-api/connections/{lookup}", path={"lookup": {"type": "string", "maxLength": 64}})
    )
    assert (parameter["in"], parameter["required"], parameter["example"]) == ("path", True, "pump-rig")
    assert parameter["schema"] == {"type": "string", "minLength": 1, "maxLength": 64}


def test_each_parameter_of_the_service_is_described() -> None:
    """Each parameter of a route has a description and an example."""
    for group in GROUPS:
        for operation in group.operations:
            parameters = build_path_parameters(operation)
            assert [each["name"] for each in parameters] == PLACEHOLDER.findall(operation.route)
            assert all(each["description"] and each["example"] for each in parameters), operation.route
