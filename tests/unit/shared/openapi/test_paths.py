"""Tests of the paths and operations of the OpenAPI document."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from functions import GROUPS
from shared.auth.rights import AccessRight
from shared.http.messages import Reply
from shared.http.operation_docs import OperationDocs
from shared.http.operations import Access, Call, Group, Operation, RawBody
from shared.http.unknown_names import UnknownNames
from shared.openapi.paths import (
    PLACEHOLDER,
    build_operation_object,
    build_path_parameters,
    build_path_template,
    describe_required_access,
    to_camel_case,
)
from shared.openapi.schemas import SchemaRegistry


async def handle(_: Call[Any, Any]) -> Reply:
    """Do nothing."""
    return Reply()


def declare_operation(route: str, **docs: Any) -> Operation:
    """Return an operation with the given route and documentation."""
    group = Group("test")
    group.endpoint("GET", route, docs=OperationDocs(**docs))(handle)
    return group.operations[0]


@pytest.mark.parametrize(
    ("route", "template"),
    [("oi-api/me", "/oi-api/me"), ("oi-api/data-stores/{store}/{*file}", "/oi-api/data-stores/{store}/{file}")],
)
def test_a_template_names_each_parameter_once(route: str, template: str) -> None:
    """A path template has each route parameter once, even a parameter that spans several segments."""
    assert build_path_template(declare_operation(route)) == template


@pytest.mark.parametrize(("name", "converted"), [("me", "me"), ("get_warm_query", "getWarmQuery")])
def test_an_operation_id_is_in_camel_case(name: str, converted: str) -> None:
    """An operation id is in camel case, because client generators derive method names from it."""
    assert to_camel_case(name) == converted


def test_the_operation_may_restrict_a_parameter() -> None:
    """An operation can restrict a path parameter further; without this, each path parameter has a maximum length."""
    [parameter] = build_path_parameters(
        declare_operation("oi-api/connections/{lookup}", path={"lookup": {"type": "string", "maxLength": 64}})
    )
    assert (parameter["in"], parameter["required"], parameter["example"]) == ("path", True, "pump-rig")
    assert parameter["schema"] == {"type": "string", "minLength": 1, "maxLength": 64}


def test_each_parameter_of_the_service_is_described() -> None:
    """Each route parameter has a description and an example."""
    for group in GROUPS:
        for operation in group.operations:
            parameters = build_path_parameters(operation)
            assert [each["name"] for each in parameters] == PLACEHOLDER.findall(operation.route)
            assert all(each["description"] and each["example"] for each in parameters), operation.route


@pytest.mark.parametrize(
    ("route", "description"),
    [
        ("oi-api/warm-queries/{lookup}", "Lookup key of the warm query; for its execution also its API path."),
        ("oi-api/telemetry/{lookup}", "Lookup key of the data connection."),
        ("oi-api/data-stores/{lookup}/containers", "Lookup key of the database."),
    ],
)
def test_the_description_of_a_lookup_names_the_kind_of_item(route: str, description: str) -> None:
    """The description of a lookup names the kind of item that the lookup identifies."""
    [parameter] = build_path_parameters(declare_operation(route))
    assert parameter["description"] == description


READ, MANAGE = AccessRight.CATALOG_READ, AccessRight.KEYS_MANAGE


class Query(BaseModel):
    """Query parameters of the test's operation."""

    limit: int = Field(5, description="Maximum number.")


class Body(BaseModel):
    """Request body of the test's operation."""

    name: str


class OptionalBody(BaseModel):
    """Body model without required fields."""

    name: str = ""


async def do_something(_: Call[Any, Any]) -> Reply:
    """Do something."""
    return Reply()


def declare_test_operation(**options: Any) -> Operation:
    """Return an operation with the given attributes."""
    group = Group("test")
    group.endpoint("POST", "oi-api/test", **options)(do_something)
    return group.operations[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"access": Access.PUBLIC}, "Requires no credential."),
        ({"access": Access.KEY_OR_TOKEN}, "Accepts an API key or a token."),
        ({}, "Accepts any valid token."),
        ({"right": READ}, f"Requires the access right `{READ}`."),
        ({"right": READ, "further_rights": (MANAGE,)}, f"Requires the access rights `{READ}` and `{MANAGE}`."),
    ],
)
def test_the_description_of_an_operation_states_its_right(options: dict[str, Any], sentence: str) -> None:
    """An operation's description says in a sentence which right it requires."""
    assert describe_required_access(declare_test_operation(**options)) == sentence


def test_an_operation_has_the_parameters_of_its_model() -> None:
    """An operation has the parameters of its query model and, if its group has versions, the version header."""
    built = build_operation_object(declare_test_operation(query=Query), SchemaRegistry())
    assert (built["operationId"], built["summary"]) == ("doSomething", "Do something.")
    assert [(each["name"], each["in"]) for each in built["parameters"]] == [
        ("limit", "query"),
        ("Oi-Version", "header"),
    ]
    assert "requestBody" not in built
    assert (built["security"], "deprecated" in built) == ([{"bearer": []}], False)


@pytest.mark.parametrize(("body", "required"), [(Body, True), (OptionalBody, False)])
def test_a_body_is_required_if_one_of_its_fields_is(body: type[BaseModel], *, required: bool) -> None:
    """A body is required only if one of its fields is required."""
    schemas = SchemaRegistry()
    built = build_operation_object(declare_test_operation(body=body), schemas)
    assert built["requestBody"]["required"] is required
    [schema] = [each for name, each in schemas.named.items() if name.startswith(body.__name__)]
    assert schema["additionalProperties"] is False


def test_a_raw_body_has_the_documented_schema() -> None:
    """If a handler parses the raw body itself, the body has the schema in the operation's documentation."""
    docs = OperationDocs(body_forms={"text/plain": {"type": "string"}})
    built = build_operation_object(
        declare_test_operation(body=RawBody, unknown=UnknownNames.IGNORE, docs=docs), SchemaRegistry()
    )
    assert built["requestBody"] == {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}


def test_a_public_operation_needs_no_credential() -> None:
    """In the document, a public operation requires no credential."""
    assert build_operation_object(declare_test_operation(access=Access.PUBLIC), SchemaRegistry())["security"] == []
