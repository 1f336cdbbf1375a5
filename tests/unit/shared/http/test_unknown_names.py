"""Query parameters and body members that an operation does not know."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from shared.auth.principals import CredentialKind, Principal
from shared.http.messages import Reply, Request, json_reply
from shared.http.operations import Access, Call, Group, RawBody, ServerSetMembers
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import IGNORED, MAX_LISTED, MAX_REPORTED, UnknownNames, report_unknown_names
from shared.validation.names import find_nearest_name

GROUP = Group("test")
STORED = {
    "id": "a",
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "columns": None,
    "approval": {"by": "ann", "at": "2026-01-05T08:00:00.000000Z"},
}


class Window(BaseModel):
    """A query model."""

    limit: int = 5
    scopes: str = Field("", validation_alias=AliasChoices("scopes", "Scopes2"))


class Range(BaseModel):
    """A nested model that states no rule of its own."""

    start: str = Field("", validation_alias=AliasChoices("start", "from"))


class Thing(BaseModel):
    """A body model whose configuration would ignore what it does not have."""

    model_config = ConfigDict(extra="ignore")

    name: str
    rights: list[str] = []
    range: Range | None = None
    parts: list[Range] = []
    free: dict[str, Any] = {}


async def current(path: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored item; of a new one its id."""
    return STORED if path["id"] == "a" else {"id": path["id"]}


@GROUP.endpoint("POST", "refuses", access=Access.PUBLIC, query=Window, body=Thing, extra_parameters=("token", "p.*"))
async def refuses(call: Call[Window, Thing]) -> Reply:
    """Return what was read."""
    return json_reply({"limit": call.query.limit, "name": call.body.name})


@GROUP.endpoint("POST", "nothing", access=Access.PUBLIC)
async def nothing(_: Call) -> Reply:
    """Take neither parameters nor members."""
    return Reply(204)


@GROUP.endpoint("POST", "reports", access=Access.PUBLIC, query=Window, body=Thing, unknown=UnknownNames.REPORT)
async def reports(_: Call[Window, Thing]) -> Reply:
    """Name a parameter that did not parse."""
    return Reply(204, b"", {IGNORED: "limit"})


@GROUP.endpoint("POST", "ignores", access=Access.PUBLIC, query=Window, body=Thing, unknown=UnknownNames.IGNORE)
async def ignores(_: Call[Window, Thing]) -> Reply:
    """Answer."""
    return Reply(204)


@GROUP.endpoint(
    "PUT",
    "things/{id}",
    access=Access.PUBLIC,
    body=Thing,
    server_set=ServerSetMembers(frozenset(STORED), current, nullable=frozenset({"columns"})),
)
async def put(_: Call[Any, Thing]) -> Reply:
    """Answer."""
    return Reply(204)


async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Know nobody."""
    raise AssertionError(authorization, accepted)


async def require_feature(feature: str) -> None:
    """Have everything."""
    assert feature


async def ask(method: str, target: str, body: object = None) -> Reply:
    """Return the reply to a request."""
    path, _, query = target.partition("?")
    sent = b"" if body is None else json.dumps(body).encode()
    return await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(
        Request(method, path, query, {}, sent)
    )


async def errors_of(method: str, target: str, body: object = None) -> dict[str, str]:
    """Return the message for each failing field of a refused request."""
    reply = await ask(method, target, body)
    assert reply.status == 400, reply.body
    return {error["field"]: error["message"] for error in json.loads(reply.body)["errors"]}


async def test_all_unknown_names_and_failing_fields_stand_in_one_reply() -> None:
    """A refusal names unknown parameters, unknown members at any depth, and whatever else is wrong."""
    body = {"accessRights": [], "range": {"stert": ""}, "parts": [{"end": ""}], "free": {"any": 1}, "name": 5}
    assert await errors_of("POST", "/refuses?scope=a&limit=x", body) == {
        "scope": "Unknown parameter `scope`; did you mean `scopes`?",
        "limit": "should be a valid integer, unable to parse string as an integer",
        "accessRights": "Unknown member `accessRights`; did you mean `rights`?",
        "range.stert": "Unknown member `stert`; did you mean `start`?",
        "parts[0].end": "Unknown member `end`; known: `start`.",
        "name": "should be a valid string",
    }


async def test_other_letter_case_is_unknown() -> None:
    """A name in other letters is refused, with the right one."""
    assert await errors_of("POST", "/refuses?Scopes=a", {"Name": "x"}) == {
        "Scopes": "Unknown parameter `Scopes`; did you mean `scopes`?",
        "Name": "Unknown member `Name`; did you mean `name`?",
        "name": "is required",
    }


async def test_operation_without_parameters_says_so() -> None:
    """An operation that takes nothing refuses everything."""
    assert await errors_of("POST", "/nothing?=1&a", {"b": 1}) == {
        "": "Unknown parameter ``; no parameters are accepted.",
        "a": "Unknown parameter `a`; no parameters are accepted.",
        "b": "Unknown member `b`; no members are accepted.",
    }
    assert (await ask("POST", "/nothing")).status == 204
    assert (await ask("POST", "/nothing?", {})).status == 204


@pytest.mark.parametrize("query", ["limit=1&limit=1", "scopes=a&Scopes2=b", "token=a&token=b"])
async def test_parameter_given_twice_is_refused(query: str) -> None:
    """One parameter has one value, whichever of its names carries it."""
    [message] = (await errors_of("POST", f"/refuses?{query}", {"name": "x"})).values()
    assert message == "is given more than once"


async def test_member_given_under_both_of_its_names_is_refused() -> None:
    """A member has one value, too."""
    body = {"name": "x", "range": {"start": "a", "from": "b"}}
    assert await errors_of("POST", "/refuses", body) == {"range.from": "repeats `start`; send only one of them"}


async def test_declared_names_are_accepted() -> None:
    """Aliases, parameters that the operation reads itself, and those that begin with a declared prefix are known."""
    body = {"name": "x", "range": {"from": ""}}
    assert (await ask("POST", "/refuses?Scopes2=a&token=t&p.x=1&p.x=2", body)).status == 200


async def test_reported_names_follow_those_of_the_handler() -> None:
    """An operation that reports unknown names lists them in the header, after what its handler ignored."""
    reply = await ask("POST", "/reports?a%0d%0aSet-Cookie:x=1&%C3%A4=1&b,c=1&a", {"name": "x", "d": 1})
    assert (reply.status, reply.headers[IGNORED]) == (204, "limit, a%0D%0ASet-Cookie:x, %C3%A4, b%2Cc, a, d")


async def test_ignored_names_leave_no_trace() -> None:
    """An operation that ignores unknown names answers as if they were not there."""
    reply = await ask("POST", "/ignores?a=1", {"name": "x", "d": 1})
    assert (reply.status, reply.headers.get(IGNORED)) == (204, None)


@pytest.mark.parametrize(
    ("identifier", "sent", "failing"),
    [
        ("a", STORED, []),
        ("a", {"createdAt": "2026-01-05T09:00:00+01:00"}, []),
        ("a", {"createdAt": "2026-01-05T08:00:01Z"}, ["createdAt"]),
        ("a", {"createdAt": 5, "id": "b"}, ["createdAt", "id"]),
        ("a", {"approval": None, "columns": None}, ["approval"]),
        ("a", {"approval": {**STORED["approval"], "by": "bob"}}, ["approval"]),  # type: ignore[dict-item]
        ("b", {"id": "b", "approval": None}, []),
        ("b", {"createdAt": STORED["createdAt"]}, ["createdAt"]),
    ],
)
async def test_members_of_the_service_come_back_unchanged(
    identifier: str, sent: dict[str, Any], failing: list[str]
) -> None:
    """A member that the service sets is accepted with its current value, and refused by name with another one."""
    target, body = f"/things/{identifier}", {"name": "x", **sent}
    if failing:
        assert list(await errors_of("PUT", target, body)) == failing
    else:
        assert (await ask("PUT", target, body)).status == 204


async def test_many_unknown_members_get_a_short_reply() -> None:
    """A body of very many unknown members is refused without a message for each."""
    body = {"name": "x", **{f"m{number}": 0 for number in range(70_000)}}
    errors = await errors_of("POST", "/refuses", body)
    assert errors == {"body": f"has 70000 errors; at most {MAX_LISTED} are listed individually"}


def test_body_without_a_model_cannot_refuse() -> None:
    """An operation whose body no model describes must state that it ignores unknown names."""
    for body in (RawBody, Any, dict[str, Any]):
        with pytest.raises(TypeError, match="ignore"):
            GROUP.endpoint("POST", "data", body=body)


@given(st.lists(st.text(st.characters(), max_size=80), max_size=300))
def test_header_of_reported_names_is_one_short_line(names: list[str]) -> None:
    """Whatever callers send, the header holds visible ASCII and blanks and stays within its limit."""
    reply = Reply()
    report_unknown_names(reply, names)
    text = reply.headers.get(IGNORED, "")
    assert all(" " <= character <= "~" for character in text)
    assert len(text) <= MAX_REPORTED + len(", ...")
    assert bool(text) == bool(names)


@given(st.text(max_size=200), st.lists(st.text(max_size=30), max_size=10))
def test_nearest_name_is_a_known_one(wanted: str, known: list[str]) -> None:
    """A hint names something that exists."""
    found = find_nearest_name(wanted, known)
    assert found is None or found in known
