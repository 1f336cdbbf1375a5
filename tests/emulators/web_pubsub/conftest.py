"""Fixtures: a running Web PubSub emulator, and official clients of two hubs."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient
from websockets.asyncio.client import ClientConnection, connect

from emulators.web_pubsub.settings import SYSTEM_EVENTS, AnyEvent, HubSettings, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from tests.emulators.web_pubsub.serving import JSON, KEY, Connect, Handler, Running, run_emulator
from tests.plain_http import NO_TLS


@pytest.fixture
async def running_emulator() -> AsyncIterator[Running]:
    """Run an emulator whose hub ``live`` has an event handler; other hubs have none."""
    handler = Handler()
    told = HubSettings(
        upstream=AsgiUpstream(handler, "/events/{event}"),
        system_events=SYSTEM_EVENTS,
        user_events=AnyEvent(),
        anonymous=True,
    )
    async with run_emulator(ServiceSettings(KEY, hubs={"live": told}), handler) as running:
        yield running


@pytest.fixture
async def plain_hub_client(running_emulator: Running) -> AsyncIterator[WebPubSubServiceClient]:
    """Return the official service client of the hub ``plain``, which has no event handler."""
    async with WebPubSubServiceClient(running_emulator.url, "plain", AzureKeyCredential(KEY)) as client:
        yield client


@pytest.fixture
async def live_hub_client(running_emulator: Running) -> AsyncIterator[WebPubSubServiceClient]:
    """Return the official service client of the hub ``live``, which has an event handler."""
    async with WebPubSubServiceClient(running_emulator.url, "live", AzureKeyCredential(KEY)) as client:
        yield client


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """Return an HTTP client without proxies."""
    async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
        yield client


@pytest.fixture
async def connect_to_plain_hub(plain_hub_client: WebPubSubServiceClient) -> AsyncIterator[Connect]:
    """Connect ``websockets`` clients to hub ``plain`` with tokens from the official client."""
    async with AsyncExitStack() as stack:

        async def connect_client(*groups: str, json_client: bool = False, **claims: Any) -> ClientConnection:
            token = await plain_hub_client.get_client_access_token(groups=list(groups), **claims)
            protocols = [JSON] if json_client else None
            client = await stack.enter_async_context(connect(token["url"], subprotocols=protocols))  # type: ignore[arg-type]
            if json_client:
                assert json.loads(await client.recv())["event"] == "connected"
            return client

        yield connect_client
