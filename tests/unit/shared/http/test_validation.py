"""Tests of the validation of requests."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel, Field

from shared.auth.principals import ANONYMOUS
from shared.auth.rights import AccessRight
from shared.errors import MAX_LISTED, ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.http.messages import Reply, Request
from shared.http.operations import Call, Group, Operation, RawBody, ServerManagedProperties
from shared.http.unknown_names import UnknownNames
from shared.http.validation import build_call_from_request, validate_with_model
from shared.runtime import SYSTEM_RUNTIME
from shared.validation.names import MAX_HINTS

STORED = {"name": "a", "etag": '"1"', "createdAt": "2026-01-05T08:00:00Z", "runs": 3}


class Query(BaseModel):
    """Query model of the operation that is tested."""

    limit: int = Field(5, ge=1)


class Body(BaseModel):
    """Body model of the operation that is tested."""

    name: str
    size: int = Field(0, ge=0)


async def read_stored(path: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored item."""
    assert path == {"id": "7"}
    return STORED


async def check_name(call: Call[Query, Body], errors: ValidationErrors) -> None:
    """Reject one reserved name."""
    if errors.has_valid_fields("name") and call.body.name == "reserved":
        errors.add(build_invalid_field_error("name", "is reserved", code="NAME_RESERVED"))


async def handle(_: Call[Any, Any]) -> Reply:
    """Do nothing."""
    return Reply()


def build_operation(**options: Any) -> Operation:
    """Return an operation with this module's models."""
    group = Group("test")
    group.endpoint("PUT", "things/{id}", **{"query": Query, "body": Body, "check": check_name, **options})(handle)
    return group.operations[0]


async def validate_request(
    operation: Operation, body: bytes = b'{"name": "a"}', query: str = "", **headers: str
) -> Call[Any, Any]:
    """Validate a request to the operation."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await build_call_from_request(
        operation, ANONYMOUS, {"id": "7"}, Request("PUT", "/", query, sent, body), SYSTEM_RUNTIME
    )


async def find_invalid_fields(operation: Operation, body: bytes, query: str = "") -> list[str]:
    """Return the invalid fields of a request to the operation."""
    with pytest.raises(WorkspaceError) as raised:
        await validate_request(operation, body, query)
    errors: Any = raised.value.members["errors"]
    return [error["field"] for error in errors]


async def test_a_valid_request_is_parsed_to_its_models() -> None:
    """A valid query and a valid body are instances of their models, with the defaults."""
    call = await validate_request(build_operation(), b'{"name": "a", "size": 2}', "limit=7")
    assert (call.query, call.body) == (Query(limit=7), Body(name="a", size=2))


async def test_all_invalid_fields_are_listed_at_once() -> None:
    """One error lists unknown names, invalid values and repeated parameters together."""
    fields = await find_invalid_fields(build_operation(), b'{"nam": "a", "size": -1}', "limit=0&limit=1&other=1")
    assert fields == ["limit", "other", "limit", "nam", "name", "size"]


async def test_rules_of_the_operation_are_checked_on_valid_fields() -> None:
    """The operation's own rules are checked on the valid fields, even if another field is invalid."""
    assert await find_invalid_fields(build_operation(), b'{"name": "reserved", "size": -1}') == ["size", "name"]


@pytest.mark.parametrize("body", [b"{", b'{"a":1,"a":2}', b"\xff", b'{"name": NaN}'])
async def test_a_body_that_is_not_json_has_its_own_code(body: bytes) -> None:
    """A body that is not JSON has its own error code, even if parameters are invalid."""
    with pytest.raises(WorkspaceError) as raised:
        await validate_request(build_operation(), body, "limit=0")
    assert raised.value.code == "BODY_NOT_JSON"


@pytest.mark.parametrize(("policy", "unknown"), [(UnknownNames.IGNORE, ()), (UnknownNames.REPORT, ("other", "extra"))])
async def test_unknown_names_may_be_ignored_or_reported(policy: UnknownNames, unknown: tuple[str, ...]) -> None:
    """An operation's policy determines whether unknown names are ignored, reported or rejected."""
    call = await validate_request(build_operation(unknown=policy), b'{"name": "a", "extra": 1}', "other=1")
    assert call.unknown == unknown


async def test_parameters_with_a_prefix_are_read_by_the_handler() -> None:
    """Names with the declared prefix are accepted in addition to the model's parameters."""
    operation = build_operation(extra_parameters=("p.*",))
    assert (await validate_request(operation, query="p.device=1")).query == Query()
    assert await find_invalid_fields(operation, b'{"name": "a"}', "q.device=1") == ["q.device"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"name": "a", "runs": 3, "createdAt": "2026-01-05T09:00:00+01:00"}', []),
        (b'{"name": "a", "runs": 4}', ["runs"]),
        (b'{"name": "a", "runs": 3.0}', []),
        (b'{"name": "a", "runs": 3.5}', ["runs"]),
        (b'{"name": "a", "createdAt": null}', []),
        (b'{"name": "a", "etag": "any"}', []),
    ],
)
async def test_a_put_may_repeat_the_reply_of_a_get(body: bytes, fields: list[str]) -> None:
    """A PUT may contain the service's own properties with their stored values, in any notation."""
    owned = ServerManagedProperties(
        frozenset({"etag", "createdAt", "runs"}), read_stored, frozenset({"createdAt"}), frozenset({"etag"})
    )
    operation = build_operation(server_set=owned)
    if fields:
        assert await find_invalid_fields(operation, body) == fields
        # With an outdated version the reply is 412, whatever the old values are.
        assert (await validate_request(operation, body, if_match='"0"')).body == Body(name="a")
    else:
        assert (await validate_request(operation, body)).body == Body(name="a")


async def test_a_body_beyond_its_limit_is_not_parsed() -> None:
    """A body over the limit, before or after decoding, is rejected without being parsed."""
    with pytest.raises(WorkspaceError) as raised:
        await validate_request(build_operation(body_limit=10), b'{"name": "longer"}')
    assert raised.value.code == "BODY_TOO_LARGE"


@pytest.mark.parametrize(("media_type", "limit"), [("application/json", 10), ("application/x-ndjson", 20)])
async def test_the_size_limit_of_a_body_depends_on_its_media_type(media_type: str, limit: int) -> None:
    """Each media type has its own size limit, which the error states."""
    operation = build_operation(body_limit=10, form_limits=(("application/x-ndjson", 20),), body=RawBody, check=None)
    assert len((await validate_request(operation, b"x" * limit, content_type=media_type)).request.body) == limit
    with pytest.raises(WorkspaceError, match=f"at most {limit} bytes"):
        await validate_request(operation, b"x" * 21, content_type=media_type)


async def test_an_encoding_that_is_not_declared_is_rejected() -> None:
    """A compressed body is rejected unless its operation declares the encoding."""
    with pytest.raises(WorkspaceError) as raised:
        await validate_request(build_operation(), b"x", content_encoding="gzip")
    assert raised.value.members["supported"] == []


async def test_a_raw_body_is_parsed_by_the_handler() -> None:
    """The body of another protocol is parsed by its handler, by the rules of that protocol."""
    operation = build_operation(body=RawBody, check=None, unknown=UnknownNames.IGNORE)
    assert (await validate_request(operation, b"not JSON")).request.body == b"not JSON"


class Many(BaseModel):
    """Body model with lists, and with a property that accepts any JSON object."""

    numbers: list[int]
    others: list[int] = []
    state: dict[str, Any] | None = None


def test_the_first_thousand_body_errors_are_listed() -> None:
    """If a body has over 1,000 errors, the first 1,000 are listed, followed by the number of all errors."""
    with pytest.raises(WorkspaceError) as raised:
        validate_with_model(Many, {"numbers": ["x"] * (MAX_LISTED + 500)})
    errors: Any = raised.value.members["errors"]
    assert [each["field"] for each in errors] == [*(f"numbers[{index}]" for index in range(MAX_LISTED)), "..."]
    assert errors[-1]["message"] == "1500 errors were found; at most 1000 of them are listed"


def test_tens_of_thousands_of_body_errors_are_only_counted() -> None:
    """If a body has over 10,000 errors, only their number is reported, because reading them takes too long."""
    with pytest.raises(WorkspaceError) as raised:
        validate_with_model(Many, {"numbers": ["x"] * 9_999, "others": ["x"] * 9_999})
    assert raised.value.detail == "body: has 19998 errors; more than 10000 are not listed individually"


@pytest.mark.parametrize(
    "numbers", [[1] * 10_001, [[1] * 5_000, [1] * 5_000], {"a": {str(n): 1 for n in range(10_000)}}]
)
def test_a_property_has_at_most_ten_thousand_values(numbers: Any) -> None:
    """A property with more than 10,000 values is rejected before the values are validated one by one."""
    with pytest.raises(WorkspaceError) as raised:
        validate_with_model(Many, {"numbers": numbers})
    rule = "must have at most 10000 values, including those in nested arrays and objects"
    assert raised.value.members["errors"] == [{"field": "numbers", "message": rule}]


def test_a_property_for_any_object_has_any_number_of_values() -> None:
    """The limit of 10,000 values does not hold for properties that accept any JSON object."""
    state = {"readings": list(range(10_001))}
    assert validate_with_model(Many, {"numbers": [1] * 10_000, "state": state}).state == state


def test_a_body_has_at_most_ten_thousand_properties() -> None:
    """A body with more than 10,000 properties is rejected before the properties are validated one by one."""
    with pytest.raises(WorkspaceError) as raised:
        validate_with_model(Many, {f"m{number}": 0 for number in range(10_001)})
    assert raised.value.detail == "body: must have at most 10000 properties"


class Chosen(BaseModel):
    """Body model with access rights."""

    rights: list[AccessRight]


def test_similar_access_rights_are_suggested_for_a_few_unknown_rights() -> None:
    """Only the first unknown access rights get a suggestion, because each search takes time."""
    with pytest.raises(WorkspaceError) as raised:
        validate_with_model(Chosen, {"rights": ["Catalog.Reed"] * (MAX_HINTS + 5)})
    errors: Any = raised.value.members["errors"]
    assert [each["message"] for each in errors] == [
        *["is not an access right; did you mean Workspace.Catalog.Read?"] * MAX_HINTS,
        *["is not an access right"] * 5,
    ]
