"""OpenID Connect discovery over HTTPS, with keys cached in memory."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime

KEYS_MAX_AGE_SECONDS = 3600.0
MIN_REFRESH_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_TOTAL_SECONDS = 10.0
_MAX_BYTES = 1024 * 1024


class HttpOpenIdProvider:
    """Implementation of OpenIdProvider: reads the discovery document of a tenant (OpenID Connect Discovery 1.0).

    Keys are refreshed each hour. After an unknown key id or a failure, they are refreshed at most every ten seconds.

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
        await self._refresh_keys(KEYS_MAX_AGE_SECONDS)
        return self._issuer

    async def find_public_key(self, key_id: str) -> Mapping[str, Any] | None:
        await self._refresh_keys(KEYS_MAX_AGE_SECONDS)
        if key_id not in self._keys:
            await self._refresh_keys(MIN_REFRESH_SECONDS)
        return self._keys.get(key_id)

    async def _refresh_keys(self, max_age: float) -> None:
        if self._runtime.monotonic() - self._fetched_at < max_age:
            return
        async with self._lock:
            if self._runtime.monotonic() - self._fetched_at < max_age:
                return
            if self._runtime.monotonic() - self._failed_at < MIN_REFRESH_SECONDS:
                # Otherwise each waiting caller would start another attempt.
                raise _unavailable_error()
            await self._fetch_keys()

    async def _fetch_keys(self) -> None:
        try:
            timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS)
            async with asyncio.timeout(self._seconds), aiohttp.ClientSession(timeout=timeout) as session:
                discovery = await _get_json(session, self._discovery_url)
                keys = await _get_json(session, str(discovery["jwks_uri"]))
            self._issuer = str(discovery["issuer"])
            self._keys = {str(key["kid"]): key for key in keys["keys"] if "kid" in key}
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, RecursionError) as error:
            self._failed_at = self._runtime.monotonic()
            raise _unavailable_error() from error
        self._fetched_at = self._runtime.monotonic()


def _unavailable_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE,
        "IDENTITY_PROVIDER_UNAVAILABLE",
        "The keys of the identity provider cannot be fetched; try again.",
    )


async def _get_json(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url, allow_redirects=False) as response:
        response.raise_for_status()
        content = bytearray()
        async for part in response.content.iter_any():
            content += part
            if len(content) > _MAX_BYTES:
                raise ValueError("the reply of the identity provider is too large")
    document = json.loads(content)
    if not isinstance(document, dict):
        raise ValueError("the reply of the identity provider is not a JSON object")  # noqa: TRY004  a bad reply to callers
    return document
