"""Fair scheduling of work with limited concurrency: principals (users and services) take turns."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_MAX_REMEMBERED: Final = 10_000


class FairScheduler:
    """Assigns slots (permissions to run one task) to principals in turn.

    A principal with many waiting tasks does not delay the tasks of another principal; only running tasks do.

    Args:
        slots: number of tasks that run concurrently.
        slots_per_principal: maximum number of running and waiting tasks of one principal. :meth:`occupy_slot` does not
            check it; the caller must limit the tasks, for example with :meth:`has_room`. Default: no limit.
        leaves_slots_free: True for long tasks: a principal gets a slot only if more slots are free than the principal
            occupies. Of 8 slots, the first principal therefore gets at most 4, and the second then at most 2.
    """

    def __init__(self, slots: int, slots_per_principal: float = math.inf, *, leaves_slots_free: bool = False) -> None:
        self._free_slots = slots
        self._per_principal = slots_per_principal
        self._leaves_slots_free = leaves_slots_free
        self._active: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._last_turn: dict[str, int] = {}
        self._turns = 0

    def has_room(self, principal_id: str) -> bool:
        """Return whether another task of a principal may run or wait."""
        return self._active[principal_id] < self._per_principal

    @asynccontextmanager
    async def occupy_slot(self, principal_id: str) -> AsyncIterator[None]:
        """Context manager: wait for a slot of the scheduler and occupy the slot while the block runs."""
        await self.acquire_slot(principal_id)
        try:
            yield
        finally:
            self.release_slot(principal_id)

    async def acquire_slot(self, principal_id: str) -> None:
        """Wait for a slot and occupy it until :meth:`release_slot`; see :meth:`occupy_slot` for a block."""
        self._active[principal_id] += 1
        try:
            await self._wait_for_slot(principal_id)
        except BaseException:
            self._forget_task(principal_id)
            raise

    def release_slot(self, principal_id: str) -> None:
        """Release a slot that :meth:`acquire_slot` occupied for a principal."""
        self._free_slot(principal_id)
        self._forget_task(principal_id)

    def _forget_task(self, principal_id: str) -> None:
        self._active[principal_id] -= 1
        if not self._active[principal_id]:
            del self._active[principal_id]

    async def _wait_for_slot(self, principal_id: str) -> None:
        if self._may_get_slot(principal_id):
            self._assign_slot(principal_id)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(principal_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free_slot(principal_id)
            raise

    def _may_get_slot(self, principal_id: str) -> bool:
        return self._free_slots > (self._running[principal_id] if self._leaves_slots_free else 0)

    def _assign_slot(self, principal_id: str) -> None:
        """Occupy a free slot, and record the turn, so that other waiting principals get the next slots."""
        self._free_slots -= 1
        self._running[principal_id] += 1
        if len(self._last_turn) >= _MAX_REMEMBERED:
            self._last_turn.clear()
        self._turns += 1
        self._last_turn[principal_id] = self._turns

    def _free_slot(self, principal_id: str) -> None:
        """Make a slot of a principal free, and give free slots to waiting principals.

        Principals whose previous turn was the longest time ago come first.
        """
        self._free_slots += 1
        self._running[principal_id] -= 1
        if not self._running[principal_id]:
            del self._running[principal_id]
        while ready := [each for each in self._waiting if self._may_get_slot(each)]:
            principal = min(ready, key=lambda each: self._last_turn.get(each, 0))
            turns = self._waiting[principal]
            turn = turns.popleft()
            if not turns:
                del self._waiting[principal]
            if not turn.done():
                self._assign_slot(principal)
                turn.set_result(None)
