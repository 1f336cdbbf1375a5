"""Clock for messages without a timestamp; it uses the service's time if the local clock is wrong."""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

TOLERATED_SECONDS = 60.0
"""A larger difference to the service's clock is corrected, because the service rejects times in the future."""


def _read_boot_clock_seconds() -> float:
    """Return the seconds since the machine was started, including the time during which it was suspended.

    On systems without ``CLOCK_BOOTTIME``, return ``time.monotonic()``, which may omit the suspended time.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ReceiveClock:
    """Clock that returns the local time, or the service's time if the two differ by more than a minute.

    Each reply of the service contains the service's time. Between two replies, the monotonic clock advances this time,
    because the local clock may be set in the meantime.

    Args:
        read_wall_clock: returns the time of this machine in seconds since 1970.
        read_monotonic_clock: returns the seconds since an arbitrary start; this clock cannot be set.
    """

    def __init__(
        self,
        read_wall_clock: Callable[[], float] = time.time,
        read_monotonic_clock: Callable[[], float] = _read_boot_clock_seconds,
    ) -> None:
        self._wall = read_wall_clock
        self._monotonic = read_monotonic_clock
        self._service_offset: float | None = None

    def now_unix_seconds(self) -> float:
        """Return the time in seconds since 1970."""
        wall = self._wall()
        if self._service_offset is None:
            return wall
        service = self._monotonic() + self._service_offset
        return wall if abs(wall - service) <= TOLERATED_SECONDS else service

    def record_service_time(self, date_header: str) -> None:
        """Record the service's time from the header ``Date`` of a reply; ignore a header that cannot be parsed."""
        try:
            seconds = parsedate_to_datetime(date_header).timestamp()
        except ValueError:
            return
        self._service_offset = seconds - self._monotonic()

    def get_clock_lead_seconds(self) -> float:
        """Return the seconds by which the local clock is ahead of the service's clock; 0 before the first reply."""
        if self._service_offset is None:
            return 0.0
        return self._wall() - (self._monotonic() + self._service_offset)
