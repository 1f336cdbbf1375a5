"""The rule for unknown names, for each operation of the service."""

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
from shared.http.operations import Access, Call, Operation
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import IGNORED, UnknownNames
from shared.openapi.paths import build_operation
from shared.openapi.schemas import SchemaRegistry

OPERATIONS = [*(one for group in GROUPS for one in group.operations), *_ADMISSION.operations]
NAMES = ["zzParameter", "zzMember"]


def operations(policy: UnknownNames) -> pytest.MarkDecorator:
    """Parametrize a test with the operations of a policy."""
    chosen = [one for one in OPERATIONS if one.unknown is policy]
    return pytest.mark.parametrize("operation", chosen, ids=[f"{one.method} /{one.route}" for one in chosen])


async def answered(operation: Operation) -> Reply:
    """Return the reply to an unknown parameter and, where a body is read, an unknown member; nothing is carried out."""

    async def handler(_: Call[Any, Any]) -> Reply:
        return Reply(204)

    async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        raise AssertionError(authorization, accepted)

    async def require_feature(feature: str) -> None:
        assert feature

    open_to_all = replace(
        operation, access=Access.PUBLIC, right=None, identity=False, handler=handler, check=None, sender=None
    )
    path = re.sub(r"\{\*?[^{}]+\}", "x1", operation.route)
    body = json.dumps({NAMES[1]: 1}).encode() if operation.takes_body else b""
    request = Request(operation.method, f"/{path}", f"{NAMES[0]}=1", {"content-type": "application/json"}, body)
    return await RequestPipeline([open_to_all], authenticate, require_feature).serve(request)


def sent_to(operation: Operation) -> list[str]:
    """Return the unknown names that :func:`answered` sends."""
    return NAMES if operation.takes_body else NAMES[:1]


@operations(UnknownNames.REFUSE)
async def test_refusing_operations_name_what_they_do_not_know(operation: Operation) -> None:
    """An operation that refuses unknown names answers 400 and lists each of them."""
    reply = await answered(operation)
    assert reply.status == 400
    messages = {error["field"]: error["message"] for error in json.loads(reply.body)["errors"]}
    assert [name for name in sent_to(operation) if messages.get(name, "").startswith("Unknown ")] == sent_to(operation)


@operations(UnknownNames.REPORT)
async def test_reporting_operations_name_what_they_ignored(operation: Operation) -> None:
    """An operation that reports unknown names carries out the request and lists each of them in the header."""
    reply = await answered(operation)
    assert (reply.status, reply.headers[IGNORED]) == (204, ", ".join(sent_to(operation)))


@operations(UnknownNames.IGNORE)
async def test_ignoring_operations_do_not_mind(operation: Operation) -> None:
    """An operation that ignores unknown names finds no fault with them."""
    reply = await answered(operation)
    assert IGNORED not in reply.headers
    if reply.status != 204:
        assert not [name for name in NAMES if name in reply.body.decode()]


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas of objects with named members."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
            yield schema
        for each in schema.values():
            yield from objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from objects(each)


@operations(UnknownNames.REFUSE)
def test_description_of_refusing_operations_agrees(operation: Operation) -> None:
    """The OpenAPI document allows no other members in their bodies, at any depth, and announces the 400."""
    schemas = SchemaRegistry()
    body_only = replace(operation, docs=replace(operation.docs, answers=()))
    made = build_operation(body_only, schemas)
    assert "400" in made["responses"]
    if "requestBody" in made:
        found = list(objects(schemas.named))
        assert found
        assert all(one["additionalProperties"] is False for one in found)


@pytest.mark.parametrize(
    "start", ["workspace/api/keys", "oi-api/warm-queries", "oi-api/downloads", "oi-api/live-stream"]
)
def test_operations_about_authority_and_data_refuse(start: str) -> None:
    """Where an ignored name would widen authority or change the data, no operation ignores one."""
    found = [one for one in OPERATIONS if one.route.startswith(start) and not one.route.endswith("/events")]
    assert found
    assert {one.unknown for one in found} == {UnknownNames.REFUSE}
