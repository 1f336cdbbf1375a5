"""Which groups somebody may be in, so that nothing is sent where nobody listens."""

import time

from shared.live_stream.ports import Clock, MessageService

PRESENT_SECONDS = 60.0
"""After a listener was let in, its group counts as listened to for so long without being asked for."""

ABSENT_SECONDS = 1.0
"""How long the service's word that a group is empty is taken, for listeners that another process lets in."""


class Audience:
    """Remembers who listens to what; a group that this process let somebody into is never taken for empty.

    Args:
        service: knows the groups.
        clock: monotonic seconds.
    """

    def __init__(self, service: MessageService, clock: Clock = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._present_until: dict[str, float] = {}
        self._absent_until: dict[str, float] = {}

    def expect(self, groups: tuple[str, ...]) -> None:
        """Note that a listener is about to join groups; to be called before it is told that it may."""
        until = self._clock() + PRESENT_SECONDS
        for group in groups:
            self._present_until[group] = until
            self._absent_until.pop(group, None)

    async def can_have_listeners(self, group: str) -> bool:
        """Return False only when nobody is in a group.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        asked_at = self._clock()
        if asked_at < self._present_until.get(group, 0.0):
            return True
        if asked_at < self._absent_until.get(group, 0.0):
            return False
        if await self._service.has_streams(group):
            self._present_until[group] = max(self._present_until.get(group, 0.0), asked_at + PRESENT_SECONDS)
            return True
        if asked_at < self._present_until.get(group, 0.0):
            return True  # somebody was let in while the service was asked
        self._absent_until[group] = asked_at + ABSENT_SECONDS
        return False
