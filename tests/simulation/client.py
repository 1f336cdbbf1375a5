"""Simulated API client that repeats each request until its result is known, as the documentation recommends."""

from collections.abc import Mapping
from typing import Any, Final

from tests.simulation.world import ApiReply, ConnectionLostError, World

TRANSIENT: Final = frozenset({429, 503, 504})
"""Statuses after which the client repeats the request."""
_CONFLICT: Final = 409
_KEY_IN_USE: Final = "IDEMPOTENCY_KEY_IN_USE"
"""Code of the reply while an earlier attempt with the same key is in progress."""

_FOREVER: Final = 1_000


async def send_until_final(
    world: World,
    member: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    key: str = "",
    headers: Mapping[str, str] | None = None,
    attempts: int = 0,
) -> ApiReply | None:
    """Send a request repeatedly until a reply is final; return None if no attempt gets a final reply.

    Args:
        world: world of the client.
        member: member who sends the request.
        method: HTTP method.
        path: path with the query, without a leading slash.
        body: content, sent as JSON.
        key: idempotency key; empty for none.
        headers: further headers.
        attempts: number of attempts; 0 for a random number.
    """
    sent = {**(headers or {}), **({"idempotency-key": key} if key else {})}
    for _ in range(attempts or world.random.randint(1, 8)):
        try:
            reply = await world.send(member, method, path, body, sent)
        except ConnectionLostError:
            continue
        if reply.status not in TRANSIENT and (reply.status != _CONFLICT or reply.code != _KEY_IN_USE):
            return reply
        await world.sleep(world.random.random() * 2)
    return None


async def send_until_done(
    world: World, member: str, method: str, path: str, body: Any = None, *, key: str = ""
) -> ApiReply:
    """Send a request repeatedly until a reply is final; call this only after all faults have ended."""
    reply = await send_until_final(world, member, method, path, body, key=key, attempts=_FOREVER)
    world.require(reply is not None, f"{method} {path} gets no final reply after the last fault")
    assert reply is not None
    return reply
