"""Tests of the HTTP client for addresses that users choose, and of OpenID Connect discovery, with local servers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from shared.backends.outbound_http import (
    KEYS_MAX_AGE_SECONDS,
    MIN_REFRESH_SECONDS,
    OUTAGE_SECONDS,
    CheckedHttp,
    HttpOpenIdProvider,
)
from shared.errors import WorkspaceError
from shared.outbound.addresses import AddressRefusedError, AddressRules, parse_networks, parse_outbound_url
from shared.outbound.ports import OutboundFailedError, OutboundReply, OutboundRequest
from shared.timestamps import now
from tests.virtual_time import VirtualTime

LOOPBACK = AddressRules(parse_networks("127.0.0.0/8"))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Tag: one\r\nX-Tag: two\r\n\r\nok"

type Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve_connections(respond: Respond, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run a server on a free port of 127.0.0.1, and yield the port."""

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await respond(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle_connection, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def build_server(content: bytes) -> Respond:
    """Return a server function that sends bytes and closes the connection."""

    async def send_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await writer.drain()

    return send_and_close


async def send_request(
    url: str,
    *,
    seconds: float = 10,
    max_bytes: int = 100,
    truncate: bool = False,
    addresses: Sequence[str] = ("127.0.0.1",),
    rules: AddressRules = LOOPBACK,
    tls: ssl.SSLContext | None = None,
) -> OutboundReply:
    """Send a request with a new client."""
    client = CheckedHttp(rules, look_up=lambda _host: addresses, tls=tls)
    request = OutboundRequest(
        parse_outbound_url(url), body=b"{}", method="POST", seconds=seconds, max_bytes=max_bytes, truncate=truncate
    )
    try:
        return await client.send(request)
    finally:
        await client.close()


async def test_a_reply_is_returned() -> None:
    """Status, headers and body of a reply are returned; a repeated header has its first value."""
    async with serve_connections(build_server(OK)) as port:
        received = await send_request(f"http://hooks.example:{port}/x?y=%2F")
    assert (received.status, received.body, received.headers["x-tag"]) == (200, b"ok", "one")


async def test_a_redirect_is_not_followed() -> None:
    """A redirect is returned as a reply and not followed."""
    async with serve_connections(
        build_server(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    ) as port:
        assert (await send_request(f"http://127.0.0.1:{port}/")).status == 302


@pytest.mark.parametrize("host", ["hooks.example", "127.0.0.1"])
async def test_a_refused_address_is_not_connected(host: str) -> None:
    """If the rules reject an address, by name or as IP address, no connection is made to it."""
    async with serve_connections(build_server(OK)) as port:
        with pytest.raises(AddressRefusedError):
            await send_request(f"http://{host}:{port}/", rules=AddressRules())


async def test_the_connection_uses_the_checked_address() -> None:
    """A name is resolved once for each connection, so that the checked address is the connected one."""
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    client = CheckedHttp(LOOPBACK, look_up=lambda _host: next(answers))
    async with serve_connections(build_server(OK)) as port:
        request = OutboundRequest(parse_outbound_url(f"http://hooks.example:{port}/"))
        assert (await client.send(request)).status == 200
        with pytest.raises(AddressRefusedError):
            await client.require_allowed_host(request.url)
    await client.close()


async def test_a_name_that_does_not_resolve_is_refused() -> None:
    """If a name cannot be resolved, the address check rejects it and a request fails."""

    def fail_to_resolve(host: str) -> Sequence[str]:
        raise OSError(host)

    client = CheckedHttp(LOOPBACK, look_up=fail_to_resolve)
    url = parse_outbound_url("https://hooks.example/secret")
    with pytest.raises(AddressRefusedError, match="does not resolve"):
        await client.require_allowed_host(url)
    with pytest.raises(OutboundFailedError, match="does not resolve"):
        await client.send(OutboundRequest(url))
    await client.close()


@pytest.mark.parametrize("body", [b"x" * 1000, b"x" * 101])
async def test_a_large_body_is_truncated_or_raises_an_error(body: bytes) -> None:
    """A body over the limit is truncated if the caller has requested this; otherwise it raises an error."""
    content = b"HTTP/1.1 200 OK\r\n\r\n" + body
    async with serve_connections(build_server(content)) as port:
        cut = await send_request(f"http://127.0.0.1:{port}/", truncate=True)
        assert (cut.status, cut.body) == (200, b"x" * 100)
        with pytest.raises(OutboundFailedError, match="larger than 100 bytes"):
            await send_request(f"http://127.0.0.1:{port}/")


async def send_head_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the head of a reply, then nothing until the client closes the connection."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab")
    await writer.drain()
    await reader.read()


async def test_a_slow_body_is_truncated_or_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that arrives too slowly is truncated if the caller has requested this; otherwise it raises an error."""
    monkeypatch.setattr("shared.backends.outbound_http.BODY_SECONDS", 0.05)
    async with serve_connections(send_head_only) as port:
        cut = await send_request(f"http://127.0.0.1:{port}/", truncate=True)
        assert (cut.status, cut.body) == (200, b"ab")
        with pytest.raises(OutboundFailedError, match="within"):
            await send_request(f"http://127.0.0.1:{port}/", seconds=0.1)


async def test_a_server_that_sends_no_status_raises_an_error() -> None:
    """If a server sends no status in time, a request raises an error, even if bodies may be truncated."""

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serve_connections(stay_silent) as port:
        with pytest.raises(OutboundFailedError, match=r"within 0\.1 seconds"):
            await send_request(f"http://127.0.0.1:{port}/", seconds=0.1, truncate=True)


@pytest.mark.parametrize(
    "content", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"]
)
async def test_an_invalid_reply_raises_an_error(content: bytes) -> None:
    """A closed connection, another protocol or huge headers raise an error without parts of the URL."""
    async with serve_connections(build_server(content)) as port:
        with pytest.raises(OutboundFailedError) as failed:
            await send_request(f"http://127.0.0.1:{port}/secret")
    assert "secret" not in failed.value.reason


async def test_a_refused_connection_raises_an_error() -> None:
    """A request to a port without a server raises an error."""
    async with serve_connections(build_server(OK)) as port:
        pass
    with pytest.raises(OutboundFailedError, match="connection failed"):
        await send_request(f"http://127.0.0.1:{port}/")


def create_certificate(folder: Path, name: str) -> ssl.SSLContext:
    """Create a self-signed certificate for a name as ``cert.pem``; return the server's TLS context."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    alternative = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.9"))])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now() - timedelta(days=1))
        .not_valid_after(now() + timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


async def test_certificates_are_verified_for_the_host_name(tmp_path: Path) -> None:
    """A certificate is accepted only for its host name and from a trusted issuer."""
    context = create_certificate(tmp_path, "hooks.example")
    trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    async with serve_connections(build_server(OK), context) as port:
        assert (await send_request(f"https://hooks.example:{port}/", tls=trusting)).status == 200
        for url, tls in ((f"https://other.example:{port}/", trusting), (f"https://hooks.example:{port}/", None)):
            with pytest.raises(OutboundFailedError, match="certificate is not valid"):
                await send_request(url, tls=tls)


async def test_simultaneous_dns_look_ups_are_shared() -> None:
    """Concurrent requests to one name share a DNS look-up."""
    hosts: list[str] = []

    def count_look_up(host: str) -> Sequence[str]:
        hosts.append(host)
        return ["127.0.0.1"]

    client = CheckedHttp(LOOPBACK, look_up=count_look_up)
    async with serve_connections(build_server(OK)) as port:
        request = OutboundRequest(parse_outbound_url(f"http://hooks.example:{port}/"))
        replies = await asyncio.gather(*(client.send(request) for _ in range(3)))
    assert [each.status for each in replies] == [200, 200, 200]
    assert hosts == ["hooks.example"]
    await client.close()


class Tenant:
    """Fake Entra ID tenant whose public keys a test can change.

    Attributes:
        keys: the published keys.
        discovery: the discovery document; None for a valid document of this tenant.
        requests: number of requests for the discovery document.
        may_reply: set while the tenant replies to requests for the discovery document; by default it is.
        requested: set when a request for the discovery document has waited for its reply.
    """

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [{"kid": "k1", "kty": "EC"}]
        self.discovery: Any = None
        self.requests = 0
        self.may_reply, self.requested = asyncio.Event(), asyncio.Event()
        self.may_reply.set()
        self.url = ""

    async def return_discovery_document(self, _: web.Request) -> web.Response:
        """Return the discovery document."""
        self.requests += 1
        if not self.may_reply.is_set():
            self.requested.set()
            await self.may_reply.wait()
        return web.json_response(self.discovery or {"issuer": "https://issuer/", "jwks_uri": f"{self.url}/keys"})

    async def return_public_keys(self, _: web.Request) -> web.Response:
        """Return the public keys of the tenant."""
        return web.json_response({"keys": self.keys})


@pytest.fixture
async def tenant() -> AsyncIterator[Tenant]:
    """Run a server for a fake tenant."""
    made = Tenant()
    app = web.Application()
    app.add_routes([web.get("/discovery", made.return_discovery_document), web.get("/keys", made.return_public_keys)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    await runner.cleanup()


def build_provider(tenant: Tenant) -> tuple[HttpOpenIdProvider, VirtualTime]:
    """Return an OpenID provider and its clock."""
    time = VirtualTime()
    return HttpOpenIdProvider(f"{tenant.url}/discovery", runtime=time.runtime), time


async def test_keys_are_cached_for_an_hour(tenant: Tenant) -> None:
    """The provider's public keys are cached for an hour, so that checking tokens causes no requests."""
    provider, time = build_provider(tenant)
    assert await provider.load_issuer() == "https://issuer/"
    assert await provider.find_public_key("k1") == {"kid": "k1", "kty": "EC"}
    assert tenant.requests == 1
    time.advance(KEYS_MAX_AGE_SECONDS)
    await provider.load_issuer()
    assert tenant.requests == 2


async def test_cached_keys_remain_in_use_while_the_provider_is_down(tenant: Tenant) -> None:
    """While the keys cannot be refreshed, cached keys are used for a day; an unknown key id is UNAVAILABLE."""
    provider, time = build_provider(tenant)
    await provider.load_issuer()
    tenant.discovery = {"issuer": "x"}
    time.advance(OUTAGE_SECONDS - 1)
    assert await provider.load_issuer() == "https://issuer/"
    assert await provider.find_public_key("k1") == {"kid": "k1", "kty": "EC"}
    with pytest.raises(WorkspaceError) as raised:
        await provider.find_public_key("k2")
    assert raised.value.code == "IDENTITY_PROVIDER_UNAVAILABLE"
    time.advance(1)
    with pytest.raises(WorkspaceError) as raised:
        await provider.find_public_key("k1")
    assert raised.value.code == "IDENTITY_PROVIDER_UNAVAILABLE"


async def test_a_refresh_of_the_keys_delays_one_caller_only(tenant: Tenant) -> None:
    """While one caller refreshes the keys after an hour, other callers use the cached keys."""
    provider, time = build_provider(tenant)
    await provider.load_issuer()
    time.advance(KEYS_MAX_AGE_SECONDS)
    tenant.may_reply.clear()
    refreshing = asyncio.create_task(provider.load_issuer())
    async with asyncio.timeout(30):
        await tenant.requested.wait()
        assert await provider.find_public_key("k1") == {"kid": "k1", "kty": "EC"}
    assert not refreshing.done()
    tenant.may_reply.set()
    assert await refreshing == "https://issuer/"


async def test_an_unknown_key_is_looked_for_at_most_every_ten_seconds(tenant: Tenant) -> None:
    """An unknown key id reloads the keys at most every ten seconds, so that forged ids cause few requests."""
    provider, time = build_provider(tenant)
    await provider.load_issuer()
    tenant.keys.append({"kid": "k2"})
    assert await provider.find_public_key("k2") is None
    time.advance(MIN_REFRESH_SECONDS)
    assert await provider.find_public_key("k2") == {"kid": "k2"}
    assert await provider.find_public_key("k3") is None
    assert tenant.requests == 2


@pytest.mark.parametrize("discovery", [[1], {"issuer": "x"}, {"issuer": "x", "jwks_uri": "http://127.0.0.1:9/"}])
async def test_a_failure_to_load_keys_is_not_repeated_at_once(tenant: Tenant, discovery: Any) -> None:
    """Concurrent callers share one attempt to load the keys; after a failure, callers get its error for ten seconds."""
    provider, time = build_provider(tenant)
    tenant.discovery = discovery
    for _ in range(3):
        with pytest.raises(WorkspaceError) as raised:
            await provider.load_issuer()
        assert raised.value.code == "IDENTITY_PROVIDER_UNAVAILABLE"
    assert tenant.requests == 1
    tenant.discovery = None
    time.advance(MIN_REFRESH_SECONDS)
    assert await provider.load_issuer() == "https://issuer/"
