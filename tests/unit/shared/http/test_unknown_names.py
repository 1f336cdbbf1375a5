"""Tests of unknown query parameters and body fields."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from shared.auth.principals import CredentialKind, Principal
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.operations import Access, Call, Group, ServerManagedProperties
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import IGNORED, MAX_REPORTED, UnknownNames, add_unknown_names_header
from shared.validation.names import find_nearest_name

GROUP = Group("test")
STORED = {
    "limits": {"perMinute": 60},
    "id": "a",
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "columns": None,
    "approval": {"by": "ann", "at": "2026-01-05T08:00:00.000000Z"},
}


class Window(BaseModel):
    """Query model of the test's operations."""

    limit: int = 5
    scopes: str = Field("", validation_alias=AliasChoices("scopes", "Scopes2"))


class Range(BaseModel):
    """Nested model without its own policy for unknown fields."""

    start: str = Field("", validation_alias=AliasChoices("start", "from"))


class Thing(BaseModel):
    """Body model that by its configuration would ignore unknown fields."""

    model_config = ConfigDict(extra="ignore")

    name: str
    rights: list[str] = []
    range: Range | None = None
    parts: list[Range] = []
    free: dict[str, Any] = {}


async def read_current(path: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored item; if no item with this id is stored, return only the id."""
    return STORED if path["id"] == "a" else {"id": path["id"]}


@GROUP.endpoint("POST", "refuses", access=Access.PUBLIC, query=Window, body=Thing, extra_parameters=("token", "p.*"))
async def reject_unknown_names(call: Call[Window, Thing]) -> Reply:
    """Return the validated query and body of an operation that rejects unknown names."""
    return build_json_reply({"limit": call.query.limit, "name": call.body.name})


@GROUP.endpoint("POST", "nothing", access=Access.PUBLIC)
async def accept_no_names(_: Call) -> Reply:
    """Reply, as an operation without parameters and body fields."""
    return Reply(204)


@GROUP.endpoint("POST", "reports", access=Access.PUBLIC, query=Window, body=Thing, unknown=UnknownNames.REPORT)
async def reply_with_ignored_names(_: Call[Window, Thing]) -> Reply:
    """Reply with a header that names an ignored parameter."""
    return Reply(204, b"", {IGNORED: "limit"})


@GROUP.endpoint("POST", "ignores", access=Access.PUBLIC, query=Window, body=Thing, unknown=UnknownNames.IGNORE)
async def ignore_unknown_names(_: Call[Window, Thing]) -> Reply:
    """Return an empty reply, as an operation that ignores unknown names."""
    return Reply(204)


@GROUP.endpoint(
    "PUT",
    "things/{id}",
    access=Access.PUBLIC,
    body=Thing,
    server_set=ServerManagedProperties(frozenset(STORED), read_current, nullable=frozenset({"columns"})),
)
async def replace_thing(_: Call[Any, Thing]) -> Reply:
    """Return an empty reply, as an operation that replaces an item."""
    return Reply(204)


async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Accept every caller."""
    raise AssertionError(authorization, accepted)


async def require_feature(feature: str) -> None:
    """Accept every feature."""
    assert feature


async def send_request(method: str, target: str, body: object = None) -> Reply:
    """Send a request and return the reply."""
    path, _, query = target.partition("?")
    sent = b"" if body is None else json.dumps(body).encode()
    return await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(
        Request(method, path, query, {}, sent)
    )


async def get_field_errors(method: str, target: str, body: object = None) -> dict[str, str]:
    """Send an invalid request; return the message of each invalid field."""
    reply = await send_request(method, target, body)
    assert reply.status == 400, reply.body
    return {error["field"]: error["message"] for error in json.loads(reply.body)["errors"]}


async def test_one_reply_lists_all_unknown_names_and_invalid_fields() -> None:
    """One reply lists unknown parameters, unknown fields at any depth, and all other errors."""
    body = {"accessRights": [], "range": {"stert": ""}, "parts": [{"end": ""}], "free": {"any": 1}, "name": 5}
    assert await get_field_errors("POST", "/refuses?scope=a&limit=x", body) == {
        "scope": "Unknown parameter `scope`; did you mean `scopes`?",
        "limit": "must be a whole number",
        "accessRights": "Unknown field `accessRights`; did you mean `rights`?",
        "range.stert": "Unknown field `stert`; did you mean `start`?",
        "parts[0].end": "Unknown field `end`; known: `start`.",
        "name": "should be a valid string",
    }


async def test_names_in_other_letter_case_are_unknown() -> None:
    """A name in the wrong letter case is rejected with an error that contains the correct name."""
    assert await get_field_errors("POST", "/refuses?Scopes=a", {"Name": "x"}) == {
        "Scopes": "Unknown parameter `Scopes`; did you mean `scopes`?",
        "Name": "Unknown field `Name`; did you mean `name`?",
        "name": "is required",
    }


async def test_a_query_parameter_in_the_body_is_named_as_such() -> None:
    """The error about a body property with the name of a query parameter says where to send it."""
    assert await get_field_errors("POST", "/refuses", {"name": "x", "limit": 1, "range": {"limit": 1}}) == {
        "limit": "Unknown field `limit`; send `limit` as a query parameter.",
        "range.limit": "Unknown field `limit`; known: `start`.",
    }


async def test_an_operation_without_parameters_rejects_any_parameter() -> None:
    """The error about an unknown parameter of an operation without parameters says that there are none."""
    assert await get_field_errors("POST", "/nothing?=1&a", {"b": 1}) == {
        "": "Unknown parameter ``; no parameters are accepted.",
        "a": "Unknown parameter `a`; no parameters are accepted.",
        "b": "Unknown field `b`; no fields are accepted.",
    }
    assert (await send_request("POST", "/nothing")).status == 204
    assert (await send_request("POST", "/nothing?", {})).status == 204


@pytest.mark.parametrize("query", ["limit=1&limit=1", "scopes=a&Scopes2=b", "token=a&token=b"])
async def test_a_repeated_parameter_is_rejected(query: str) -> None:
    """A parameter is rejected if it occurs twice, even once under each of its two names."""
    [message] = (await get_field_errors("POST", f"/refuses?{query}", {"name": "x"})).values()
    assert message == "is repeated; send it once"


async def test_a_field_under_both_of_its_names_is_rejected() -> None:
    """A body is rejected if it contains a field under both of its names."""
    body = {"name": "x", "range": {"start": "a", "from": "b"}}
    assert await get_field_errors("POST", "/refuses", body) == {"range.from": "repeats `start`; send only one of them"}


async def test_declared_names_are_accepted() -> None:
    """Aliases, declared parameters, and names with a declared prefix are accepted."""
    body = {"name": "x", "range": {"from": ""}}
    assert (await send_request("POST", "/refuses?Scopes2=a&token=t&p.x=1&p.x=2", body)).status == 200


async def test_unknown_names_follow_those_that_the_handler_ignored() -> None:
    """The header lists the names that the handler ignored and then the unknown names."""
    reply = await send_request("POST", "/reports?a%0d%0aSet-Cookie:x=1&%C3%A4=1&b,c=1&a", {"name": "x", "d": 1})
    assert (reply.status, reply.headers[IGNORED]) == (204, "limit, a%0D%0ASet-Cookie:x, %C3%A4, b%2Cc, a, d")


async def test_ignored_names_do_not_change_the_reply() -> None:
    """An operation that ignores unknown names replies as if they were not sent."""
    reply = await send_request("POST", "/ignores?a=1", {"name": "x", "d": 1})
    assert (reply.status, reply.headers.get(IGNORED)) == (204, None)


@pytest.mark.parametrize(
    ("identifier", "sent", "failing"),
    [
        ("a", STORED, []),
        ("a", {"createdAt": "2026-01-05T09:00:00+01:00"}, []),
        ("a", {"createdAt": "2026-01-05T08:00:01Z"}, ["createdAt"]),
        ("a", {"createdAt": 5, "id": "b"}, ["createdAt", "id"]),
        ("a", {"limits": {"perMinute": 60.0}}, []),
        ("a", {"limits": {"perMinute": 60.5}}, ["limits"]),
        ("a", {"limits": {"perMinute": True}}, ["limits"]),
        ("a", {"approval": None, "columns": None}, ["approval"]),
        ("a", {"approval": {**STORED["approval"], "by": "bob"}}, ["approval"]),  # type: ignore[dict-item]
        ("b", {"id": "b", "approval": None}, []),
        ("b", {"createdAt": STORED["createdAt"]}, ["createdAt"]),
    ],
)
async def test_fields_that_the_service_sets_must_be_unchanged(
    identifier: str, sent: dict[str, Any], failing: list[str]
) -> None:
    """A field that only the service sets is accepted only with its stored value."""
    target, body = f"/things/{identifier}", {"name": "x", **sent}
    if failing:
        assert list(await get_field_errors("PUT", target, body)) == failing
    else:
        assert (await send_request("PUT", target, body)).status == 204


async def test_many_unknown_fields_get_a_short_reply() -> None:
    """A body with very many unknown fields is rejected with a single message."""
    body = {"name": "x", **{f"m{number}": 0 for number in range(70_000)}}
    errors = await get_field_errors("POST", "/refuses", body)
    assert errors == {"body": "must have at most 10000 properties"}


def test_a_body_without_a_model_must_ignore_unknown_names() -> None:
    """An operation with a body that is neither raw nor has a model must ignore unknown names."""
    for body in (Any, dict[str, Any]):
        with pytest.raises(TypeError, match="only an operation with a body model"):
            GROUP.endpoint("POST", "data", body=body)


@given(st.lists(st.text(st.characters(), max_size=80), max_size=300))
def test_header_of_reported_names_is_one_short_line(names: list[str]) -> None:
    """The header with ignored names is one line of visible ASCII and spaces with limited length."""
    reply = Reply()
    add_unknown_names_header(reply, names)
    text = reply.headers.get(IGNORED, "")
    assert all(" " <= character <= "~" for character in text)
    assert len(text) <= MAX_REPORTED + len(", ...")
    assert bool(text) == bool(names)


@given(st.text(max_size=200), st.lists(st.text(max_size=30), max_size=10))
def test_suggested_names_are_known_names(wanted: str, known: list[str]) -> None:
    """The error about an unknown name suggests only known names."""
    found = find_nearest_name(wanted, known)
    assert found is None or found in known
