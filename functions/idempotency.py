"""The Idempotency-Key header of requests that append."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import wraps
from typing import Any

from shared.errors import WorkspaceError
from shared.http.messages import Reply
from shared.http.operations import Call
from shared.idempotency.replies import MAYBE_DONE
from shared.wiring import services

HEADER = "idempotency-key"
_CONDITIONS = ("if-match", "if-none-match")


@asynccontextmanager
async def appended_once(call: Call[Any, Any]) -> AsyncIterator[str]:
    """Give the append id that the caller's Idempotency-Key stands for, empty without one.

    For requests whose whole effect is one record of a chain: the record itself is the answer that is given again. A
    request that is refused leaves its key free.

    Raises:
        WorkspaceError: INVALID or UNPROCESSABLE, see :class:`shared.idempotency.keys.IdempotencyKeys`.
    """
    key = call.request.headers.get(HEADER)
    if key is None:
        yield ""
        return
    member, method = call.principal.member_id, call.request.method
    append_id = await services().idempotency.append_id(member, method, key, _request(call))
    try:
        yield append_id
    except WorkspaceError as error:
        if error.kind not in MAYBE_DONE:
            with suppress(WorkspaceError):
                await services().idempotency.forget(member, method, key, append_id)
        raise


def answered_once[Q, B](
    handler: Callable[[Call[Q, B]], Awaitable[Reply]],
) -> Callable[[Call[Q, B]], Awaitable[Reply]]:
    """Make a handler answer a repeat under the same Idempotency-Key with its first reply, for 24 hours.

    For requests that do more than append one record; stands below ``@GROUP.endpoint``. The handler finds an id in
    ``call.append_id`` that stays the same when a process ended in the middle and the work is done again.
    """

    @wraps(handler)
    async def once(call: Call[Q, B]) -> Reply:
        key = call.request.headers.get(HEADER)
        if key is None:
            return await handler(call)

        async def work(same: str) -> bytes:
            return _packed(await handler(replace(call, append_id=same)))

        member = call.principal.member_id
        # With the rights: a narrower token of the same member must not receive what a wider one was answered.
        request = b"\n".join((_request(call), ",".join(sorted(call.principal.rights)).encode()))
        packed = await services().answers.once(member, call.request.method, key, request, work)
        return _unpacked(packed)

    return once


def _request(call: Call[Any, Any]) -> bytes:
    """Return everything that makes a request what it is: which state it asks for, too."""
    request = call.request
    conditions = [f"{name}: {request.headers[name]}" for name in _CONDITIONS if name in request.headers]
    return b"\n".join((request.path.encode(), request.query.encode(), request.body, *map(str.encode, conditions)))


def _packed(reply: Reply) -> bytes:
    body = base64.b64encode(reply.body).decode()
    return json.dumps({"status": reply.status, "headers": reply.headers, "body": body}).encode()


def _unpacked(packed: bytes) -> Reply:
    kept = json.loads(packed)
    return Reply(kept["status"], base64.b64decode(kept["body"]), kept["headers"])
