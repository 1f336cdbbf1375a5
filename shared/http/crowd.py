"""Lets in as many requests as an instance can work on in time; when more keep coming, the rest are refused at once.

Without that a crowd makes everybody wait: requests pile up in the event loop, none of them is in time, and the pile
stays when the crowd has gone. A few dozen requests are worked on together and some wait behind them, first come first
served. Who has waited for too long in a crowd that does not get smaller is refused (the idea of CoDel, RFC 8289, where
what counts is how long a queue stands, not how long it is). A request that takes long waits for something else than
this process, or is what it is: it makes room after a moment, and is not counted any more.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability import count
from shared.settings import settings

ALWAYS_ANSWERED: Final = frozenset({"/healthz", "/oi-api/live-stream/events"})
"""Paths that take no turn: whether the process is alive, and what the message service asks for those whom it serves."""
TOLERATED: Final = 96
"""How many may wait, however long it takes: not a crowd, but callers who each have their one request under way."""
PATIENCE_SECONDS: Final = 0.4
STANDING_PATIENCE_SECONDS: Final = 0.2
"""How long somebody waits in a crowd; the shorter time holds once there has been a crowd for ``STANDING_SECONDS``."""
STANDING_SECONDS: Final = 1.0
COUNTED_SECONDS: Final = 0.25
"""For how long a request takes a place."""
RETRY_AFTER_SECONDS: Final = 1

_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A request that waits, or works.

    Attributes:
        since: when it began to wait.
        turn: whether it is let in, once that is known.
    """

    since: float
    turn: "asyncio.Future[bool]"


class Crowd:
    """The requests of one event loop: those at work, and those that wait for their turn.

    Args:
        places: how many are worked on together.
        clock: seconds.
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._clock = clock
        self._working: dict[_Request, float] = {}
        self._waiting: deque[_Request] = deque()
        self._standing_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, path: str) -> AsyncIterator[None]:
        """Hold a place while a request is worked on; one that is handed on within the process keeps its place.

        Args:
            path: what is asked for.

        Raises:
            WorkspaceError: UNAVAILABLE ``OVERLOADED``.
        """
        if path in ALWAYS_ANSWERED or _INSIDE.get():
            yield
            return
        request = _Request(self._clock(), asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._hand_out()
        try:
            if not await request.turn:
                count("workspace.overload.refusals")
                raise overloaded()
            mark = _INSIDE.set(True)
            try:
                yield
            finally:
                _INSIDE.reset(mark)
        finally:
            request.turn.cancel()
            self._working.pop(request, None)
            self._hand_out()

    def _has_room(self, now: float) -> bool:
        """Return whether a place is free; those that were taken for long enough are."""
        while len(self._working) >= self._places:
            oldest, since = next(iter(self._working.items()))
            if now - since < COUNTED_SECONDS:
                return False
            del self._working[oldest]
        return True

    def _hand_out(self) -> None:
        """Give turns and refusals to those in front, and look again when the next of either is due."""
        now = self._clock()
        while self._waiting:
            first = self._waiting[0]
            if first.turn.done():  # it went away
                self._waiting.popleft()
            elif self._is_crowded() and now - first.since >= self._patience(now):
                self._waiting.popleft().turn.set_result(False)
            elif self._has_room(now):
                self._waiting.popleft().turn.set_result(True)
                self._working[first] = now
            else:
                break
        self._look_again(now)

    def _is_crowded(self) -> bool:
        return len(self._waiting) > TOLERATED

    def _patience(self, now: float) -> float:
        stands = self._standing_since is not None and now - self._standing_since >= STANDING_SECONDS
        return STANDING_PATIENCE_SECONDS if stands else PATIENCE_SECONDS

    def _look_again(self, now: float) -> None:
        if not self._is_crowded():
            self._standing_since = None
        elif self._standing_since is None:
            self._standing_since = now
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        oldest = next(iter(self._working.values()), now) + COUNTED_SECONDS
        due = min(oldest, self._waiting[0].since + self._patience(now)) if self._is_crowded() else oldest
        self._timer = asyncio.get_running_loop().call_later(max(0.001, due - now), self._hand_out)


def overloaded() -> WorkspaceError:
    """Return the refusal of a request that there is no time for."""
    detail = "More is asked of the service than it can do at the moment; ask again."
    return WorkspaceError(Kind.UNAVAILABLE, "OVERLOADED", detail, retryAfter=RETRY_AFTER_SECONDS)


@cache
def crowd() -> Crowd:
    """Return the crowd of this process."""
    return Crowd(settings().max_at_work)
