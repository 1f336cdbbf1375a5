"""HTTP clients: one for URLs that users chose, and one for the metadata and keys of an OpenID Connect provider.

The client for URLs that users chose resolves host names, and connects only to IP addresses that it has checked. The
other client caches the keys in memory.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from shared.backends.bounded_replies import BoundedReplyConnector
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.outbound.addresses import AddressRefusedError, AddressRules, OutboundUrl, parse_addresses
from shared.outbound.ports import OutboundFailedError, OutboundReply, OutboundRequest
from shared.runtime import SYSTEM_RUNTIME, Runtime

RESOLVE_SECONDS: Final = 5.0
RESOLVER_THREADS: Final = 16
MAX_CONNECTIONS: Final = 512
BODY_SECONDS: Final = 1.0
"""Time limit in seconds for reading a reply body that may be truncated."""
KEEPALIVE_SECONDS: Final = 4.0
"""Time in seconds for which an idle connection is reused. Many servers close such a connection after five seconds."""
_IPV4: Final = 4
KEYS_MAX_AGE_SECONDS = 3600.0
MIN_REFRESH_SECONDS = 10.0
OUTAGE_SECONDS: Final = 86_400.0
"""Age in seconds up to which cached public keys are used while the identity provider cannot be reached."""
_CONNECT_SECONDS = 5.0
_TOTAL_SECONDS = 10.0
_MAX_BYTES = 1024 * 1024
_LOG = get_logger("auth")

type Lookup = Callable[[str], Sequence[str]]
"""Function that returns the IP addresses of a host name."""


def look_up_ip_addresses(host: str) -> Sequence[str]:
    """Return the IP addresses of a host name; the call blocks the thread.

    Raises:
        OSError: the name does not resolve.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(entry[4][0]) for entry in found]


class CheckedHttp:
    """Implementation of OutboundHttp: sends HTTP requests only to IP addresses that the rules allow.

    Args:
        rules: decides which IP addresses are allowed.
        look_up: returns the IP addresses of a host name.
        tls: TLS configuration; None for Python's default with the system's certificates.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        rules: AddressRules,
        *,
        look_up: Lookup = look_up_ip_addresses,
        tls: ssl.SSLContext | None = None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._rules = rules
        self._names = _NameLookups(look_up, runtime)
        self._tls = tls
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def require_allowed_host(self, url: OutboundUrl, *, https_only: bool = False) -> None:
        try:
            addresses = [str(url.literal_address)] if url.literal_address else await self._names.resolve(url.host)
        except OutboundFailedError as error:
            raise AddressRefusedError(error.reason) from error
        self._rules.require_allowed_addresses(url, parse_addresses(addresses), https_only=https_only)

    async def send(self, request: OutboundRequest) -> OutboundReply:
        if request.url.literal_address is not None or request.https_only:
            # Other addresses are checked by the resolver of the connection, which aiohttp calls for host names only.
            await self.require_allowed_host(request.url, https_only=request.https_only)
        try:
            async with asyncio.timeout(request.seconds) as limit:
                response = await self._get_or_open_session(request.url.scheme).request(
                    request.method,
                    URL(request.url.text, encoded=True),
                    headers=request.headers,
                    data=request.body or None,
                    allow_redirects=False,
                )
                if request.truncate:
                    limit.reschedule(None)
                return await _read_reply(request, response)
        except TimeoutError:
            raise OutboundFailedError(f"No complete reply within {request.seconds:g} seconds.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise OutboundFailedError(_describe_error(error)) from error

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._names.close()

    def _get_or_open_session(self, scheme: str) -> aiohttp.ClientSession:
        if scheme not in self._sessions:
            connector = BoundedReplyConnector(
                resolver=_CheckingResolver(self._rules, self._names, scheme),
                use_dns_cache=False,
                limit=MAX_CONNECTIONS,
                keepalive_timeout=KEEPALIVE_SECONDS,
                ssl=self._tls or True,
            )
            self._sessions[scheme] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                trust_env=False,
                skip_auto_headers=("Accept-Encoding", "Accept"),
            )
        return self._sessions[scheme]


class _NameLookups:
    """Resolver of host names in its own threads; simultaneous look-ups of the same name share one thread.

    A slow name server therefore blocks at most one of these threads for each name. Threads for other work stay free.
    """

    def __init__(self, look_up: Lookup, runtime: Runtime) -> None:
        self._look_up = look_up
        self._runtime = runtime
        self._running: dict[str, asyncio.Task[Sequence[str]]] = {}
        self._pool: Executor | None = None

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the IP addresses of a host name.

        Raises:
            OutboundFailedError: the name does not resolve in time.
        """
        if host not in self._running:
            self._pool = self._pool or self._runtime.open_pool(RESOLVER_THREADS, "outbound names")
            threads = replace(self._runtime, threads=self._pool)
            self._running[host] = asyncio.create_task(threads.run_in_thread(self._look_up, host))
            self._running[host].add_done_callback(partial(self._remove_finished_lookup, host))
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                return await asyncio.shield(self._running[host])
        except (OSError, UnicodeError) as error:
            raise OutboundFailedError(f"The host name `{host}` does not resolve.") from error

    def close(self) -> None:
        """Stop the threads that look up host names."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _remove_finished_lookup(self, host: str, task: asyncio.Task[Sequence[str]]) -> None:
        del self._running[host]
        if not task.cancelled():
            task.exception()  # every caller may have given up; asyncio would log the exception


class _CheckingResolver(AbstractResolver):
    """Resolver for aiohttp that rejects a host name if the rules forbid one of its IP addresses.

    aiohttp connects to the returned addresses, so a second answer of the name server cannot replace a checked address.
    """

    def __init__(self, rules: AddressRules, names: _NameLookups, scheme: str) -> None:
        self._rules = rules
        self._names = names
        self._scheme = scheme

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002  both families are returned
    ) -> list[ResolveResult]:
        """Return the IP addresses of a host.

        Raises:
            AddressRefusedError: the rules forbid an address.
            OutboundFailedError: the name does not resolve.
        """
        addresses = parse_addresses(await self._names.resolve(host))
        self._rules.require_allowed_addresses(OutboundUrl("", self._scheme, host.lower(), port), addresses)
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == _IPV4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing; :class:`CheckedHttp` owns the threads for DNS look-ups and closes them."""


async def _read_reply(request: OutboundRequest, response: aiohttp.ClientResponse) -> OutboundReply:
    """Read the reply with its body up to the request's limit. A connection with unread bytes is closed."""
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS if request.truncate else None):
            async for part in response.content.iter_any():
                content += part
                if len(content) > request.max_bytes:
                    break
    except (TimeoutError, aiohttp.ClientError, OSError):
        if not request.truncate:
            raise
    finally:
        if response.content.at_eof():
            response.release()
        else:
            response.close()
    if len(content) > request.max_bytes and not request.truncate:
        raise OutboundFailedError(f"The reply is larger than {request.max_bytes} bytes.")
    headers = {name.lower(): value for name, value in reversed(list(response.headers.items()))}
    return OutboundReply(response.status, headers, bytes(content[: request.max_bytes]))


def _describe_error(error: Exception) -> str:
    """Describe the failure of a request in one sentence that contains no part of the URL except the host."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        verification = error.certificate_error
        detail = getattr(verification, "verify_message", "") or "unknown reason"
        return f"The TLS certificate is not valid: {detail}."
    if isinstance(error, aiohttp.ClientSSLError):
        return "The TLS handshake failed."
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"The connection failed: {error.os_error.strerror or 'no reason given'}."
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError):
        return "The server closed the connection without a reply."
    if isinstance(error, aiohttp.ClientResponseError):
        return "The reply is not valid HTTP."
    return f"The request failed ({type(error).__name__})."


class HttpOpenIdProvider:
    """Implementation of OpenIdProvider: reads the discovery document and the public keys of a tenant.

    The document follows OpenID Connect Discovery 1.0. Keys are refreshed each hour. After an unknown key id or a
    failure, keys are refreshed at most every ten seconds. While the provider cannot be reached, the cached keys remain
    in use for :data:`OUTAGE_SECONDS`.

    Args:
        discovery_url: address of the discovery document.
        seconds: timeout in seconds for fetching the document and the keys together.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, discovery_url: str, *, seconds: float = _TOTAL_SECONDS, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._discovery_url = discovery_url
        self._seconds = seconds
        self._issuer = ""
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._fetched_at = self._failed_at = float("-inf")
        self._lock = asyncio.Lock()
        self._runtime = runtime

    async def load_issuer(self) -> str:
        await self._refresh_keys_if_older_than_an_hour()
        return self._issuer

    async def find_public_key(self, key_id: str) -> Mapping[str, Any] | None:
        await self._refresh_keys_if_older_than_an_hour()
        if key_id not in self._keys:
            await self._refresh_keys_if_older(MIN_REFRESH_SECONDS)
        return self._keys.get(key_id)

    async def _refresh_keys_if_older_than_an_hour(self) -> None:
        can_use_cached_keys = self._runtime.monotonic() - self._fetched_at < OUTAGE_SECONDS
        if can_use_cached_keys and self._lock.locked():
            # Another caller refreshes the keys, which can take long if the provider does not respond.
            return
        try:
            await self._refresh_keys_if_older(KEYS_MAX_AGE_SECONDS)
        except WorkspaceError:
            if not can_use_cached_keys:
                raise

    async def _refresh_keys_if_older(self, max_age_seconds: float) -> None:
        if self._runtime.monotonic() - self._fetched_at < max_age_seconds:
            return
        async with self._lock:
            if self._runtime.monotonic() - self._fetched_at < max_age_seconds:
                return
            if self._runtime.monotonic() - self._failed_at < MIN_REFRESH_SECONDS:
                # Otherwise each waiting caller would start another attempt.
                raise _build_unavailable_error()
            await self._fetch_issuer_and_keys()

    async def _fetch_issuer_and_keys(self) -> None:
        try:
            timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS)
            async with asyncio.timeout(self._seconds), aiohttp.ClientSession(timeout=timeout) as session:
                discovery = await _fetch_json_object(session, self._discovery_url)
                keys = await _fetch_json_object(session, str(discovery["jwks_uri"]))
            self._issuer = str(discovery["issuer"])
            self._keys = {str(key["kid"]): key for key in keys["keys"] if "kid" in key}
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, RecursionError) as error:
            self._failed_at = self._runtime.monotonic()
            _LOG.warning("cannot fetch the keys of the identity provider", extra=fields(error=type(error).__name__))
            raise _build_unavailable_error() from error
        self._fetched_at = self._runtime.monotonic()


def _build_unavailable_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE,
        "IDENTITY_PROVIDER_UNAVAILABLE",
        "The keys of the identity provider cannot be fetched; try again.",
    )


async def _fetch_json_object(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url, allow_redirects=False) as response:
        response.raise_for_status()
        content = bytearray()
        async for part in response.content.iter_any():
            content += part
            if len(content) > _MAX_BYTES:
                raise ValueError(f"the reply of the identity provider is larger than {_MAX_BYTES} bytes")
    document = json.loads(content)
    if not isinstance(document, dict):
        raise ValueError("the reply of the identity provider is not a JSON object")  # noqa: TRY004  a bad reply to callers
    return document
