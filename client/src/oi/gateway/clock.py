"""Clock that gives a time to messages without a timestamp; the service's clock corrects a wrong local clock."""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

TOLERATED_SECONDS = 60.0
"""A larger difference to the service's clock is corrected: the service rejects times in the future."""


class ReceiveClock:
    """Clock that uses the time of this machine or, if the two differ much, the time of the service.

    Each reply of the service states the service's time. Between replies, this time advances with the monotonic clock,
    which does not jump when the clock of the machine is set.

    Args:
        wall: returns the time of this machine in seconds since 1970.
        monotonic: returns the seconds since an arbitrary start; never jumps.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._service_offset: float | None = None

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        wall = self._wall()
        if self._service_offset is None:
            return wall
        service = self._monotonic() + self._service_offset
        return wall if abs(wall - service) <= TOLERATED_SECONDS else service

    def observe(self, date: str) -> None:
        """Store the service's time from the header ``Date`` of a reply; a header that cannot be parsed is ignored."""
        try:
            seconds = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        self._service_offset = seconds - self._monotonic()

    def get_difference(self) -> float:
        """Return the seconds by which this machine's clock is ahead of the service's clock; 0 if this is unknown."""
        if self._service_offset is None:
            return 0.0
        return self._wall() - (self._monotonic() + self._service_offset)
