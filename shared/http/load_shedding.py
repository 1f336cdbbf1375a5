"""Lets in as many requests as an instance can work on in time; when more keep coming, the rest are refused at once.

Without that a crowd makes everybody wait: requests pile up in the event loop, none of them is in time, and the pile
stays when the crowd has gone. A few dozen requests are worked on together and the others wait behind them, first come
first served. A burst is worked off, however large it is. A crowd stands when requests keep coming as fast as they are
worked on and more than a few dozen wait all the while: from then on who has waited for a moment is refused, until
nobody was for a few seconds (the idea of CoDel, RFC 8289: what counts is how long a queue stands, not how long it is).
A request that takes long waits for something else than this process, or is what it is: it makes room after a moment,
and is not counted any more; but while a crowd stands, no path has more than its share at work.
"""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability.metrics import count
from shared.settings import settings

ALWAYS_ANSWERED: Final = frozenset({"/healthz", "/oi-api/live-stream/events"})
"""Paths that take no turn: whether the process is alive, and what the message service asks for those whom it serves."""
TOLERATED: Final = 96
"""How many may wait without being a crowd: callers who each have their one request under way."""
PRESS_SECONDS: Final = 0.4
PRESSES: Final = 5
"""A crowd stands after so many spans of ``PRESS_SECONDS`` in each of which about as many came as were let in."""
PRESSING: Final = 0.8
"""How many must come for each that is let in; in a burst hardly anybody comes after its beginning."""
PATIENCE_SECONDS: Final = 0.1
FEW: Final = 8
"""In a crowd that stands somebody waits for no longer than ``PATIENCE_SECONDS``, unless so few wait."""
CALM_SECONDS: Final = 3.0
"""A crowd is over when for so long nobody had to be refused."""
RECENT_SECONDS: Final = 10.0
PRESSES_AGAIN: Final = 2
"""A crowd that was over for less than ``RECENT_SECONDS`` stands again after so many spans."""
SHARES: Final = 4
"""While a crowd stands, one path has this part of the places."""
COUNTED_SECONDS: Final = 0.25
"""For how long a request takes a place."""
RETRY_AFTER_SECONDS: Final = 1

_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A request that waits, or works.

    Attributes:
        path: what is asked for.
        since: when it began to wait.
        turn: whether it is let in, once that is known.
    """

    path: str
    since: float
    turn: "asyncio.Future[bool]"


class CongestionDetector:
    """Whether a crowd stands: told of everybody who comes, is let in, or is refused."""

    def __init__(self) -> None:
        self.stands = False
        self._since = 0.0
        self._came = self._went = self._presses = 0
        self._refused_at = -math.inf

    def comes(self) -> None:
        """Note that somebody comes."""
        self._came += 1

    def goes(self) -> None:
        """Note that somebody is let in."""
        self._went += 1

    def refuses(self, now: float) -> None:
        """Note that somebody is refused."""
        self._refused_at = now

    def judge(self, now: float, waiting: int) -> None:
        """Find out whether a crowd stands.

        Args:
            now: seconds.
            waiting: how many wait.
        """
        if self.stands:
            self.stands = now - self._refused_at < CALM_SECONDS
        elif waiting <= TOLERATED:
            self._begin(now, 0)
        elif now - self._since >= PRESS_SECONDS:
            # A span that took much longer is one in which nothing happened.
            presses = self._came >= PRESSING * max(1, self._went)
            self._begin(now, self._presses + 1 if presses else 0)
        again = now - self._refused_at < RECENT_SECONDS
        if self._presses >= (PRESSES_AGAIN if again else PRESSES):
            self.stands, self._refused_at = True, now
            self._begin(now, 0)

    def _begin(self, now: float, presses: int) -> None:
        self._since, self._presses = now, presses
        self._came = self._went = 0


class LoadShedder:
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
        self._of_path: Counter[str] = Counter()
        self._press = CongestionDetector()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def admit(self, path: str) -> AsyncIterator[None]:
        """Hold a place while a request is worked on; one that is handed on within the process keeps its place.

        Args:
            path: what is asked for.

        Raises:
            WorkspaceError: UNAVAILABLE ``OVERLOADED``.
        """
        if path in ALWAYS_ANSWERED or _INSIDE.get():
            yield
            return
        request = _Request(path, self._clock(), asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._press.comes()
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
            self._leave(request)

    def _leave(self, request: _Request) -> None:
        """Give the place of a request that has ended, or was given up, to the next."""
        if not request.turn.cancel() and not request.turn.cancelled() and request.turn.result():
            self._of_path[request.path] -= 1
            if not self._of_path[request.path]:
                del self._of_path[request.path]
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
        self._press.judge(now, len(self._waiting))
        while self._waiting:
            first = self._waiting[0]
            if not first.turn.done():  # else it went away
                if self._is_too_late(first, now):
                    first.turn.set_result(False)
                elif self._has_room(now):
                    self._let_in(first, now)
                else:
                    break
            self._waiting.popleft()
        self._look_again(now)

    def _is_too_late(self, first: _Request, now: float) -> bool:
        if self._press.stands and len(self._waiting) > FEW and now - first.since >= PATIENCE_SECONDS:
            self._press.refuses(now)
            return True
        return False

    def _let_in(self, request: _Request, now: float) -> None:
        """Let a request in, unless a crowd stands and its path has its share."""
        share = max(1, self._places // SHARES)
        if self._press.stands and self._of_path[request.path] >= share:
            if len(self._waiting) > FEW:  # where few wait it is this path alone that has too much to do
                self._press.refuses(now)
            request.turn.set_result(False)
            return
        self._press.goes()
        self._of_path[request.path] += 1
        self._working[request] = now
        request.turn.set_result(True)

    def _look_again(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        due = next(iter(self._working.values()), now) + COUNTED_SECONDS
        if self._press.stands and len(self._waiting) > FEW:
            due = min(due, self._waiting[0].since + PATIENCE_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(max(0.001, due - now), self._hand_out)


def overloaded() -> WorkspaceError:
    """Return the refusal of a request that there is no time for."""
    detail = "More is asked of the service than it can do at the moment; ask again."
    return WorkspaceError(Kind.UNAVAILABLE, "OVERLOADED", detail, retryAfter=RETRY_AFTER_SECONDS)


@cache
def get_load_shedder() -> LoadShedder:
    """Return the crowd of this process."""
    return LoadShedder(settings().max_at_work)
