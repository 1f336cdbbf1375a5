"""Load shedding: an instance processes few requests at the same time, and rejects requests while overloaded.

Without a limit, every request is slow under overload, and the queue remains after the load has ended. Here, an instance
has a few dozen slots. A request occupies one slot when it starts to run. All other requests wait in a queue, in the
order of their arrival. A short burst of any size is processed completely. The instance becomes overloaded if for some
time more than :data:`TOLERATED` requests wait and new requests arrive about as fast as waiting ones are admitted. While
overloaded, it rejects requests that have waited for :data:`PATIENCE_SECONDS`, as long as more than :data:`FEW` wait.
The overload ends after :data:`CALM_SECONDS` without a rejection. As in CoDel (RFC 8289), the time in the queue decides,
not the length of the queue.

A slow request mostly waits for another service, so it releases its slot after :data:`COUNTED_SECONDS` although it still
runs. While the instance is overloaded, the number of running requests of each path is limited to a share of the number
of slots. This limit counts a slow request until it ends, also after it has released its slot.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime

ALWAYS_ADMITTED: Final = frozenset({"/healthz", "/oi-api/live-stream/events"})
"""Paths that bypass the queue: the liveness check, and the events of the Web PubSub service."""
TOLERATED: Final = 96
"""The instance does not become overloaded while at most this number of requests wait."""
WINDOW_SECONDS: Final = 0.4
WINDOWS: Final = 5
"""Number of consecutive busy time windows after which the instance is overloaded."""
BUSY_RATIO: Final = 0.8
"""A time window is busy if at least this number of requests arrive per admitted request.

A burst does not make the following windows busy, because few further requests arrive in them.
"""
PATIENCE_SECONDS: Final = 0.1
FEW: Final = 8
"""Under overload, a request that has waited ``PATIENCE_SECONDS`` is rejected if more than this number wait."""
CALM_SECONDS: Final = 3.0
"""Time in seconds without rejections after which the overload ends."""
RECENT_SECONDS: Final = 10.0
WINDOWS_AGAIN: Final = 2
"""Number that replaces ``WINDOWS`` if a request was rejected within the last ``RECENT_SECONDS``."""
SHARES: Final = 4
"""Divisor of the number of slots; under overload, the quotient limits the running requests of each path.

A request counts until it ends, also after it has released its slot.
"""
COUNTED_SECONDS: Final = 0.25
"""Maximum time in seconds for which a request occupies a slot."""
RETRY_AFTER_SECONDS: Final = 1

_IS_ADMITTED: ContextVar[bool] = ContextVar("is_admitted", default=False)


@dataclass(frozen=True, slots=True, eq=False)
class _QueuedRequest:
    """A request that waits or is being processed.

    Attributes:
        path: URL path of the request.
        since: time at which the request arrived, in seconds.
        admission: future of the decision: True if the request is admitted, False if it is rejected.
    """

    path: str
    since: float
    admission: "asyncio.Future[bool]"


class CongestionDetector:
    """Detector of overload; counts arriving and admitted requests in time windows, and remembers the last rejection."""

    def __init__(self) -> None:
        self.is_overloaded = False
        self._since = 0.0
        self._arrived = self._admitted = self._windows = 0
        self._rejected_at = -math.inf

    def record_arrival(self) -> None:
        """Count an arriving request."""
        self._arrived += 1

    def record_admission(self) -> None:
        """Count an admitted request."""
        self._admitted += 1

    def record_rejection(self, now_seconds: float) -> None:
        """Remember the time of the last rejected request."""
        self._rejected_at = now_seconds

    def update_overload_state(self, now_seconds: float, waiting_requests: int) -> None:
        """End the current time window if its time is over, and update ``is_overloaded``.

        Args:
            now_seconds: current time in seconds.
            waiting_requests: number of waiting requests.
        """
        if self.is_overloaded:
            self.is_overloaded = now_seconds - self._rejected_at < CALM_SECONDS
        elif waiting_requests <= TOLERATED:
            self._start_time_window(now_seconds, 0)
        elif now_seconds - self._since >= WINDOW_SECONDS:
            # If this method was not called for longer than a window, no request arrived or ended in the meantime.
            is_busy = self._arrived >= BUSY_RATIO * max(1, self._admitted)
            self._start_time_window(now_seconds, self._windows + 1 if is_busy else 0)
        is_recent = now_seconds - self._rejected_at < RECENT_SECONDS
        if self._windows >= (WINDOWS_AGAIN if is_recent else WINDOWS):
            self.is_overloaded, self._rejected_at = True, now_seconds
            self._start_time_window(now_seconds, 0)

    def _start_time_window(self, now_seconds: float, busy_windows: int) -> None:
        """Start a time window with new counts; ``busy_windows`` is the number of consecutive busy windows before it."""
        self._since, self._windows = now_seconds, busy_windows
        self._arrived = self._admitted = 0


class LoadShedder:
    """Load shedder of one event loop: requests wait in a queue, and are rejected while the instance is overloaded.

    Args:
        max_running_requests: number of slots. More requests can run at the same time, because a request occupies a slot
            for at most :data:`COUNTED_SECONDS`.
        runtime: clock of the times in the queue.
    """

    def __init__(self, max_running_requests: int, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._places = max_running_requests
        self._clock = runtime.monotonic
        self._working: dict[_QueuedRequest, float] = {}
        self._waiting: deque[_QueuedRequest] = deque()
        # Requests that have been admitted and have not ended, also those that have released their slot.
        self._admitted_by_path: Counter[str] = Counter()
        self._detector = CongestionDetector()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def admit(self, path: str) -> AsyncIterator[None]:
        """Context manager: wait for a free slot, and occupy it while the block runs, at most :data:`COUNTED_SECONDS`.

        A nested call in the same task and the paths in :data:`ALWAYS_ADMITTED` do not wait and occupy no slot.

        Args:
            path: URL path of the request.

        Raises:
            WorkspaceError: UNAVAILABLE ``OVERLOADED`` if the request is rejected because of overload.
        """
        if path in ALWAYS_ADMITTED or _IS_ADMITTED.get():
            yield
            return
        request = _QueuedRequest(path, self._clock(), asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._detector.record_arrival()
        self._process_queue()
        try:
            if not await request.admission:
                count("workspace.overload.refusals")
                raise build_overload_error()
            token = _IS_ADMITTED.set(True)
            try:
                yield
            finally:
                _IS_ADMITTED.reset(token)
        finally:
            self._release_slot(request)

    def _release_slot(self, request: _QueuedRequest) -> None:
        """Release the slot of a request that has ended or was cancelled, and admit the next waiting request."""
        if not request.admission.cancel() and not request.admission.cancelled() and request.admission.result():
            self._admitted_by_path[request.path] -= 1
            if not self._admitted_by_path[request.path]:
                del self._admitted_by_path[request.path]
        self._working.pop(request, None)
        self._process_queue()

    def _has_free_slot(self, now_seconds: float) -> bool:
        """Return whether a slot is free; a request that runs longer than ``COUNTED_SECONDS`` occupies no slot."""
        while len(self._working) >= self._places:
            oldest, since = next(iter(self._working.items()))
            if now_seconds - since < COUNTED_SECONDS:
                return False
            del self._working[oldest]
        return True

    def _process_queue(self) -> None:
        """Admit or reject waiting requests, the oldest first, until no slot is free.

        Also schedule the next call of this method.
        """
        now = self._clock()
        self._detector.update_overload_state(now, len(self._waiting))
        while self._waiting:
            first = self._waiting[0]
            if not first.admission.done():  # else the request was cancelled
                if self._has_waited_too_long(first, now):
                    first.admission.set_result(False)
                elif self._has_free_slot(now):
                    self._admit_or_reject(first, now)
                else:
                    break
            self._waiting.popleft()
        self._schedule_queue_processing(now)

    def _has_waited_too_long(self, oldest_request: _QueuedRequest, now_seconds: float) -> bool:
        """Return whether the oldest waiting request must be rejected; if so, record the rejection."""
        if (
            self._detector.is_overloaded
            and len(self._waiting) > FEW
            and now_seconds - oldest_request.since >= PATIENCE_SECONDS
        ):
            self._detector.record_rejection(now_seconds)
            return True
        return False

    def _admit_or_reject(self, request: _QueuedRequest, now_seconds: float) -> None:
        """Admit a request; reject it if the instance is overloaded and runs its maximum of requests with this path.

        The maximum is a share of the number of slots; see :data:`SHARES`.
        """
        share = max(1, self._places // SHARES)
        if self._detector.is_overloaded and self._admitted_by_path[request.path] >= share:
            if len(self._waiting) > FEW:  # if only a few wait, this path alone has too many requests
                self._detector.record_rejection(now_seconds)
            request.admission.set_result(False)
            return
        self._detector.record_admission()
        self._admitted_by_path[request.path] += 1
        self._working[request] = now_seconds
        request.admission.set_result(True)

    def _schedule_queue_processing(self, now_seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        due = next(iter(self._working.values()), now_seconds) + COUNTED_SECONDS
        if self._detector.is_overloaded and len(self._waiting) > FEW:
            due = min(due, self._waiting[0].since + PATIENCE_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(max(0.001, due - now_seconds), self._process_queue)


def build_overload_error() -> WorkspaceError:
    """Return the error for a request that is rejected because of overload."""
    detail = "The service is overloaded; retry after the stated time."
    return WorkspaceError(Kind.UNAVAILABLE, "OVERLOADED", detail, retryAfter=RETRY_AFTER_SECONDS)
