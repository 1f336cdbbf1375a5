"""Position in a live stream, from which the stream continues after a lost connection."""

import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

_REMEMBERED = 50_000
"""Minimum number of newest messages whose ids are remembered, because the service can repeat live messages, too."""
_OVERLAP = timedelta(seconds=60)
"""The stream continues this much earlier, because a message can arrive after a message that was measured later."""
_MAX_LAG = timedelta(hours=24)
"""A message that was measured earlier than this before the start of the stream has no plausible time."""
_MAX_REPLAY_PAUSE = timedelta(seconds=240)
"""After this time without progress a replay has ended; the service limits a replay to 200 seconds where live messages
arrive between replayed ones."""
_REPLAY_TAIL = 1_000
"""Number of last messages of a replay of which some can be live messages that arrived late.

A replay sends some hundred messages a second, and waits for its turn for at most 200 seconds; in this time, more late
messages in a row are unlikely.
"""
_CLOCK_STEP = timedelta(seconds=1)
"""Precision of the service's time, because an HTTP date has whole seconds."""


class StreamPosition:
    """Record of the messages that a live stream has yielded, to continue the stream after a lost connection.

    Args:
        since: start time of the stream, RFC 3339; None for new messages only.
    """

    def __init__(self, since: str | None) -> None:
        self._start = since
        self._earliest: datetime | None = None
        self._oldest: datetime | None = None
        self._replay: _Replay | None = None
        self._timestamps: dict[tuple[str, str], str] = {}
        self._max_remembered = 2 * _REMEMBERED
        self._newest = ""
        self._clock = _ServiceClock(datetime.now(UTC))
        self._received = self._clock.now()

    def find_start_time(self) -> str | None:
        """Return the start time for the request that continues the stream; None to receive only new messages.

        Before the first message, this is the start time of the stream. After it, this is the newest timestamp of all
        messages minus 60 seconds. If the last message arrived before its timestamp, its arrival is used instead: a
        device whose clock is ahead must not hide messages of other devices.

        The start time is never before the start of the stream, or 60 seconds before the first connection if only new
        messages are wanted. It can only be earlier if all timestamps are: the clocks of all devices can be behind, or a
        gateway sends stored messages after an outage. Even then it is at most 24 hours before the first connection.
        Older timestamps are ignored, because a clock that was reset to 1970 must not start a replay of all messages.

        While the service may still be sending stored messages (a replay), the start time is no later than the position
        of the replay: 60 seconds before the oldest of its last 1,000 messages, but not before the start of the replay.
        A live message does not show that the replay has ended, because the service can send live messages between
        replayed ones.
        """
        if self._newest and self._earliest is not None and self._oldest is not None:
            newest = datetime.fromisoformat(self._newest)
            is_late = self._oldest < newest < self._earliest
            start = _subtract_overlap(min(newest, self._received), self._oldest if is_late else self._earliest)
            # The connection may have been lost after the last message, so later time is no sign of an ended replay.
            if self._replay is not None and not self._replay.has_ended(self._received):
                start = min(start, self._replay.position)
            self._start = _format_in_utc(start)
        return self._start

    def record_connection_opened(self, opened_at: datetime) -> None:
        """Record that a connection was opened with the start time that `find_start_time` returned last.

        If there was no start time, or that of the stream is in the future, it is set to ``opened_at``, because the
        service sends new messages from then on. No message is then missed if the connection is lost before the first
        message arrives.

        Args:
            opened_at: current time by the clock of the service, because that of this computer can be wrong. It can be
                rounded down to whole seconds.
        """
        self._clock = _ServiceClock(opened_at)
        # The service has accepted the start time, so it is RFC 3339, possibly in lower case.
        start = None if self._start is None else datetime.fromisoformat(self._start.upper())
        if start is None or (self._earliest is None and start >= opened_at + _CLOCK_STEP):
            self._start = opened_at.isoformat()
            self._earliest = opened_at - _OVERLAP
        else:
            self._earliest = self._earliest or start
            self._replay = _Replay(start, opened_at)
        self._oldest = self._oldest or min(self._earliest, opened_at - _MAX_LAG)

    def record_if_new(self, message: Mapping[str, Any]) -> bool:
        """Record a received message; return False if the stream has already yielded this message."""
        timestamp, now = message["Timestamp"], self._clock.now()
        # An id is unique in its connection only.
        key = (message["Metadata"]["ConnectionLookup"], message["ID"])
        is_repeated = key in self._timestamps
        if self._replay is not None:
            self._replay.record_message(datetime.fromisoformat(timestamp), now, is_repeated=is_repeated)
        if is_repeated:
            return False
        self._newest, self._received = max(self._newest, timestamp), now
        self._timestamps[key] = timestamp
        if len(self._timestamps) > self._max_remembered:
            self._forget_old_messages()
        return True

    def _forget_old_messages(self) -> None:
        """Forget the ids of old messages that the service would not send again after a lost connection.

        The ids of the newest 50,000 messages are always remembered.
        """
        start = self.find_start_time() or ""
        surplus = len(self._timestamps) - _REMEMBERED
        entries = iter(self._timestamps.items())
        remembered = {key: timestamp for key, timestamp in islice(entries, surplus) if timestamp >= start}
        remembered.update(entries)
        self._timestamps = remembered
        # Half of the remembered ids is new before the next search, so that a message costs the same at every rate.
        self._max_remembered = 2 * len(remembered)


class _ServiceClock:
    """Clock of the service while a connection is open; it does not depend on the clock of this computer.

    Args:
        opened_at: time of the service at which the connection was opened.
    """

    def __init__(self, opened_at: datetime) -> None:
        self._opened_at = opened_at
        self._opened_at_monotonic = time.monotonic()

    def now(self) -> datetime:
        """Return the current time of the service; too early if this computer was suspended since the opening."""
        return self._opened_at + timedelta(seconds=time.monotonic() - self._opened_at_monotonic)


class _Replay:
    """Progress of a replay of stored messages, between which live messages can arrive.

    A message counts as replayed if it was measured before the connection was opened, and over a minute before its
    arrival. Replayed messages arrive in the order of their timestamps. A live message that arrives late looks like a
    replayed one, so the oldest of the last 1,000 messages that count as replayed is the position. A repeated message
    is certainly replayed, because the service seldom repeats live messages; messages before it are no longer needed.

    Args:
        start: start time of the replay.
        opened: time at which the connection was opened, by the clock of the service.
    """

    def __init__(self, start: datetime, opened: datetime) -> None:
        self._start = start
        self._last_timestamps = deque([start], maxlen=_REPLAY_TAIL)
        self._opened = opened
        self._newest = start
        self._progressed = opened

    @property
    def position(self) -> datetime:
        """Time from which messages may be missing if the connection is lost now."""
        return _subtract_overlap(min(self._last_timestamps), self._start)

    def record_message(self, measured_at: datetime, received_at: datetime, *, is_repeated: bool) -> None:
        """Update the replay's progress from the times of a message that was received during the replay or after it."""
        if self._start < measured_at < min(self._opened, received_at - _OVERLAP):
            if is_repeated:
                self._last_timestamps.clear()
            self._last_timestamps.append(measured_at)
            if measured_at > self._newest:
                self._newest, self._progressed = measured_at, received_at

    def has_ended(self, now: datetime) -> bool:
        """Return whether no newer replayed message has arrived for 240 seconds, so that the replay must have ended."""
        return now - self._progressed > _MAX_REPLAY_PAUSE


def _subtract_overlap(moment: datetime, earliest: datetime) -> datetime:
    """Return the time 60 seconds before ``moment``, but not before ``earliest``."""
    # The difference is compared, because 60 seconds before the first minute of year 1 is no `datetime`.
    return moment - _OVERLAP if moment - earliest > _OVERLAP else earliest


def _format_in_utc(moment: datetime) -> str:
    """Format a time in UTC, so that its text can be compared with the texts of message timestamps."""
    return moment.astimezone(UTC).isoformat()
