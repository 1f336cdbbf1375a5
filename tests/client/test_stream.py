"""Tests of the client's live stream when connections are lost."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from oi import ApiError, AsyncWorkspace, SignInError, UnreachableError, Workspace
from oi._async import stream as module
from oi._async import transport as transport_module
from oi._async.transport import AsyncTransport
from oi.credentials import Token
from oi.errors import build_api_error
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosedError, InvalidMessage, InvalidProxy, InvalidStatus
from websockets.frames import Close
from websockets.http11 import Request, Response

from tests.client.untrusted_service import serve_with_untrusted_certificate


def build_message(number: int, moment: datetime, connection: str = "rig") -> str:
    """Return a live message as JSON text."""
    metadata = {"ConnectionLookup": connection}
    return json.dumps({"ID": f"m-{number}", "Timestamp": moment.isoformat(), "Metadata": metadata, "Payload": {}})


@pytest.fixture(autouse=True)
def _no_proxy_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the proxies of this computer's environment."""
    for name in ("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class FakeSocket(NamedTuple):
    """Fake WebSocket with the messages of a connection, and the reply to its handshake."""

    messages: AsyncIterator[str]
    response: Response

    def __aiter__(self) -> AsyncIterator[str]:
        return self.messages


class FakeService:
    """Fake live stream that returns the connections of a list in order; an exception in the list fails a handshake.

    An exception in the list of messages of a connection ends the connection.
    """

    def __init__(self, *connections: Sequence[str | Exception] | Exception) -> None:
        self.connections = list(connections)
        self.expected_proxy: str | Literal[True] = True
        self.urls: list[str] = []
        self.starts: list[datetime | None] = []
        self.credentials: list[str] = []
        self.pauses: list[float] = []
        self.failures: list[str] = []
        self.handshake_headers = Headers()

    @asynccontextmanager
    async def connect(
        self, url: str, *, additional_headers: dict[str, str], proxy: str | bool | None
    ) -> AsyncIterator["FakeSocket"]:
        """Open the next connection of the list."""
        assert proxy == self.expected_proxy
        self.urls.append(url)
        since = parse_qs(urlsplit(url).query).get("since")
        self.starts.append(datetime.fromisoformat(since[0]) if since else None)
        self.credentials.append(additional_headers.get("Authorization", ""))
        texts = self.connections.pop(0)
        if isinstance(texts, Exception):
            raise texts
        yield FakeSocket(self._send(texts), Response(101, "Switching Protocols", self.handshake_headers))

    async def _send(self, texts: Sequence[str | Exception]) -> AsyncIterator[str]:
        for text in texts:
            if isinstance(text, Exception):
                raise text
            yield text
        raise ConnectionClosedError(None, None)


async def read_messages(
    service: FakeService,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None = None,
    token_errors: Sequence[ApiError] = (),
) -> list[tuple[str, str]]:
    """Return the connection and the id of each of the first messages of the stream.

    The first requests for a token fail with ``token_errors``.
    """
    failures = iter(token_errors)
    tokens = iter(range(1, 100))

    async def skip_wait(seconds: float) -> None:
        service.pauses.append(seconds)

    monkeypatch.setattr(module, "ConnectWithoutRedirects", service.connect)
    monkeypatch.setattr(module, "sleep", skip_wait)

    async def issue_token(transport: AsyncTransport, *, rejected_token: str = "") -> str:
        for failure in failures:
            raise failure
        if transport._token is None or (rejected_token == transport._token.text and transport.can_renew_token):
            transport._token = Token(f"token-{next(tokens)}")
        return transport._token.text

    monkeypatch.setattr(AsyncTransport, "get_token", issue_token)
    found = []
    token = "t" if key is None else None
    async with AsyncWorkspace("https://plant.example", key=key, token=token) as workspace:
        stream = workspace.stream(on_failure=service.failures.append)
        async for message in stream:
            found.append((message["Metadata"]["ConnectionLookup"], message["ID"]))
            if len(found) == count:
                await stream.aclose()
                break
    return found


async def test_a_lost_stream_continues_without_gap_or_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a lost connection, the client requests a replay and drops messages that it already received."""
    now = datetime.now(UTC)
    first = [build_message(1, now - timedelta(seconds=3)), build_message(2, now - timedelta(seconds=2))]
    service = FakeService(first, [*first, build_message(3, now)])
    assert await read_messages(service, 3, monkeypatch) == [("rig", "m-1"), ("rig", "m-2"), ("rig", "m-3")]
    start = service.starts[1]
    assert service.starts[0] is None
    assert start is not None
    assert start < now - timedelta(seconds=3)


async def test_a_lost_stream_continues_by_the_clock_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of new messages begins at the time that the service states, because this computer's can be ahead."""
    service = FakeService([], [build_message(1, datetime.now(UTC))])
    service.handshake_headers["Date"] = "Mon, 05 Jan 2026 08:00:00 GMT"
    await read_messages(service, 1, monkeypatch)
    assert service.starts[1] == datetime(2026, 1, 5, 8, tzinfo=UTC)


async def test_equal_ids_of_two_connections_are_two_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of two connections with equal ids are both returned."""
    now = datetime.now(UTC)
    service = FakeService([build_message(1, now), build_message(1, now, "press"), build_message(1, now)], [])
    assert await read_messages(service, 2, monkeypatch) == [("rig", "m-1"), ("press", "m-1")]


async def test_a_message_with_a_future_timestamp_causes_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay starts at the arrival time of the last message, even if its timestamp is in the future."""
    now = datetime.now(UTC)
    ahead = build_message(1, now + timedelta(minutes=5))
    service = FakeService([ahead], [build_message(2, now)])
    await read_messages(service, 2, monkeypatch)
    start = service.starts[1]
    assert start is not None
    assert start <= datetime.now(UTC) - timedelta(seconds=50)


async def test_the_pause_grows_while_the_service_closes_the_stream_because_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each close with 1011 without a new message, the pause doubles, and the reason is reported.

    A later outage does not end the stream sooner.
    """
    now = datetime.now(UTC)
    failure = ConnectionClosedError(Close(1011, "Too many replays run."), None)
    first, second = build_message(1, now - timedelta(seconds=1)), build_message(2, now)
    failed = [[failure] for _ in range(6)]
    service = FakeService([failure], [first, failure], [first, failure], *failed, OSError("refused"), [first, second])
    assert await read_messages(service, 2, monkeypatch) == [("rig", "m-1"), ("rig", "m-2")]
    assert service.pauses == [1, 1, 2, 4, 8, 16, 30, 30, 30, 1]
    assert service.failures == ["Too many replays run."] * 9


def build_handshake_error(status: int, retry_after: str = "") -> InvalidStatus:
    """Build the error that a client gets for a rejected handshake."""
    headers = Headers({"Retry-After": retry_after} if retry_after else {})
    return InvalidStatus(Response(status, "Refused", headers, b'{"code": "CODE", "detail": "Reason."}'))


async def test_a_failed_handshake_of_the_stream_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a handshake fails because of a restart or overload, the client tries again."""
    message = build_message(1, datetime.now(UTC))
    service = FakeService(
        InvalidMessage("no HTTP response"),
        build_handshake_error(503),
        build_handshake_error(429),
        OSError("refused"),
        [message],
    )
    assert await read_messages(service, 1, monkeypatch) == [("rig", "m-1")]


async def test_the_stream_waits_as_long_as_the_service_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt follows after the `Retry-After` of a refusal, at most after five minutes, or the usual pause."""
    service = FakeService(
        build_handshake_error(429, "50"),
        build_handshake_error(503, "3600"),
        build_handshake_error(429, "1"),
        [build_message(1, datetime.now(UTC))],
    )
    errors = [build_api_error(429, {}, retry_after=20.0)]
    await read_messages(service, 1, monkeypatch, key="oik_1", token_errors=errors)
    assert service.pauses == [20.0, 50.0, 300.0, 8.0]


async def test_a_failed_renewal_of_the_token_does_not_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service fails when the client renews its token, the stream continues as after a failed handshake."""
    service = FakeService([build_message(1, datetime.now(UTC))])
    errors = [build_api_error(status, {}) for status in (500, 502, 503, 504, 429)]
    found = await read_messages(service, 1, monkeypatch, key="oik_1", token_errors=errors)
    assert found == [("rig", "m-1")]


async def test_the_stream_raises_an_error_after_repeated_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """After repeated failures, the stream raises the error for an unreachable service."""
    service = FakeService(*(InvalidMessage("no HTTP response") for _ in range(20)))
    with pytest.raises(UnreachableError, match=r"plant\.example does not respond: no HTTP response"):
        await read_messages(service, 1, monkeypatch)
    assert len(service.connections) > 10


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_the_stream_ends_if_a_proxy_does_not_reach_the_service(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A proxy that replies for half a minute, to the token request or the handshake, ends the stream.

    The `Retry-After` of the proxy does not make the pauses longer.
    """
    refused = InvalidStatus(Response(status, "Refused", Headers({"Retry-After": "300"}), b"<html>"))
    token_errors = [build_api_error(status, {}, retry_after=300.0) for _ in range(20)]
    for service, errors in ((FakeService(), token_errors), (FakeService(*[refused] * 20), [])):
        with pytest.raises(UnreachableError):
            await read_messages(service, 1, monkeypatch, key="oik_1", token_errors=errors)
        assert service.pauses == [1, 2, 4, 8, 16]


async def test_the_stream_does_not_wait_for_a_proxy_that_issues_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt of the stream sends one request for a token, whatever `Retry-After` a proxy replies with."""
    pauses: list[float] = []

    async def skip_wait(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(module, "sleep", skip_wait)
    monkeypatch.setattr(transport_module, "sleep", skip_wait)
    reply = httpx.MockTransport(lambda _: httpx.Response(503, headers={"Retry-After": "30"}, text="<html>"))
    async with AsyncWorkspace("https://plant.example", key="oik_1") as workspace:
        workspace._transport.client = httpx.AsyncClient(base_url="https://plant.example", transport=reply)
        with pytest.raises(UnreachableError):
            await anext(workspace.stream())
    assert pauses == [1, 2, 4, 8, 16]


async def test_an_invalid_certificate_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid TLS certificate ends the stream at once, at the request for a token or at the handshake."""
    failure = SSLCertVerificationError(1, "certificate verify failed")
    token_error = UnreachableError("certificate verify failed")
    token_error.__cause__ = failure
    for service, errors in ((FakeService(), [token_error]), (FakeService(failure), [])):
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await read_messages(service, 1, monkeypatch, key="oik_1", token_errors=errors)
        assert service.pauses == []


async def test_a_service_with_an_untrusted_certificate_ends_the_stream(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the TLS certificate of the service is not trusted, its first handshake ends the stream."""

    async def reject_pause(_seconds: float) -> None:
        pytest.fail("the stream is opened again")

    monkeypatch.setattr(module, "sleep", reject_pause)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve_with_untrusted_certificate(tmp_path) as url:
        async with AsyncWorkspace(url, token="t") as workspace:
            with pytest.raises(UnreachableError, match="certificate verify failed"):
                await anext(workspace.stream())


async def test_an_address_with_an_upper_case_scheme_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheme of the address may have upper-case letters; an address without a scheme ends the stream at once."""
    service = FakeService([build_message(1, datetime.now(UTC))])
    monkeypatch.setattr(module, "ConnectWithoutRedirects", service.connect)
    async with AsyncWorkspace("HTTPS://plant.example", token="t") as workspace:
        await anext(workspace.stream())
    assert service.urls == ["wss://plant.example/oi-api/live-stream?"]
    monkeypatch.undo()
    async with AsyncWorkspace("plant.example", token="t") as workspace:
        with pytest.raises(UnreachableError, match=r"plant\.example is not an address such as"):
            await anext(workspace.stream())


async def test_an_invalid_proxy_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid proxy in the environment ends the stream at once, with an error that does not contain its password."""
    service = FakeService(InvalidProxy("ftp://user:secret@proxy.example", "scheme ftp isn't supported"), [])
    with pytest.raises(UnreachableError, match="proxy URL in the environment variables is invalid") as failed:
        await read_messages(service, 1, monkeypatch)
    assert "secret" not in str(failed.value)
    assert len(service.connections) == 1


async def test_the_stream_uses_the_proxy_for_all_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream uses the proxy in ALL_PROXY, which the WebSocket library does not read."""
    for name in ("HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    service = FakeService([build_message(1, datetime.now(UTC))])
    service.expected_proxy = "http://proxy.example:3128"
    assert await read_messages(service, 1, monkeypatch) == [("rig", "m-1")]


async def test_a_socks_proxy_without_its_package_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the package for SOCKS proxies is missing, the stream ends at once with an error that names the extra."""
    service = FakeService(ImportError("connecting through a SOCKS proxy requires python-socks"), [])
    with pytest.raises(UnreachableError, match=r"oi-client\[socks\]"):
        await read_messages(service, 1, monkeypatch)
    assert len(service.connections) == 1


async def read_with_asyncio(url: str) -> None:
    """Read the first message of a stream with the asyncio client."""
    async with AsyncWorkspace(url, token="t") as workspace:
        await anext(workspace.stream(connection="rig"))


async def read_without_asyncio(url: str) -> None:
    """Read the first message of a stream with the client without asyncio."""
    with Workspace(url, token="t") as workspace:
        await asyncio.to_thread(next, workspace.stream(connection="rig"))


@pytest.mark.parametrize("read_first_message", [read_with_asyncio, read_without_asyncio])
async def test_the_stream_follows_no_redirect(read_first_message: Callable[[str], Awaitable[None]]) -> None:
    """A redirect of the stream ends it with both addresses, but no query, and no request goes to the target."""
    requests = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode())
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /other?sig=secret\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ApiError) as failed:
            await read_first_message(url)
    source = url.replace("http", "ws")
    assert str(failed.value) == f"{source}/oi-api/live-stream redirects to /other; use the address of the service."
    assert (failed.value.status, requests) == (302, ["/oi-api/live-stream?connection=rig"])


@asynccontextmanager
async def serve_stream_elsewhere(requests: list[tuple[str, str]], other: str = "") -> AsyncIterator[str]:
    """Serve a stream whose own handshake gets 307; yield the address of the service.

    Args:
        requests: list to which the target and the header Authorization of each request are added.
        other: negotiated address; that of a WebSocket of the same server if it is empty.
    """

    def reply_or_upgrade(connection: ServerConnection, request: Request) -> Response | None:
        requests.append((request.path, request.headers.get("Authorization", "")))
        if request.path.startswith("/oi-api/live-stream/negotiate"):
            port = connection.local_address[1]
            body = json.dumps({"url": other or f"ws://127.0.0.1:{port}/client?access_token=secret"}).encode()
            return Response(200, "OK", Headers({"Content-Length": str(len(body))}), body)
        if request.path.startswith("/oi-api/"):
            return Response(307, "Redirect", Headers({"Location": "ws://127.0.0.1:1/c", "Content-Length": "0"}))
        return None

    async def send_message(connection: ServerConnection) -> None:
        await connection.send(build_message(1, datetime.now(UTC)))

    async with serve(send_message, "127.0.0.1", 0, process_request=reply_or_upgrade) as server:
        yield f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


@pytest.mark.parametrize("read_first_message", [read_with_asyncio, read_without_asyncio])
async def test_the_stream_is_negotiated_if_the_host_cannot_open_it(
    read_first_message: Callable[[str], Awaitable[None]],
) -> None:
    """After 307 the client opens the address that the service negotiates, not that of the redirect, without a token."""
    requests: list[tuple[str, str]] = []
    async with serve_stream_elsewhere(requests) as url:
        await read_first_message(url)
    assert requests == [
        ("/oi-api/live-stream?connection=rig", "Bearer t"),
        ("/oi-api/live-stream/negotiate?connection=rig", "Bearer t"),
        ("/client?access_token=secret", ""),
    ]


@pytest.mark.parametrize("other", ["http://127.0.0.1:1/c?access_token=secret", "ws://[c?access_token=secret", "page"])
async def test_a_negotiated_address_that_is_no_websocket_ends_the_stream(other: str) -> None:
    """A negotiated address that is no WebSocket ends the stream with an error that does not contain its token."""
    async with serve_stream_elsewhere([], other) as url:
        with pytest.raises(ApiError, match="which is no wss address") as failed:
            await read_with_asyncio(url)
    assert "secret" not in str(failed.value)


async def test_the_error_about_an_unreachable_negotiated_host_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a negotiated address does not respond, the error names it, not the service, and without its token."""
    monkeypatch.setattr(module, "_MAX_PAUSE", module._MIN_PAUSE)
    async with serve_stream_elsewhere([], "ws://127.0.0.1:1/client?access_token=secret") as url:
        with pytest.raises(UnreachableError, match=r"^ws://127\.0\.0\.1:1/client does not respond: ") as failed:
            await read_with_asyncio(url)
    assert "secret" not in str(failed.value)


async def test_a_negotiated_address_is_as_secure_as_that_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the address of the service is https, a negotiated ws address ends the stream, and wss opens it."""
    named = ["ws://pubsub.example/c", "wss://pubsub.example/c"]

    async def negotiate(_transport: AsyncTransport, _path: str, _parameters: dict[str, str]) -> dict[str, str]:
        return {"url": named.pop(0)}

    monkeypatch.setattr(AsyncTransport, "get_json", negotiate)
    with pytest.raises(ApiError, match="which is no wss address"):
        await read_messages(FakeService(build_handshake_error(307)), 1, monkeypatch)
    named.append("wss://pubsub.example/d")
    message = build_message(1, datetime.now(UTC))
    service = FakeService(build_handshake_error(307), OSError("refused"), [message])
    assert await read_messages(service, 1, monkeypatch) == [("rig", "m-1")]
    assert service.urls[1:] == ["wss://pubsub.example/c", "wss://pubsub.example/d"]
    assert (service.credentials[1:], service.pauses) == (["", ""], [1])


async def test_a_rejected_token_is_renewed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If its token is rejected, the client requests a new token once with its API key."""
    message = build_message(1, datetime.now(UTC))
    service = FakeService(build_handshake_error(401), [message])
    assert await read_messages(service, 1, monkeypatch, key="oik_1") == [("rig", "m-1")]
    assert service.credentials == ["Bearer token-1", "Bearer token-2"]
    for attempts, key in ((2, "oik_1"), (1, None)):
        service = FakeService(build_handshake_error(401), build_handshake_error(401), [message])
        with pytest.raises(SignInError, match="Reason"):
            await read_messages(service, 1, monkeypatch, key=key)
        assert len(service.credentials) == attempts
