"""Turns of principals at work that only a few can do at once in a process."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_REMEMBERED: Final = 10_000


class FairScheduler:
    """Gives places to principals in turn, and bounds how many of a principal work or wait.

    A principal with many pieces of work delays another one by at most the pieces that are at work.

    Args:
        places: how many work at once.
        per_principal: how many of one principal work or wait at once.
    """

    def __init__(self, places: int, per_principal: int) -> None:
        self._free = places
        self._per_principal = per_principal
        self._present: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._last_turn: dict[str, int] = {}
        self._turns = 0

    def has_room(self, principal: str) -> bool:
        """Return whether one more of a principal may work or wait."""
        return self._present[principal] < self._per_principal

    @asynccontextmanager
    async def turn(self, principal: str) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        self._present[principal] += 1
        try:
            await self._enter(principal)
            try:
                yield
            finally:
                self._leave()
        finally:
            self._present[principal] -= 1
            if not self._present[principal]:
                del self._present[principal]

    async def _enter(self, principal: str) -> None:
        if self._free:
            self._free -= 1
            self._note(principal)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(principal, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancel():
                self._leave()
            raise

    def _leave(self) -> None:
        """Hand the place to the principal whose last turn is longest ago."""
        while self._waiting:
            principal = min(self._waiting, key=lambda each: self._last_turn.get(each, 0))
            turns = self._waiting[principal]
            turn = turns.popleft()
            if not turns:
                del self._waiting[principal]
            if not turn.done():
                self._note(principal)
                turn.set_result(None)
                return
        self._free += 1

    def _note(self, principal: str) -> None:
        """Note that a principal has its turn now."""
        if len(self._last_turn) >= _REMEMBERED:
            self._last_turn.clear()
        self._turns += 1
        self._last_turn[principal] = self._turns
