"""Limit of the tasks of one principal (user or service) that an instance runs at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from shared.errors import Kind, WorkspaceError

_RETRY_AFTER_SECONDS: Final = 5


class PrincipalSlots:
    """Slots for the tasks of each principal: a limited number runs at once, and further tasks wait in order.

    A principal with many tasks does not delay the tasks of other principals, which have slots of their own.

    Args:
        per_principal: maximum number of tasks of one principal that run at once.
        throttled_detail: text of the error for a task that gets no slot in time.
    """

    def __init__(self, per_principal: int, throttled_detail: str) -> None:
        self._per_principal = per_principal
        self._throttled_detail = throttled_detail
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._active: Counter[str] = Counter()

    @asynccontextmanager
    async def occupy_slot(self, principal_id: str, wait_seconds: float) -> AsyncIterator[None]:
        """Context manager: wait for a slot of a principal, and occupy the slot while the block runs.

        Args:
            principal_id: member id of the principal.
            wait_seconds: maximum time to wait in seconds.

        Raises:
            WorkspaceError: THROTTLED ``THROTTLED`` if no slot became free in this time.
        """
        slots = self._slots.setdefault(principal_id, asyncio.Semaphore(self._per_principal))
        self._active[principal_id] += 1
        try:
            await self._acquire_slot(slots, wait_seconds)
            try:
                yield
            finally:
                slots.release()
        finally:
            self._active[principal_id] -= 1
            if not self._active[principal_id]:
                del self._active[principal_id], self._slots[principal_id]

    async def _acquire_slot(self, slots: asyncio.Semaphore, wait_seconds: float) -> None:
        try:
            async with asyncio.timeout(wait_seconds):
                await slots.acquire()
        except TimeoutError:
            raise WorkspaceError(
                Kind.THROTTLED, "THROTTLED", self._throttled_detail, retryAfter=_RETRY_AFTER_SECONDS
            ) from None
