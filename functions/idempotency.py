"""The Idempotency-Key header: requests that are executed once and replies that are stored for retries."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import wraps
from typing import Any

from shared.errors import WorkspaceError
from shared.http.messages import Reply
from shared.http.operations import Call
from shared.idempotency.keys import hash_key
from shared.idempotency.replies import MAYBE_DONE
from shared.wiring import services

HEADER = "idempotency-key"
_CONDITIONS = ("if-match", "if-none-match")


@asynccontextmanager
async def reserve_append_id(call: Call[Any, Any]) -> AsyncIterator[str]:
    """Context manager: yield the append id of the request's Idempotency-Key; empty if the request has no key.

    An append id prevents a second append of the same audit record.

    This is for requests that only append one record to an audit chain: a retry gets the same append id and finds the
    record by this id. If the first request with a key is rejected before a retry begins, the caller may use the key
    again. A rejected retry does not release the key, because another request with it has possibly stored the record, or
    will store it.

    Raises:
        WorkspaceError: INVALID or UNPROCESSABLE if the key is rejected, see
            :class:`shared.idempotency.keys.IdempotencyKeys`.
    """
    key = call.request.headers.get(HEADER)
    if key is None:
        yield ""
        return
    member, method = call.principal.member_id, call.request.method
    reserved = await services().idempotency.keys.claim_append_id(
        member, method, key, _serialise_request_for_retry_check(call)
    )
    try:
        yield reserved.append_id
    except WorkspaceError as error:
        if reserved.is_first and error.kind not in MAYBE_DONE:
            with suppress(WorkspaceError):
                await services().idempotency.keys.release_key(member, method, key, reserved.append_id)
        raise


@asynccontextmanager
async def reject_reused_idempotency_key(call: Call[Any, Any]) -> AsyncIterator[None]:
    """Context manager: reject the request if its Idempotency-Key was used for another request.

    This is for requests that change nothing, so a retry with the same key is simply executed again. If the request is
    rejected, the caller may use the key again.

    Raises:
        WorkspaceError: as :func:`reserve_append_id`.
    """
    async with reserve_append_id(call):
        yield


def make_idempotent[Q, B](
    handler: Callable[[Call[Q, B]], Awaitable[Reply]],
) -> Callable[[Call[Q, B]], Awaitable[Reply]]:
    """Decorate a handler: for 24 hours, a retry with the same Idempotency-Key gets the reply to the first request.

    Use this decorator below ``@GROUP.endpoint``, for requests that do more than append one record. A handler that
    appends a record must pass ``call.append_id``, which is the same in every attempt, so that a retry after a crash
    appends no second record.
    """

    @wraps(handler)
    async def run_once(call: Call[Q, B]) -> Reply:
        return await call_handler_once_per_idempotency_key(call, handler)

    return run_once


async def call_handler_once_per_idempotency_key[Q, B](
    call: Call[Q, B], handler: Callable[[Call[Q, B]], Awaitable[Reply]], caller_details: Sequence[str] = ()
) -> Reply:
    """Call a handler; for 24 hours, a retry with the same Idempotency-Key gets the stored reply instead.

    Args:
        call: validated request; without an Idempotency-Key, the handler is always called.
        handler: handles the request; it receives the call with its append id.
        caller_details: texts about the caller that must be equal in a retry, in addition to the member and its rights.

    Raises:
        WorkspaceError: the same errors as :func:`run_once_per_idempotency_key`.
    """
    if HEADER not in call.request.headers:
        return await handler(call)

    async def call_handler(append_id: str) -> bytes:
        return _encode_reply(await handler(replace(call, append_id=append_id)))

    return _decode_reply(await run_once_per_idempotency_key(call, call_handler, caller_details))


async def run_once_per_idempotency_key(
    call: Call[Any, Any], handle_request: Callable[[str], Awaitable[bytes]], caller_details: Sequence[str] = ()
) -> bytes:
    """Handle a request and return the result; for 24 hours, a retry with the same Idempotency-Key gets the same result.

    Args:
        call: validated request.
        handle_request: does the work and returns its encoded result. Its argument is the append id, which prevents a
            second append of the same audit record; the argument is empty if the request has no Idempotency-Key.
        caller_details: texts about the caller that must be equal in a retry, in addition to the member and its rights.

    Raises:
        WorkspaceError: the same errors as :meth:`shared.idempotency.replies.IdempotentReplies.run_once_and_get_reply`.
    """
    key = call.request.headers.get(HEADER)
    if key is None:
        return await handle_request("")
    member = call.principal.member_id
    # The rights are part of the caller's id: a token with fewer rights must not get the reply to a token with more.
    caller = map(str.encode, (",".join(sorted(call.principal.rights)), *caller_details))
    request = b"\n".join((_serialise_request_for_retry_check(call), *caller))
    return await services().idempotency.replies.run_once_and_get_reply(
        member, call.request.method, key, request, handle_request
    )


def hash_idempotency_key(call: Call[Any, Any]) -> str:
    """Return a hash of the request's Idempotency-Key and caller; empty if the request has no key. Nothing is stored.

    Raises:
        WorkspaceError: INVALID with the field ``Idempotency-Key`` if the key is too long or has invalid characters.
    """
    key = call.request.headers.get(HEADER)
    return "" if key is None else hash_key(call.principal.member_id, call.request.method, key)


async def derive_secret_seed(call: Call[Any, Any]) -> bytes:
    """Return 32 secret bytes that are the same in every attempt of a request; empty without an Idempotency-Key.

    Use this only in a handler with the decorator :func:`make_idempotent`, to create a new secret. Two attempts of a
    request can overlap, and the caller gets the reply of one of them, so both must create the same secret.
    """
    key = call.request.headers.get(HEADER)
    if key is None:
        return b""
    return await services().idempotency.replies.derive_secret_seed(call.principal.member_id, key, call.append_id)


def _serialise_request_for_retry_check(call: Call[Any, Any]) -> bytes:
    """Return the bytes that must be equal in a retry of a request: path, query, body and conditional headers."""
    request = call.request
    conditions = [f"{name}: {request.headers[name]}" for name in _CONDITIONS if name in request.headers]
    return b"\n".join((request.path.encode(), request.query.encode(), request.body, *map(str.encode, conditions)))


def _encode_reply(reply: Reply) -> bytes:
    body = base64.b64encode(reply.body).decode()
    return json.dumps({"status": reply.status, "headers": reply.headers, "body": body}).encode()


def _decode_reply(encoded: bytes) -> Reply:
    stored = json.loads(encoded)
    return Reply(stored["status"], base64.b64decode(stored["body"]), stored["headers"])
