"""Cache that remembers which groups of the message service have listeners, so that empty groups get no messages."""

from shared.live_stream.ports import MessageSender
from shared.runtime import SYSTEM_RUNTIME, Runtime

PRESENT_SECONDS = 60.0
"""Seconds after an admission or a positive check for which a group counts as occupied."""

ABSENT_SECONDS = 1.0
"""Seconds for which a group that was reported empty counts as empty; short, because other processes admit listeners."""


class Audience:
    """Cache of the groups (one for each connection) that have listeners, or listeners that are about to join.

    Args:
        sender: sender of live messages, which knows the groups.
        runtime: clock, randomness and threads.
    """

    def __init__(self, sender: MessageSender, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._sender = sender
        self._present_until: dict[str, float] = {}
        self._absent_until: dict[str, float] = {}
        self._runtime = runtime

    def expect_listener(self, groups: tuple[str, ...]) -> None:
        """Record that a listener is about to join groups; call this before the listener is admitted."""
        until = self._runtime.monotonic() + PRESENT_SECONDS
        for group in groups:
            self._present_until[group] = until
            self._absent_until.pop(group, None)

    async def can_have_listeners(self, group: str) -> bool:
        """Return False only if a group certainly has no listeners.

        Raises:
            WorkspaceError: UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        checked_at = self._runtime.monotonic()
        if checked_at < self._present_until.get(group, 0.0):
            return True
        if checked_at < self._absent_until.get(group, 0.0):
            return False
        if await self._sender.has_streams(group):
            self._present_until[group] = max(self._present_until.get(group, 0.0), checked_at + PRESENT_SECONDS)
            return True
        if checked_at < self._present_until.get(group, 0.0):
            return True  # a listener was admitted during the check
        self._absent_until[group] = checked_at + ABSENT_SECONDS
        return False
