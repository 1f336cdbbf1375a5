"""Which impulses were handed on a short while ago, so that a message that is sent again is not heard again."""

import time
from collections import OrderedDict
from typing import Final

from shared.live_stream.ports import Clock

REMEMBERED: Final = 50_000
"""Impulses of all connections together; about ten megabytes."""

KNOWN_SECONDS: Final = 600.0
"""Whoever sends again after a time-out does so sooner; far below the day after which the table takes an ID anew."""

_AFTER_ID: Final = b'","Timestamp":"'


class Repeats:
    """Remembers connection and ID of the impulses that this process handed on last.

    Args:
        most: how many.
        clock: monotonic seconds.
    """

    def __init__(self, most: int = REMEMBERED, clock: Clock = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._until: OrderedDict[tuple[str, bytes], float] = OrderedDict()

    def has(self, group: str, text: bytes) -> bool:
        """Return whether an impulse with the ID of this one was noted a short while ago.

        Args:
            group: its connection.
            text: the impulse as JSON text.
        """
        key = (group, _named(text))
        until = self._until.get(key)
        if until is None or self._clock() < until:
            return until is not None
        del self._until[key]
        return False

    def note(self, group: str, text: bytes) -> None:
        """Remember an impulse; one whose ID is not found is not remembered."""
        named = _named(text)
        if not named:
            return
        key = (group, named)
        self._until[key] = self._clock() + KNOWN_SECONDS
        if len(self._until) > self._most:
            self._until.popitem(last=False)


def _named(text: bytes) -> bytes:
    """Return the impulse's begin, which is its ID; within the ID every quotation mark is escaped.

    Reading the whole text as JSON would cost as much as handing it on.
    """
    return text[: max(0, text.find(_AFTER_ID))]
