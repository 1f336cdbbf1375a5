"""Audience: the groups that may have listeners, so that messages to empty groups are not sent."""

import time

from shared.live_stream.ports import Clock, MessageService

PRESENT_SECONDS = 60.0
"""Time after an admission or a positive check during which a group counts as occupied."""

ABSENT_SECONDS = 1.0
"""Time during which a group that the service reported empty counts as empty; other processes also admit listeners."""


class Audience:
    """Remembers which groups have listeners; a group with a listener admitted by this process is never empty.

    Args:
        service: message service that knows the groups.
        clock: returns monotonic seconds.
    """

    def __init__(self, service: MessageService, clock: Clock = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._present_until: dict[str, float] = {}
        self._absent_until: dict[str, float] = {}

    def expect(self, groups: tuple[str, ...]) -> None:
        """Record that a listener is about to join groups; call it before the listener is admitted."""
        until = self._clock() + PRESENT_SECONDS
        for group in groups:
            self._present_until[group] = until
            self._absent_until.pop(group, None)

    async def can_have_listeners(self, group: str) -> bool:
        """Return False only if a group has no listeners.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        checked_at = self._clock()
        if checked_at < self._present_until.get(group, 0.0):
            return True
        if checked_at < self._absent_until.get(group, 0.0):
            return False
        if await self._service.has_streams(group):
            self._present_until[group] = max(self._present_until.get(group, 0.0), checked_at + PRESENT_SECONDS)
            return True
        if checked_at < self._present_until.get(group, 0.0):
            return True  # a listener was admitted during the check
        self._absent_until[group] = checked_at + ABSENT_SECONDS
        return False
