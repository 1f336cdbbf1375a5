"""The Idempotency-Key header of requests that append."""

from typing import Any

from shared.http.operations import Call
from shared.wiring import services

HEADER = "idempotency-key"


async def append_id(call: Call[Any, Any]) -> str:
    """Return the append id that the caller's Idempotency-Key stands for, empty without one.

    Raises:
        WorkspaceError: INVALID or UNPROCESSABLE, see :class:`shared.idempotency.IdempotencyKeys`.
    """
    key = call.request.headers.get(HEADER)
    if key is None:
        return ""
    request = call.request
    content = b"\n".join((request.path.encode(), request.query.encode(), request.body))
    return await services().idempotency.append_id(call.principal.member_id, request.method, key, content)
