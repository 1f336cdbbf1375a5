"""WebSocket connection of a client, and a buffer for new messages while earlier messages are replayed to the client."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime

import orjson

from emulators.web_pubsub.outbox import MAX_BYTES, MAX_MESSAGES, ClientSocket, Outbox
from emulators.web_pubsub.payloads import Payload, build_websocket_frame
from emulators.web_pubsub.permissions import Permissions
from shared.observability.logs import fields, get_logger
from shared.timestamps import now

JSON_SUBPROTOCOL = "json.webpubsub.azure.v1"
NORMAL, POLICY, BROKEN, TRY_AGAIN_LATER, TOKEN_EXPIRED = 1000, 1008, 1011, 1013, 4401
"""WebSocket close codes (RFC 6455 section 7.4, IANA registry); ``TOKEN_EXPIRED`` is specific to this service."""

_LOGGER = get_logger("emulators.web_pubsub")
_MAX_REASON_BYTES = 123
_BATCH_MESSAGES, _BATCH_BYTES = 500, 256 * 1024
"""Limits of a batch that is sent without waiting for the client, far below the limits of the outbox."""


class MessageBuffer:
    """Buffer for new messages while earlier messages are replayed; if it exceeds its limit, it drops all messages.

    Attributes:
        has_overflowed: True if the buffer has overflowed, so that its messages were dropped.
    """

    def __init__(self) -> None:
        self.has_overflowed = False
        self._payloads: deque[Payload] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._payloads)

    def put(self, payload: Payload) -> None:
        """Add a new message to the buffer; drop the message if the buffer has overflowed."""
        if self.has_overflowed:
            return
        self._payloads.append(payload)
        self._bytes += len(payload.data)
        if len(self._payloads) > MAX_MESSAGES or self._bytes > MAX_BYTES:
            self.has_overflowed = True
            self._payloads.clear()

    def pop_batch(self) -> list[Payload]:
        """Remove and return the oldest messages, up to the limits of a batch, but at least one if there are any."""
        batch: list[Payload] = []
        batch_bytes = 0
        while self._payloads and len(batch) < _BATCH_MESSAGES:
            batch_bytes += len(self._payloads[0].data)
            if batch and batch_bytes > _BATCH_BYTES:
                break
            batch.append(self._payloads.popleft())
        self._bytes -= sum(len(payload.data) for payload in batch)
        return batch


class ClientConnection:
    """Connection of a client whose handshake was accepted.

    Attributes:
        id: id of the connection, unique in the process.
        user_id: id of the client's user; None for an anonymous client.
        subprotocol: accepted WebSocket subprotocol; None for a client without subprotocol.
        groups: names of the client's groups; only the hub changes this set.
        permissions: permissions for the client's requests in the subprotocol json.webpubsub.azure.v1.
        state: opaque text that the event handler stored for this connection; None if it has stored none.
        close_reason: reason for which the server closed the connection; empty if the server did not close it.
    """

    def __init__(
        self,
        connection_id: str,
        client_socket: ClientSocket,
        *,
        user_id: str | None,
        subprotocol: str | None,
        roles: Iterable[str],
    ) -> None:
        self.id = connection_id
        self.user_id = user_id
        self.subprotocol = subprotocol
        self.groups: set[str] = set()
        self.permissions = Permissions(roles)
        self.state: str | None = None
        self.close_reason = ""
        self._socket = client_socket
        self._outbox = Outbox(client_socket, self._close_slow_client)
        self._deadline: asyncio.TimerHandle | None = None
        self._held: MessageBuffer | None = None

    def send_and_check_if_wait_needed(self, payload: Payload) -> bool:
        """Queue a message for the client and return at once.

        Close the connection (code 1013) if the client is too slow.

        Returns:
            True if the sender should wait with :meth:`wait_for_queue_room` before it sends more.
        """
        if self._held is not None:
            self._held.put(payload)
            return False
        return self._outbox.put_and_check_if_wait_needed(self._select_frame_for_subprotocol(payload))

    async def wait_for_queue_room(self) -> None:
        """Wait until less than half of the client's queue is used.

        Return after a short time if the client reads too slowly, so that it does not delay the sender.
        """
        await self._outbox.wait_for_queue_room()

    def start_buffering(self) -> None:
        """Start to buffer the messages instead of sending them; discard messages that are already buffered.

        The methods ``try_send_when_drained`` and ``try_send_all_when_drained`` bypass the buffer.
        """
        self._held = MessageBuffer()

    def has_overflowed(self) -> bool:
        """Return whether the buffer exceeded its limit since buffering began, so that it dropped its messages."""
        return self._held is not None and self._held.has_overflowed

    async def send_buffered_messages(self, is_unwanted: Callable[[bytes], bool]) -> None:
        """Send the buffered messages as fast as the client accepts them, then stop buffering.

        Args:
            is_unwanted: function that receives the data of a message and returns True to skip the message.
        """
        while self._held:
            run = [payload for payload in self._held.pop_batch() if not is_unwanted(payload.data)]
            # If every message of a batch is skipped, nothing is awaited; yield so that other tasks can run.
            await asyncio.sleep(0)
            if not await self.try_send_all_when_drained(run):
                return
            if self._held.has_overflowed:
                self._close_slow_client()
                return
        self._held = None

    async def try_send_all_when_drained(self, payloads: Iterable[Payload]) -> bool:
        """Send messages in batches; each batch is sent after the socket has accepted the previous batch.

        Args:
            payloads: messages; an iterator is read one batch at a time.

        Returns:
            True if the client is still connected.
        """
        batch_messages = batch_bytes = 0
        for payload in payloads:
            batch_messages, batch_bytes = batch_messages + 1, batch_bytes + len(payload.data)
            if batch_messages == 1 or batch_messages > _BATCH_MESSAGES or batch_bytes > _BATCH_BYTES:
                batch_messages, batch_bytes = 1, len(payload.data)
                if not await self.try_send_when_drained(payload):
                    return False
            else:
                self._outbox.put_and_check_if_wait_needed(self._select_frame_for_subprotocol(payload))
        return True

    async def try_send_when_drained(self, payload: Payload) -> bool:
        """Send a message after all earlier messages are written, so that a slow client does not overflow its queue.

        Returns:
            True if the client is still connected.
        """
        return await self._outbox.try_put_when_drained(self._select_frame_for_subprotocol(payload))

    def send_system_message(self, document: object) -> None:
        """Send a system message of the subprotocol, such as ``connected`` or ``ack``, as JSON."""
        self._outbox.put_and_check_if_wait_needed(build_websocket_frame(orjson.dumps(document)))

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close the connection with a close code; queued messages that cannot be written immediately are dropped."""
        self.close_reason = self.close_reason or reason
        if self.subprotocol == JSON_SUBPROTOCOL:
            self.send_system_message({"type": "system", "event": "disconnected", "message": reason})
        self._outbox.flush()
        self._outbox.discard_and_close()
        self._socket.close_with_code(code, reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore"))

    def close_at(
        self, instant: datetime, code: int = TOKEN_EXPIRED, reason: str = "The token has expired; request a new one."
    ) -> None:
        """Schedule the close of the connection at a time, unless an earlier close is already scheduled."""
        loop = asyncio.get_running_loop()
        at = loop.time() + (instant - now()).total_seconds()
        if self._deadline is None or at < self._deadline.when():
            self.cancel_scheduled_close()
            self._deadline = loop.call_at(at, self.close, code, reason)

    def cancel_scheduled_close(self) -> None:
        """Cancel the scheduled close of this client's connection."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def dispose(self) -> None:
        """Release the resources of the connection after its socket has closed."""
        self.cancel_scheduled_close()
        self._outbox.discard_and_close()

    def _select_frame_for_subprotocol(self, payload: Payload) -> bytes:
        return payload.json_frame if self.subprotocol == JSON_SUBPROTOCOL else payload.plain_frame

    def _close_slow_client(self) -> None:
        _LOGGER.warning("a client is too slow and is closed", extra=fields(connectionId=self.id))
        self.close(TRY_AGAIN_LATER, "The client is too slow.")
