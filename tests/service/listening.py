"""Listeners of the live stream."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from tests.service.running import Service

WAIT_SECONDS = 30.0


def stream_url(service: Service, **query: str) -> str:
    """Return the address of the stream."""
    return f"{service.url.replace('http', 'ws', 1)}/oi-api/live-stream?{urlencode(query)}"


def token(service: Service, member: str, **query: str) -> str:
    """Return a token of a member."""
    client = service.anonymous(bearer=service.key(member))
    reply = client.get("/workspace/api/keys/jwt", params=query)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["Token"])


@asynccontextmanager
async def listening(
    url: str, bearer: str | None = None, subprotocols: Sequence[str] = ()
) -> AsyncIterator[ClientConnection]:
    """Listen at an address."""
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    offered = [Subprotocol(each) for each in subprotocols] or None
    async with connect(
        url, additional_headers=headers, subprotocols=offered, compression=None, proxy=None, max_queue=None
    ) as client:
        yield client


async def refusal(url: str, bearer: str | None = None, subprotocols: Sequence[str] = ()) -> httpx.Response:
    """Return the answer to a handshake that is refused."""
    try:
        async with listening(url, bearer, subprotocols):
            raise AssertionError("the handshake was not refused")
    except InvalidStatus as refused:
        answer = refused.response
        return httpx.Response(answer.status_code, headers=list(answer.headers.raw_items()), content=bytes(answer.body))


async def impulses(client: ClientConnection, count: int) -> list[dict[str, Any]]:
    """Return the next impulses."""
    async with asyncio.timeout(WAIT_SECONDS):
        return [json.loads(await client.recv()) for _ in range(count)]


async def nothing_until(client: ClientConnection, service: Service, connection: str) -> None:
    """Send a last message of a connection that the listener hears, and fail if anything comes before it."""
    async with httpx.AsyncClient(base_url=service.url, trust_env=False) as http:
        headers = {"Authorization": f"Bearer {token(service, 'editor@t')}"}
        reply = await http.post(f"/oi-api/telemetry/{connection}", json={"messageId": "the-last"}, headers=headers)
        assert reply.status_code == 202, reply.text
    [last] = await impulses(client, 1)
    assert last["ID"] == "the-last"
