"""Tests of the request pipeline."""

import asyncio
import dataclasses
import gzip
import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from shared.auth.principals import ANONYMOUS, CredentialKind, Principal, build_unauthenticated_error
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.operations import Access, Call, Group, RawBody
from shared.http.pipeline import RequestPipeline
from shared.http.size_limits import MAX_DECODED_BODIES, MAX_HEADER_BYTES, MAX_TARGET
from shared.http.unknown_names import UnknownNames
from shared.http.versions import CURRENT

GROUP = Group("test")
CALLER = Principal("ann", "ann", "Ann", frozenset({AccessRight.CATALOG_READ}), CredentialKind.JWT, "t", None)


class Window(BaseModel):
    """Query model of the test's operations."""

    limit: Annotated[int, Field(ge=1)] = 5
    since: str | None = None


class Thing(BaseModel):
    """Body model of the test's operations."""

    name: str
    parts: list[int] = []


@GROUP.endpoint("GET", "public", access=Access.PUBLIC, query=Window, unknown=UnknownNames.IGNORE)
async def get_public(call: Call[Window]) -> Reply:
    """Reply to any caller."""
    return build_json_reply({"limit": call.query.limit, "caller": call.principal is ANONYMOUS})


@GROUP.endpoint("POST", "things/{name}", right=AccessRight.CATALOG_READ, body=Thing, query=Window, body_limit=100)
async def post_thing(call: Call[Window, Thing]) -> Reply:
    """Reply to callers who have the required right."""
    return build_json_reply({"path": call.path["name"], "body": call.body.name, "who": call.principal.identity}, 201)


@GROUP.endpoint("POST", "admin", right=AccessRight.KEYS_MANAGE, body=Thing)
async def require_administrator(_: Call[Any, Thing]) -> Reply:
    """Fail, because the pipeline must reject callers without the right."""
    raise AssertionError("the pipeline admitted a caller without the right")


@GROUP.endpoint("POST", "sign", right=AccessRight.KEYS_MANAGE, requires_user=True)
async def require_person(_: Call) -> Reply:
    """Reply to callers who are persons, not services."""
    return Reply(204)


@GROUP.endpoint("POST", "special", right=AccessRight.CATALOG_READ, feature="special", body_limit=1)
async def require_special_feature(_: Call) -> Reply:
    """Fail, because the pipeline must reject the missing feature."""
    raise AssertionError("the pipeline ignored the missing feature")


@GROUP.endpoint("GET", "broken", access=Access.PUBLIC)
async def raise_unexpected_error(_: Call) -> Reply:
    """Raise an unexpected error whose message contains a secret."""
    raise RuntimeError("password=hunter2")


@GROUP.endpoint("GET", "busy", access=Access.PUBLIC)
async def raise_unavailable(_: Call) -> Reply:
    """Raise UNAVAILABLE."""
    raise WorkspaceError(Kind.UNAVAILABLE, "ENGINE_DOWN", "Not now.", retryAfter=7)


async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Accept one token."""
    if authorization == "Bearer service":
        return dataclasses.replace(CALLER, identity=None)
    if authorization != "Bearer good" or CredentialKind.JWT not in accepted:
        raise build_unauthenticated_error("No.")
    return CALLER


async def require_feature(feature: str) -> None:
    """Reject each feature as not declared."""
    raise WorkspaceError(Kind.UNAVAILABLE, "NOT_PROVISIONED", f"No {feature}.")


async def send_request(
    method: str, target: str, body: bytes = b"", token: str = "good", **headers: str
) -> tuple[Reply, Any]:
    """Send a request; return the reply and its JSON."""
    path, _, query = target.partition("?")
    sent = {"authorization": f"Bearer {token}", **{name.replace("_", "-"): text for name, text in headers.items()}}
    reply = await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(
        Request(method, path, query, sent, body)
    )
    return reply, json.loads(reply.body) if reply.body else None


async def test_the_handler_receives_validated_models() -> None:
    """The handler gets the validated path, query and body, and the caller."""
    reply, value = await send_request("POST", "/things/a%20b", b'{"name":"x"}')
    assert reply.status == 201
    assert value == {"path": "a b", "body": "x", "who": "ann"}


async def test_a_public_operation_ignores_credentials() -> None:
    """A public operation ignores an invalid token."""
    reply, value = await send_request("GET", "/public?limit=7&whatever=1", token="bad")
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
        ("POST", "/things/%ff", b"", "bad", 401, "UNAUTHENTICATED"),
        ("POST", "/things/%ff", b"x" * 101, "good", 413, "BODY_TOO_LARGE"),
        ("POST", "/things/%ff", b"{", "good", 400, "INVALID_REQUEST"),
        ("POST", "/things/x", b"{", "good", 400, "BODY_NOT_JSON"),
        ("POST", "/things/x", b"[]", "good", 400, "INVALID_REQUEST"),
    ],
)
async def test_checks_run_in_the_documented_order(
    method: str, target: str, body: bytes, token: str, status: int, code: str
) -> None:
    """Checks run in the order route, authentication, identity, right, feature, size, validation."""
    reply, value = await send_request(method, target, body, token)
    assert (reply.status, value["code"]) == (status, code)
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert value["status"] == status
    assert value["traceId"] == reply.headers["x-request-id"]


async def test_a_chunked_body_that_the_host_dropped_is_an_error() -> None:
    """An operation with a body does not run if the body was sent in chunks and is missing; others ignore the header."""
    reply, value = await send_request("POST", "/things/x", transfer_encoding="chunked")
    assert (reply.status, value["code"]) == (411, "LENGTH_REQUIRED")
    reply, _ = await send_request("GET", "/public", transfer_encoding="chunked")
    assert reply.status == 200


@pytest.mark.parametrize(
    ("target", "token", "status", "code"),
    [
        ("/nowhere", "bad", 404, "ROUTE_NOT_FOUND"),
        ("/admin", "bad", 401, "UNAUTHENTICATED"),
        ("/admin", "good", 403, "ACCESS_RIGHT_MISSING"),
        ("/special", "good", 503, "NOT_PROVISIONED"),
        ("/things/%ff?limit=0", "good", 411, "LENGTH_REQUIRED"),
    ],
)
async def test_a_missing_chunked_body_is_reported_after_the_right(
    target: str, token: str, status: int, code: str
) -> None:
    """A chunked body that the host dropped is reported after credential, right and feature, before the validation."""
    reply, value = await send_request("POST", target, token=token, transfer_encoding="chunked")
    assert (reply.status, value["code"]) == (status, code)


@pytest.mark.parametrize(
    ("target", "body", "token", "status", "code"),
    [
        ("/nowhere", b"", "bad", 404, "ROUTE_NOT_FOUND"),
        ("/admin", b"", "bad", 401, "UNAUTHENTICATED"),
        ("/admin", b"", "good", 403, "ACCESS_RIGHT_MISSING"),
        ("/special", b"too long", "good", 503, "NOT_PROVISIONED"),
        ("/things/x", b"x" * 101, "good", 413, "BODY_TOO_LARGE"),
        ("/things/x", b"{", "good", 400, "VERSION_UNKNOWN"),
    ],
)
async def test_an_unknown_api_version_is_a_validation_error(
    target: str, body: bytes, token: str, status: int, code: str
) -> None:
    """An unknown API version is rejected by the validation, after all earlier checks; the reply states the version."""
    reply, value = await send_request("POST", target, body, token, oi_version="2020-01-01")
    assert (reply.status, value["code"]) == (status, code)
    assert reply.headers["Oi-Version"] == CURRENT


async def test_the_error_about_an_unknown_api_version_lists_all_invalid_fields() -> None:
    """The error about an unknown API version has an entry for the header, and for each other invalid field."""
    _, value = await send_request("POST", "/things/x?limit=0", b"{}", oi_version="2020-01-01")
    assert [error["field"] for error in value["errors"]] == ["Oi-Version", "limit", "name"]
    assert value["supported"] == [CURRENT]
    reply, value = await send_request("GET", "/public", token="bad", oi_version="2020-01-01")
    assert (reply.status, value["code"]) == (400, "VERSION_UNKNOWN")


async def test_a_nested_request_has_no_size_limits() -> None:
    """Size limits of URL and headers do not apply to nested requests of other interfaces."""
    request = Request("GET", "/public", "limit=7&" + "a" * MAX_TARGET, {}, b"")
    pipeline = RequestPipeline(GROUP.operations, authenticate, require_feature)
    assert (await pipeline.serve(request)).status == 414
    assert (await pipeline.serve(request, CALLER)).status == 200


async def test_decoded_bodies_of_one_principal_leave_memory_for_others() -> None:
    """A principal has a limited number of decoded bodies in memory; only its further ones wait, not those of others."""
    group, started, may_end = Group("encoded"), asyncio.Queue[str](), asyncio.Event()

    @group.endpoint("POST", "rows", right=AccessRight.CATALOG_READ, body=RawBody, content_encodings=("gzip",))
    async def receive_rows(call: Call[Any, RawBody]) -> Reply:
        started.put_nowait(f"{call.principal.member_id} {call.request.body.decode()}")
        await may_end.wait()
        return Reply(204)

    pipeline = RequestPipeline(group.operations, authenticate, require_feature)

    def send_rows(member: str, headers: dict[str, str], body: bytes) -> asyncio.Task[Reply]:
        caller = dataclasses.replace(CALLER, member_id=member)
        return asyncio.create_task(pipeline.serve(Request("POST", "/rows", "", headers, body), caller))

    def send_encoded_rows(member: str) -> asyncio.Task[Reply]:
        return send_rows(member, {"content-encoding": "gzip"}, gzip.compress(b"rows"))

    tasks = [send_encoded_rows("ann") for _ in range(MAX_DECODED_BODIES + 1)]
    assert [await started.get() for _ in range(MAX_DECODED_BODIES // 2)] == ["ann rows"] * (MAX_DECODED_BODIES // 2)
    tasks.append(send_encoded_rows("bob"))
    assert await started.get() == "bob rows"
    tasks.append(send_rows("ann", {}, b"plain"))
    assert await started.get() == "ann plain"
    for rejected in ("br", "gzip, gzip"):
        assert (await send_rows("ann", {"content-encoding": rejected}, b"rows")).status == 415
    may_end.set()
    assert {reply.status for reply in await asyncio.gather(*tasks)} == {204}


async def test_a_400_reply_lists_every_failing_field() -> None:
    """A 400 reply lists each invalid field of query and body with its rule."""
    _, value = await send_request("POST", "/things/x?limit=0", b'{"parts":[1,"x"]}')
    assert [error["field"] for error in value["errors"]] == ["limit", "name", "parts[1]"]
    assert all(error["message"] for error in value["errors"])


async def test_a_repeated_parameter_is_rejected() -> None:
    """A query parameter that occurs twice is rejected."""
    reply, value = await send_request("GET", "/public?limit=1&limit=2")
    assert reply.status == 400
    assert value["errors"] == [{"field": "limit", "message": "is repeated; send it once"}]


async def test_a_500_reply_has_no_error_details() -> None:
    """A 500 reply does not contain the message of the unexpected error."""
    reply, value = await send_request("GET", "/broken")
    assert (reply.status, value["code"]) == (500, "INTERNAL_ERROR")
    assert b"hunter2" not in reply.body


async def test_error_replies_have_the_required_headers() -> None:
    """A 401 reply has WWW-Authenticate, a 405 reply Allow, and a 503 reply Retry-After."""
    assert (await send_request("POST", "/admin", token="bad"))[0].headers["WWW-Authenticate"] == "Bearer"
    assert (await send_request("DELETE", "/public"))[0].headers["Allow"] == "GET, HEAD"
    assert (await send_request("GET", "/busy"))[0].headers["Retry-After"] == "7"


@pytest.mark.parametrize("request_id", ["abc-1", "x" * 128, "!~"])
async def test_a_valid_request_id_is_returned(request_id: str) -> None:
    """A request id of visible ASCII characters is returned in the reply."""
    assert (await send_request("GET", "/public", x_request_id=request_id))[0].headers["x-request-id"] == request_id


@pytest.mark.parametrize("request_id", ["", "x" * 129, "a b", "a\tb", "ü", "a\r\nb"])
async def test_an_invalid_request_id_is_replaced(request_id: str) -> None:
    """An invalid request id is replaced by a new request id."""
    generated = (await send_request("GET", "/public", x_request_id=request_id))[0].headers["x-request-id"]
    assert generated != request_id
    assert len(generated) == 32
