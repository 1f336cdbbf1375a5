"""One connected client."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import orjson

from emulators.web_pubsub.holding import HeldMessages
from emulators.web_pubsub.outbox import ClientSocket, Outbox
from emulators.web_pubsub.payloads import Payload, build_frame
from emulators.web_pubsub.permissions import Permissions
from shared.observability.logs import fields, get_logger
from shared.timestamps import now

JSON_SUBPROTOCOL = "json.webpubsub.azure.v1"
NORMAL, POLICY, BROKEN, TRY_AGAIN_LATER, TOKEN_EXPIRED = 1000, 1008, 1011, 1013, 4401
"""Close codes: RFC 6455 section 7.4 and the IANA registry, the last of this service's own."""

_LOGGER = get_logger("emulators.web_pubsub")
_MAX_REASON_BYTES = 123
_RUN_MESSAGES, _RUN_BYTES = 500, 256 * 1024
"""What is sent between two looks at whether the client keeps up; far below what it may be behind by."""


class ClientConnection:
    """A client that is connected, from the accepted handshake on.

    Attributes:
        id: unique in the process.
        user_id: None for an anonymous client.
        subprotocol: that was agreed on, None for a plain client.
        groups: that it is in; the hub keeps them.
        permissions: what it may do by itself.
        state: of the connection, as the event handler last set it; opaque.
        close_reason: why this side closed it, empty otherwise.
    """

    def __init__(
        self,
        connection_id: str,
        wire: ClientSocket,
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
        self._wire = wire
        self._outbox = Outbox(wire, self._close_slow_client)
        self._deadline: asyncio.TimerHandle | None = None
        self._held: HeldMessages | None = None

    def send(self, payload: Payload) -> None:
        """Send a message after those before it, without waiting; a client that is too far behind is closed (1013)."""
        if self._held is not None:
            self._held.put(payload)
        else:
            self._outbox.put(self._frame(payload))

    def hold(self) -> None:
        """Hold messages back from now on, and forget those held back so far; what is sent at a pace passes."""
        self._held = HeldMessages()

    def has_overflowed(self) -> bool:
        """Return whether more came since ``hold`` than is held back."""
        return self._held is not None and self._held.has_overflowed

    async def release(self, unwanted: Callable[[bytes], bool]) -> None:
        """Send what was held back, at the client's pace, and hold nothing back any more.

        Args:
            unwanted: tells by its data whether a message is left out.
        """
        while self._held:
            run = [payload for payload in self._held.pop(_RUN_MESSAGES) if not unwanted(payload.data)]
            if not await self.send_all_when_drained(run):
                return
            if self._held.has_overflowed:
                self._close_slow_client()
                return
        self._held = None

    async def send_all_when_drained(self, payloads: Sequence[Payload]) -> bool:
        """Send messages in runs, each once the client took everything before it; return whether it is still there."""
        run_messages = run_bytes = 0
        for payload in payloads:
            run_messages, run_bytes = run_messages + 1, run_bytes + len(payload.data)
            if run_messages == 1 or run_messages > _RUN_MESSAGES or run_bytes > _RUN_BYTES:
                run_messages, run_bytes = 1, len(payload.data)
                if not await self.send_when_drained(payload):
                    return False
            else:
                self._outbox.put(self._frame(payload))
        return True

    async def send_when_drained(self, payload: Payload) -> bool:
        """Send a message once the client took everything before it, so that it never counts as behind for it.

        Returns:
            Whether the client is still there.
        """
        return await self._outbox.put_when_drained(self._frame(payload))

    def send_system_message(self, document: object) -> None:
        """Send a message of the subprotocol itself."""
        self._outbox.put(build_frame(orjson.dumps(document)))

    def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close; what still waits to be sent is dropped where the client does not take it at once."""
        self.close_reason = self.close_reason or reason
        if self.subprotocol == JSON_SUBPROTOCOL:
            self.send_system_message({"type": "system", "event": "disconnected", "message": reason})
        self._outbox.flush()
        self._outbox.discard()
        self._wire.end(code, reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore"))

    def close_at(self, instant: datetime, code: int = TOKEN_EXPIRED, reason: str = "the token expired") -> None:
        """Close at an instant, or at the one set before when that is earlier."""
        loop = asyncio.get_running_loop()
        at = loop.time() + (instant - now()).total_seconds()
        if self._deadline is None or at < self._deadline.when():
            self.cancel_deadline()
            self._deadline = loop.call_at(at, self.close, code, reason)

    def cancel_deadline(self) -> None:
        """Close at no instant; for a client that is gone."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def dispose(self) -> None:
        """Let go of everything, because the socket is closed."""
        self.cancel_deadline()
        self._outbox.discard()

    def _frame(self, payload: Payload) -> bytes:
        return payload.json_frame if self.subprotocol == JSON_SUBPROTOCOL else payload.plain_frame

    def _close_slow_client(self) -> None:
        _LOGGER.warning("a client fell too far behind and is closed", extra=fields(connectionId=self.id))
        self.close(TRY_AGAIN_LATER, "the client fell too far behind")
