"""The one pass of every request."""

import dataclasses
import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from shared.auth.principals import ANONYMOUS, CredentialKind, Principal, unauthenticated
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, json_reply
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline
from shared.http.size_limits import MAX_HEADER_BYTES, MAX_TARGET
from shared.http.unknown_names import UnknownNames

GROUP = Group("test")
CALLER = Principal("ann", "ann", "Ann", frozenset({AccessRight.CATALOG_READ}), CredentialKind.JWT, "t", None)


class Window(BaseModel):
    """A query model."""

    limit: Annotated[int, Field(ge=1)] = 5
    since: str | None = None


class Thing(BaseModel):
    """A body model."""

    name: str
    parts: list[int] = []


@GROUP.endpoint("GET", "public", access=Access.PUBLIC, query=Window, unknown=UnknownNames.IGNORE)
async def public(call: Call[Window]) -> Reply:
    """Answer anybody."""
    return json_reply({"limit": call.query.limit, "caller": call.principal is ANONYMOUS})


@GROUP.endpoint("POST", "things/{name}", right=AccessRight.CATALOG_READ, body=Thing, query=Window, body_limit=100)
async def post_thing(call: Call[Window, Thing]) -> Reply:
    """Answer who may."""
    return json_reply({"path": call.path["name"], "body": call.body.name, "who": call.principal.identity}, 201)


@GROUP.endpoint("POST", "admin", right=AccessRight.KEYS_MANAGE, body=Thing)
async def admin(_: Call[Any, Thing]) -> Reply:
    """Answer nobody here."""
    raise AssertionError("the door let somebody pass without the right")


@GROUP.endpoint("POST", "sign", right=AccessRight.KEYS_MANAGE, requires_user=True)
async def sign(_: Call) -> Reply:
    """Record who acts."""
    return Reply(204)


@GROUP.endpoint("POST", "special", right=AccessRight.CATALOG_READ, feature="special", body_limit=1)
async def special(_: Call) -> Reply:
    """Need something that is not there."""
    raise AssertionError("the door let somebody pass without the feature")


@GROUP.endpoint("GET", "broken", access=Access.PUBLIC)
async def broken(_: Call) -> Reply:
    """Fail with something private in the message."""
    raise RuntimeError("password=hunter2")


@GROUP.endpoint("GET", "busy", access=Access.PUBLIC)
async def busy(_: Call) -> Reply:
    """Refuse for now."""
    raise WorkspaceError(Kind.UNAVAILABLE, "ENGINE_DOWN", "Not now.", retryAfter=7)


async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Take one token."""
    if authorization == "Bearer service":
        return dataclasses.replace(CALLER, identity=None)
    if authorization != "Bearer good" or CredentialKind.JWT not in accepted:
        raise unauthenticated("No.")
    return CALLER


async def require_feature(feature: str) -> None:
    """Have nothing."""
    raise WorkspaceError(Kind.UNAVAILABLE, "NOT_PROVISIONED", f"No {feature}.")


async def ask(method: str, target: str, body: bytes = b"", token: str = "good", **headers: str) -> tuple[Reply, Any]:
    """Return the reply to a request and its JSON."""
    path, _, query = target.partition("?")
    given = {"authorization": f"Bearer {token}", **{name.replace("_", "-"): text for name, text in headers.items()}}
    reply = await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(
        Request(method, path, query, given, body)
    )
    return reply, json.loads(reply.body) if reply.body else None


async def test_a_good_request_reaches_its_handler_with_models() -> None:
    """Path, query, body and caller arrive validated."""
    reply, value = await ask("POST", "/things/a%20b", b'{"name":"x"}')
    assert reply.status == 201
    assert value == {"path": "a b", "body": "x", "who": "ann"}


async def test_public_operations_take_no_credential() -> None:
    """A public operation does not even look at a bad token."""
    reply, value = await ask("GET", "/public?limit=7&whatever=1", token="bad")
    assert (reply.status, value) == (200, {"limit": 7, "caller": True})


@pytest.mark.parametrize(
    ("method", "target", "body", "token", "status", "code"),
    [
        ("GET", "/nowhere", b"", "bad", 404, "ROUTE_NOT_FOUND"),
        ("PUT", "/admin", b"", "bad", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/nowhere?" + "a" * MAX_TARGET, b"", "bad", 404, "ROUTE_NOT_FOUND"),
        ("POST", "/admin?" + "a" * MAX_TARGET, b"", "bad", 414, "URI_TOO_LONG"),
        ("POST", "/admin", b"", "b" * MAX_HEADER_BYTES, 431, "HEADERS_TOO_LARGE"),
        ("POST", "/admin", b"x" * 2_000_000, "bad", 401, "UNAUTHENTICATED"),
        ("POST", "/admin", b"x" * 2_000_000, "good", 403, "ACCESS_RIGHT_MISSING"),
        ("POST", "/sign", b"", "service", 401, "UNAUTHENTICATED"),
        ("POST", "/sign", b"", "good", 403, "ACCESS_RIGHT_MISSING"),
        ("POST", "/special", b"too long", "good", 503, "NOT_PROVISIONED"),
        ("POST", "/things/x?limit=0", b"x" * 101, "good", 413, "BODY_TOO_LARGE"),
        ("POST", "/things/x", b"{", "good", 400, "BODY_NOT_JSON"),
        ("POST", "/things/x", b"[]", "good", 400, "INVALID_REQUEST"),
    ],
)
async def test_checks_come_in_their_order(
    method: str, target: str, body: bytes, token: str, status: int, code: str
) -> None:
    """Route, authentication, identity, right, feature, size and validation are judged in this order."""
    reply, value = await ask(method, target, body, token)
    assert (reply.status, value["code"]) == (status, code)
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert value["status"] == status
    assert value["traceId"] == reply.headers["x-request-id"]


async def test_what_another_interface_asks_is_not_measured_again() -> None:
    """A known caller's request did not come over the wire as it stands, so wire sizes say nothing of it."""
    request = Request("GET", "/public", "limit=7&" + "a" * MAX_TARGET, {}, b"")
    pipeline = RequestPipeline(GROUP.operations, authenticate, require_feature)
    assert (await pipeline.serve(request)).status == 414
    assert (await pipeline.serve(request, CALLER)).status == 200


async def test_a_400_lists_every_failing_field() -> None:
    """Each failing field of query and body is named with its rule."""
    _, value = await ask("POST", "/things/x?limit=0", b'{"parts":[1,"x"]}')
    assert [error["field"] for error in value["errors"]] == ["limit", "name", "parts[1]"]
    assert all(error["message"] for error in value["errors"])


async def test_a_parameter_given_twice_is_refused() -> None:
    """Two values for one parameter are nobody's intention."""
    reply, value = await ask("GET", "/public?limit=1&limit=2")
    assert reply.status == 400
    assert value["errors"] == [{"field": "limit", "message": "is given more than once"}]


async def test_an_unexpected_failure_shows_nothing_of_itself() -> None:
    """A 500 carries no internal message."""
    reply, value = await ask("GET", "/broken")
    assert (reply.status, value["code"]) == (500, "INTERNAL_ERROR")
    assert b"hunter2" not in reply.body


async def test_headers_that_belong_to_a_status() -> None:
    """401 has WWW-Authenticate, 405 has Allow, 503 has Retry-After."""
    assert (await ask("POST", "/admin", token="bad"))[0].headers["WWW-Authenticate"] == "Bearer"
    assert (await ask("DELETE", "/public"))[0].headers["Allow"] == "GET, HEAD"
    assert (await ask("GET", "/busy"))[0].headers["Retry-After"] == "7"


@pytest.mark.parametrize("given", ["abc-1", "x" * 128, "!~"])
async def test_a_good_request_id_is_taken_over(given: str) -> None:
    """A caller's id of visible ASCII characters comes back."""
    assert (await ask("GET", "/public", x_request_id=given))[0].headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "ü", "a\r\nb"])
async def test_a_bad_request_id_is_replaced(given: str) -> None:
    """Anything else gets an id of the service's own."""
    made = (await ask("GET", "/public", x_request_id=given))[0].headers["x-request-id"]
    assert made != given
    assert len(made) == 32
