"""Tests of how each operation treats unknown parameters and unknown body fields."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from functions import GROUPS
from functions.live_stream import _ADMISSION
from shared.auth.principals import CredentialKind, Principal
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Call, Operation, RawBody
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import IGNORED, UnknownNames
from shared.openapi.paths import build_operation_object
from shared.openapi.schemas import SchemaRegistry

OPERATIONS = [*(one for group in GROUPS for one in group.operations), *_ADMISSION.operations]
NAMES = ["zzParameter", "zzMember"]


def parametrize_operations(policy: UnknownNames) -> pytest.MarkDecorator:
    """Parametrize a test with the operations that have the given policy."""
    selected = [one for one in OPERATIONS if one.unknown is policy]
    return pytest.mark.parametrize("operation", selected, ids=[f"{one.method} /{one.route}" for one in selected])


async def send_unknown_names(operation: Operation) -> Reply:
    """Send an unknown parameter and, if the operation has a body, an unknown field; return the reply."""

    async def handle_request(_: Call[Any, Any]) -> Reply:
        return Reply(204)

    async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        raise AssertionError(authorization, accepted)

    async def require_feature(feature: str) -> None:
        assert feature

    public = replace(
        operation,
        access=Access.PUBLIC,
        right=None,
        further_rights=(),
        requires_user=False,
        handler=handle_request,
        check=None,
        check_sender=None,
    )
    path = re.sub(r"\{\*?[^{}]+\}", "x1", operation.route)
    body = json.dumps({NAMES[1]: 1}).encode() if operation.takes_body else b""
    request = Request(operation.method, f"/{path}", f"{NAMES[0]}=1", {"content-type": "application/json"}, body)
    return await RequestPipeline([public], authenticate, require_feature).serve(request)


def build_unknown_names(operation: Operation) -> list[str]:
    """Return the names that :func:`send_unknown_names` sends and the request pipeline checks.

    The pipeline does not check the fields of a raw body. Its handler does, which the tests of workspace documents
    cover.
    """
    return NAMES if operation.takes_body and operation.body is not RawBody else NAMES[:1]


@parametrize_operations(UnknownNames.REJECT)
async def test_rejecting_operations_list_unknown_names(operation: Operation) -> None:
    """An operation that rejects unknown names returns 400 and lists each of them."""
    reply = await send_unknown_names(operation)
    assert reply.status == 400
    messages = {error["field"]: error["message"] for error in json.loads(reply.body)["errors"]}
    assert [
        name for name in build_unknown_names(operation) if messages.get(name, "").startswith("Unknown ")
    ] == build_unknown_names(operation)


@parametrize_operations(UnknownNames.REPORT)
async def test_reporting_operations_list_ignored_names(operation: Operation) -> None:
    """An operation that reports unknown names executes the request and lists each of them in a header."""
    reply = await send_unknown_names(operation)
    assert (reply.status, reply.headers[IGNORED]) == (204, ", ".join(build_unknown_names(operation)))


@parametrize_operations(UnknownNames.IGNORE)
async def test_ignoring_operations_do_not_mention_unknown_names(operation: Operation) -> None:
    """An operation that ignores unknown names executes the request, and no header lists the names."""
    reply = await send_unknown_names(operation)
    assert IGNORED not in reply.headers
    if reply.status != 204:
        assert not [name for name in NAMES if name in reply.body.decode()]


def iterate_objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield each object schema with named properties inside a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
            yield schema
        for each in schema.values():
            yield from iterate_objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from iterate_objects(each)


@parametrize_operations(UnknownNames.REJECT)
def test_openapi_describes_rejecting_operations(operation: Operation) -> None:
    """If an operation rejects unknown names, the OpenAPI document forbids further properties and lists a 400 reply."""
    schemas = SchemaRegistry()
    body_only = replace(operation, docs=replace(operation.docs, replies=()))
    described = build_operation_object(body_only, schemas)
    assert "400" in described["responses"]
    if "requestBody" in described and operation.body is not RawBody:
        found = list(iterate_objects(schemas.named))
        assert found
        assert all(one["additionalProperties"] is False for one in found)


@pytest.mark.parametrize(
    "start", ["workspace/api/keys", "oi-api/warm-queries", "oi-api/downloads", "oi-api/live-stream"]
)
def test_security_and_data_operations_reject_unknown_names(start: str) -> None:
    """An operation rejects unknown names if ignoring one could extend access or change wrong data."""
    found = [one for one in OPERATIONS if one.route.startswith(start) and not one.route.endswith("/events")]
    assert found
    assert {one.unknown for one in found} == {UnknownNames.REJECT}
