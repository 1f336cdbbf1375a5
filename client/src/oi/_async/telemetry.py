"""Sending of telemetry: at once, or through a spool file that stores messages during an outage."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from oi._async.transport import AsyncTransport
from oi.batches import MAX_MESSAGES, add_message_id, encode_message, split_lines
from oi.spool_file import SpoolFile

_NDJSON = {"Content-Type": "application/x-ndjson"}


class AsyncTelemetry:
    """Sends telemetry for the data connections of the workspace."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def send(self, lookup: str, messages: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> int:
        """Send messages of a data connection in batches; return the number of messages.

        A message without a ``messageId`` gets one, so that the service stores the message once even if a request is
        repeated.

        Args:
            lookup: short name of the connection in URLs.
            messages: one message or several, as JSON objects; the properties ``timestamp`` and ``deviceId`` are
                optional.

        Raises:
            ForbiddenError: the API key may only send telemetry of other connections or devices.
            InvalidRequestError: a message is invalid; no message of the same batch was stored.
        """
        several = [messages] if isinstance(messages, Mapping) else messages
        lines = (encode_message(add_message_id(each)) for each in several)
        return sum([await self.send_lines(lookup, batch) for batch in split_lines(lines)])

    async def send_lines(self, lookup: str, lines: Iterable[bytes]) -> int:
        """Send one batch of messages as NDJSON lines; return their number. Each message needs a ``messageId``."""
        content = b"".join(lines)
        path = f"/oi-api/telemetry/{quote(lookup, safe='')}"
        # The service stores a messageId once, so the request is safe to repeat without remembering its reply.
        reply = await self._transport.request("POST", path, content=content, headers=_NDJSON, appends=True)
        return int(reply.json()["accepted"])

    def spool(self, path: Path | str) -> "AsyncSpool":
        """Open a spool file, which stores messages until the service has accepted them.

        Args:
            path: path of the file, created if it is missing; only one process may use the file at a time.
        """
        return AsyncSpool(self, SpoolFile(path))


class AsyncSpool:
    """File of messages that the service has not accepted yet; use the object as a context manager."""

    def __init__(self, telemetry: AsyncTelemetry, file: SpoolFile) -> None:
        self._telemetry = telemetry
        self._file = file

    async def __aenter__(self) -> Self:
        """Return the spool."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; messages that were not sent remain in the file."""
        self._file.close()

    def __len__(self) -> int:
        """Return the number of messages that still have to be sent."""
        return len(self._file)

    def put(self, lookup: str, messages: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        """Store messages of a connection on disk; :meth:`flush` sends them.

        Raises:
            ValueError: a message cannot be converted to JSON; no message is stored.
        """
        several = [messages] if isinstance(messages, Mapping) else messages
        self._file.add(lookup, [encode_message(add_message_id(each)) for each in several])

    async def flush(self) -> int:
        """Send all stored messages, oldest first; return the number of messages.

        Raises:
            ApiError: as :meth:`AsyncTelemetry.send`; messages that the service has not accepted stay on disk.
        """
        sent = 0
        while True:
            lookup, rows = self._file.read(MAX_MESSAGES)
            if not rows:
                return sent
            batch = next(split_lines(line for _, line in rows))
            await self._telemetry.send_lines(lookup, batch)
            self._file.remove([each for each, _ in rows[: len(batch)]])
            sent += len(batch)
