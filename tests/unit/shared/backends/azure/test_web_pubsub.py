"""Tests of the Web PubSub adapter with the real SDK and a fake server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import web

from shared.backends.azure.web_pubsub import WebPubSub
from shared.errors import Kind, WorkspaceError
from shared.live_stream.ports import OpenStream
from shared.runtime import Runtime
from shared.timestamps import now
from tests.key_vault import Tokens

KEY = "an access key for tests alone, 40 bytes."


class FakeWebPubSub:
    """Fake Web PubSub that sends a prepared reply to each call and records the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes, str]] = []
        self.tokens: list[str] = []
        self.status = 202
        self.pages: list[dict[str, object]] = []

    async def reply_to_call(self, request: web.Request) -> web.StreamResponse:
        """Record a call and send the prepared reply."""
        token = request.headers["Authorization"].removeprefix("Bearer ")
        self.tokens.append(token)
        audience = jwt.decode(token, KEY, algorithms=["HS256"], options={"verify_aud": False})["aud"]
        assert audience == f"http://{request.host}{request.raw_path}"
        self.asked.append((request.method, request.path, await request.read(), request.headers.get("Content-Type", "")))
        if self.pages:
            return web.json_response(self.pages.pop(0))
        return web.Response(status=self.status)


@pytest.fixture
def fake_web_pubsub() -> FakeWebPubSub:
    """Return a running fake Web PubSub."""
    return FakeWebPubSub()


@pytest.fixture
def wall_clock() -> list[datetime]:
    """Return a list with the current time of the adapter's wall clock, which a test can change."""
    return [now()]


class IdentityWebPubSub(WebPubSub):
    """Adapter that requests the tokens of its links from Web PubSub, as it does with the app's identity.

    Its requests are signed with the access key, because the SDK sends no token of an identity without TLS.
    """

    def _create_credential_and_key_policy(self) -> tuple[Any, Any]:
        return Tokens(), super()._create_credential_and_key_policy()[1]


@pytest.fixture
async def endpoint(fake_web_pubsub: FakeWebPubSub) -> AsyncIterator[str]:
    """Return the URL of the fake server."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake_web_pubsub.reply_to_call)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def service(endpoint: str, wall_clock: list[datetime]) -> AsyncIterator[WebPubSub]:
    """Return the adapter, connected to the fake server."""
    runtime = Runtime(now=lambda: wall_clock[0], monotonic=lambda: 0.0)
    adapter = WebPubSub(endpoint, "live", KEY, runtime=runtime)
    yield adapter
    await adapter.close()


@pytest.fixture
async def identity_service(endpoint: str) -> AsyncIterator[WebPubSub]:
    """Return the adapter without access key, connected to the fake server."""
    adapter = IdentityWebPubSub(endpoint, "live", KEY)
    yield adapter
    await adapter.close()


async def test_a_message_is_published_unchanged(service: WebPubSub, fake_web_pubsub: FakeWebPubSub) -> None:
    """A message is sent to its group as unchanged text."""
    text = json.dumps({"text": "Kühlkreis €"}, ensure_ascii=False).encode()
    await service.publish("pump-rig", text)
    await service.publish("pump-rig", text)
    [asked, again] = fake_web_pubsub.asked
    assert asked == again == ("POST", "/api/hubs/live/groups/pump-rig/:send", text, "text/plain")


@pytest.mark.parametrize(("seconds", "tokens"), [(29, 1), (31, 2), (86_400, 2), (-5, 2)])
async def test_a_signed_token_is_reused_by_the_wall_clock(
    service: WebPubSub, fake_web_pubsub: FakeWebPubSub, wall_clock: list[datetime], seconds: int, tokens: int
) -> None:
    """A signed token is reused for 30 seconds of the wall clock, also if the computer slept meanwhile."""
    await service.publish("pump-rig", b"{}")
    wall_clock[0] += timedelta(seconds=seconds)
    await service.publish("pump-rig", b"{}")
    assert len(set(fake_web_pubsub.tokens)) == tokens


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, "unavailable"),
        (429, "unavailable"),
        (500, "unavailable"),
        (503, "unavailable"),
        (413, "invalid"),
        (401, "invalid"),
    ],
)
async def test_rejections_of_web_pubsub_are_converted(
    service: WebPubSub, fake_web_pubsub: FakeWebPubSub, status: int, kind: str
) -> None:
    """Temporary and permanent rejections raise different errors, and the adapter does not repeat the request."""
    fake_web_pubsub.status = status
    with pytest.raises(WorkspaceError) as refused:
        await service.publish("a", b"{}")
    assert refused.value.kind is Kind(kind)
    assert KEY not in str(refused.value)
    assert len(fake_web_pubsub.asked) == 1


async def test_an_unavailable_service_is_reported() -> None:
    """An unreachable service and a service that is not configured are reported as unavailable."""
    for endpoint in ("http://127.0.0.1:9", ""):
        adapter = WebPubSub(endpoint, "live", KEY)
        with pytest.raises(WorkspaceError) as refused:
            await adapter.publish("a", b"{}")
        assert (refused.value.kind, refused.value.code) == (Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE")
        await adapter.close()


async def test_a_group_with_a_stream_exists(service: WebPubSub, fake_web_pubsub: FakeWebPubSub) -> None:
    """A group of streams exists while it has at least one connection."""
    fake_web_pubsub.status = 200
    assert await service.has_streams("a")
    fake_web_pubsub.status = 404
    assert not await service.has_streams("a")
    assert fake_web_pubsub.asked[0][:2] == ("HEAD", "/api/hubs/live/groups/a")


async def test_a_message_to_one_stream_reaches_only_this_stream(
    service: WebPubSub, fake_web_pubsub: FakeWebPubSub
) -> None:
    """A message to one stream reaches only this stream; a message to a closed stream is ignored."""
    await service.send("c", "€".encode())
    fake_web_pubsub.status = 200
    assert await service.is_open("c")
    fake_web_pubsub.status = 404
    await service.send("c", b"{}")
    assert not await service.is_open("c")
    assert fake_web_pubsub.asked[0] == ("POST", "/api/hubs/live/connections/c/:send", "€".encode(), "text/plain")
    assert fake_web_pubsub.asked[1][:2] == ("HEAD", "/api/hubs/live/connections/c")


async def test_streams_of_all_pages_are_listed(service: WebPubSub, fake_web_pubsub: FakeWebPubSub) -> None:
    """The streams of a group are listed from all pages."""
    first: dict[str, object] = {"value": [{"connectionId": "1", "userId": "u"}, {"connectionId": "2"}]}
    fake_web_pubsub.pages = [first]
    assert [reader async for reader in service.iterate_streams("_streams")] == [
        OpenStream("1", "u"),
        OpenStream("2", ""),
    ]


async def test_closing_a_closed_stream_succeeds(service: WebPubSub, fake_web_pubsub: FakeWebPubSub) -> None:
    """Closing a closed stream succeeds."""
    fake_web_pubsub.status = 404
    await service.disconnect("c", "why")
    assert fake_web_pubsub.asked[0][:2] == ("DELETE", "/api/hubs/live/connections/c")


@pytest.mark.parametrize("reason", ["member's gone", "läuft ab: 期限切れ 🔒", "a+b & c=d; 100% (x)*~!,"])
async def test_a_stream_is_closed_with_any_reason(
    service: WebPubSub, fake_web_pubsub: FakeWebPubSub, reason: str
) -> None:
    """A stream can be closed with any characters in the reason; the signature covers the encoded URL."""
    fake_web_pubsub.status = 204
    await service.disconnect("c", reason)
    assert len(fake_web_pubsub.asked) == 1


async def test_a_link_is_a_websocket_url_with_user_and_expiry(service: WebPubSub) -> None:
    """The link to a stream is a WebSocket URL with user and expiry, without the access key."""
    url = await service.create_stream_url("1.2.m", now() + timedelta(minutes=30))
    parts = urlsplit(url)
    [token] = parse_qs(parts.query)["access_token"]
    claims = jwt.decode(token, KEY, algorithms=["HS256"], options={"verify_aud": False})
    assert (parts.scheme, parts.path, claims["sub"]) == ("ws", "/client/hubs/live", "1.2.m")
    assert claims["exp"] - claims["iat"] == 30 * 60
    assert KEY not in url


async def test_a_link_contains_the_token_of_web_pubsub(
    identity_service: WebPubSub, fake_web_pubsub: FakeWebPubSub
) -> None:
    """Without an access key, the link to a stream contains a token that Web PubSub created."""
    fake_web_pubsub.pages = [{"token": "made-by-the-service"}]
    url = await identity_service.create_stream_url("1.2.m", now() + timedelta(minutes=30))
    assert parse_qs(urlsplit(url).query)["access_token"] == ["made-by-the-service"]
    assert fake_web_pubsub.asked[0][:2] == ("POST", "/api/hubs/live/:generateToken")


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_rejected_calls_without_a_message_count_as_unavailable(
    service: WebPubSub, identity_service: WebPubSub, fake_web_pubsub: FakeWebPubSub, status: int
) -> None:
    """If the app has no access, or the endpoint is another service, links and lists of streams are unavailable."""
    fake_web_pubsub.status = status
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: anext(aiter(service.iterate_streams("a"))),
        lambda: identity_service.create_stream_url("1.2.m", now() + timedelta(minutes=30)),
    ]
    for call in calls:
        with pytest.raises(WorkspaceError) as refused:
            await call()
        assert (refused.value.kind, refused.value.code) == (Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE")


async def test_concurrent_calls_share_connections(service: WebPubSub, fake_web_pubsub: FakeWebPubSub) -> None:
    """Concurrent calls share HTTP connections, and each call gets its reply."""
    await asyncio.gather(*(service.publish(f"g{number}", b"%d" % number) for number in range(100)))
    assert {body for _, _, body, _ in fake_web_pubsub.asked} == {b"%d" % number for number in range(100)}
