"""Client of the live stream for tests."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx
import jwt
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from tests.service.local_service import Service

WAIT_SECONDS = 30.0


def build_stream_url(service: Service, **query: str) -> str:
    """Return the WebSocket URL of the live stream."""
    return f"{service.url.replace('http', 'ws', 1)}/oi-api/live-stream?{urlencode(query)}"


def request_token(service: Service, member: str, **query: str) -> str:
    """Return a token that the service issues to a member."""
    client = service.create_anonymous_client(bearer=service.read_api_key(member))
    reply = client.get("/workspace/api/keys/jwt", params=query)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["Token"])


def sign_short_lived_token(service: Service, member: str, seconds: float) -> str:
    """Return a token that expires sooner than the service allows, signed with the key of the service."""
    issued = request_token(service, member)
    claims = jwt.decode(issued, options={"verify_signature": False})
    key = (service.data_dir / "signing-key.pem").read_text()
    return jwt.encode(
        claims | {"exp": time.time() + seconds}, key, algorithm="ES256", headers=jwt.get_unverified_header(issued)
    )


def decode_token_id(bearer: str) -> str:
    """Return the id of a token."""
    return str(jwt.decode(bearer, options={"verify_signature": False})["jti"])


@asynccontextmanager
async def connect_stream(
    url: str, bearer: str | None = None, subprotocols: Sequence[str] = ()
) -> AsyncIterator[ClientConnection]:
    """Connect to the live stream with a WebSocket handshake."""
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    offered = [Subprotocol(each) for each in subprotocols] or None
    async with connect(
        url, additional_headers=headers, subprotocols=offered, compression=None, proxy=None, max_queue=None
    ) as client:
        yield client


async def read_rejection(url: str, bearer: str | None = None, subprotocols: Sequence[str] = ()) -> httpx.Response:
    """Return the HTTP reply to a rejected handshake."""
    try:
        async with connect_stream(url, bearer, subprotocols):
            raise AssertionError("the service accepted the handshake instead of rejecting it")
    except InvalidStatus as refused:
        answer = refused.response
        return httpx.Response(answer.status_code, headers=list(answer.headers.raw_items()), content=bytes(answer.body))


async def receive_impulses(client: ClientConnection, count: int) -> list[dict[str, Any]]:
    """Receive the given number of impulses (telemetry messages) and return them."""
    async with asyncio.timeout(WAIT_SECONDS):
        return [json.loads(await client.recv()) for _ in range(count)]
