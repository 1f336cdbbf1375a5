"""HTTP requests of the gateway to the service."""

import asyncio
import gzip
from typing import Any
from urllib.parse import quote

import httpx

from oi._async.transport import AsyncTransport
from oi.errors import ApiError, SignInError
from oi.gateway.clock import ReceiveClock
from oi.gateway.sections import SettingsError
from oi.gateway.settings import ServiceSettings
from oi.requests import parse_json_reply, require_messages_accepted

_TELEMETRY_WRITE = ["Workspace.Telemetry.Write"]
_LEVEL = 1
_LEAST_COMPRESSED = 1_024
_NDJSON = {"Content-Type": "application/x-ndjson"}
_GZIP = {**_NDJSON, "Content-Encoding": "gzip"}


class Uplink:
    """Sends batches of telemetry; after a failed request, it reads the API key again, which may have been replaced.

    Args:
        settings: address of the service, and source of the API key.
        clock: receives the time of the service from each reply.
    """

    def __init__(self, settings: ServiceSettings, clock: ReceiveClock) -> None:
        self._settings = settings
        self._clock = clock
        self._key = ""
        self._failed_paths = set[str]()
        self._transport: AsyncTransport | None = None
        self._retired: AsyncTransport | None = None

    async def send(self, lookup: str, ndjson_lines: bytes) -> None:
        """Send NDJSON lines for a connection; when this method returns, the service has accepted all lines.

        Raises:
            ApiError: the service accepted none of the lines, or an unknown part of them; it is safe to send all lines
                again, because the service stores each message id once.
            SettingsError: the API key is missing.
        """
        headers, count = _NDJSON, ndjson_lines.count(b"\n")
        if len(ndjson_lines) >= _LEAST_COMPRESSED:
            # Compression releases the interpreter lock, so the event loop continues meanwhile.
            headers, ndjson_lines = _GZIP, await asyncio.to_thread(gzip.compress, ndjson_lines, _LEVEL)
        path = f"/oi-api/telemetry/{quote(lookup, safe='')}"
        reply = await self._send_request("POST", path, content=ndjson_lines, headers=headers)
        require_messages_accepted(reply, count)
        # A page of a proxy does not state the time of the service.
        self._record_service_time(reply)

    async def request_identity(self) -> dict[str, Any]:
        """Request the identity and the access rights of the API key.

        Raises:
            ApiError: the API key is not valid, or the service cannot be reached.
            SettingsError: the API key is missing.
        """
        reply = await self._send_request("GET", "/workspace/api/keys/whoami")
        identity: dict[str, Any] = parse_json_reply(reply)
        self._record_service_time(reply)
        return identity

    async def close(self) -> None:
        """Close the network connections to the service."""
        for transport in (self._transport, self._retired):
            if transport is not None:
                await transport.aclose()
        self._transport = self._retired = None

    async def _send_request(self, method: str, path: str, **options: Any) -> httpx.Response:
        # Read before the request: a key that was replaced during the pause is then used at once.
        if self._transport is not None and path in self._failed_paths and self._is_key_replaced():
            await self._stop_using_transport(self._transport)
        if self._transport is None:
            self._key = self._settings.read_api_key()
            # One attempt: the sender repeats batches itself, and reports each failure at once.
            self._transport = AsyncTransport(self._settings.url, key=self._key, scopes=_TELEMETRY_WRITE, max_attempts=1)
        transport = self._transport
        try:
            reply = await transport.request(method, path, **options)
        except ApiError as error:
            self._failed_paths.add(path)
            if isinstance(error, SignInError):
                await self._stop_using_transport(transport)
            raise
        self._failed_paths.discard(path)
        return reply

    def _is_key_replaced(self) -> bool:
        """Return whether the settings now contain another API key than the one in use."""
        try:
            return self._settings.read_api_key() != self._key
        except SettingsError:
            # The key in use may still be valid, and an operator may be writing the file.
            return False

    def _record_service_time(self, reply: httpx.Response) -> None:
        self._clock.record_service_time(reply.headers.get("Date", ""))

    async def _stop_using_transport(self, transport: AsyncTransport) -> None:
        """Stop using a transport, so that the next request reads the API key again and opens a new transport.

        Running requests still use the old transport. It is closed when the new one is replaced, or by :meth:`close`.
        """
        if self._transport is transport:
            before, self._retired, self._transport = self._retired, transport, None
            if before is not None:
                await before.aclose()
