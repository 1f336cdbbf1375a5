"""Position in a live stream, from which the stream continues after a lost connection."""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

_REMEMBERED = 50_000
"""Number of messages whose ids are remembered, to recognise a message that is received again after a reconnection."""
_OVERLAP = timedelta(seconds=60)
"""The stream continues this much earlier, because a message can arrive after a message that was measured later."""


class StreamPosition:
    """Record of the messages that a live stream has yielded, to continue the stream after a lost connection.

    Args:
        since: start time of the stream, RFC 3339; None for new messages only.
    """

    def __init__(self, since: str | None) -> None:
        self._start = since
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._newest = ""
        self._received = datetime.now(UTC)

    def find_start_time(self) -> str | None:
        """Return the start time for the request that continues the stream; None to receive only new messages.

        After the first message, this is 60 seconds before the earlier of two times: the newest timestamp of a message,
        and the arrival of the last message. A device whose clock is ahead must not hide the messages of other devices.
        """
        if self._newest:
            self._start = (min(datetime.fromisoformat(self._newest), self._received) - _OVERLAP).isoformat()
        return self._start

    def set_missing_start_to_now(self) -> None:
        """Set a missing start time to now; if the connection is lost before the first message, none is missed."""
        self._start = self._start or datetime.now(UTC).isoformat()

    def record_if_new(self, message: Mapping[str, Any]) -> bool:
        """Record a received message; return False if the stream has already yielded this message."""
        # An id is unique in its connection only.
        key = (message["Metadata"]["ConnectionLookup"], message["ID"])
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._newest, self._received = max(self._newest, message["Timestamp"]), datetime.now(UTC)
        return True
