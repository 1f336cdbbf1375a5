"""Messages to a client that wait while something else is sent to it first."""

from collections import deque

from emulators.web_pubsub.outbox import MAX_BYTES, MAX_MESSAGES
from emulators.web_pubsub.payloads import Payload


class HeldMessages:
    """A bounded queue; when it spills over, everything in it is lost, and that is known.

    Attributes:
        spilled: whether more came than it holds.
    """

    def __init__(self) -> None:
        self.has_overflowed = False
        self._payloads: deque[Payload] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._payloads)

    def put(self, payload: Payload) -> None:
        """Keep a message, unless there was too much before it."""
        if self.has_overflowed:
            return
        self._payloads.append(payload)
        self._bytes += len(payload.data)
        if len(self._payloads) > MAX_MESSAGES or self._bytes > MAX_BYTES:
            self.has_overflowed = True
            self._payloads.clear()

    def pop(self, most: int) -> list[Payload]:
        """Return the oldest messages, at most so many, and keep them no longer."""
        taken = [self._payloads.popleft() for _ in range(min(most, len(self._payloads)))]
        self._bytes -= sum(len(payload.data) for payload in taken)
        return taken
