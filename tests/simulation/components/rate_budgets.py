"""Rate limit component: several limiters share one budget of requests."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from shared.errors import WorkspaceError
from shared.rate_limits.limiter import RateLimiter
from shared.rate_limits.models import Budget
from shared.rate_limits.ports import Lease, LeaseRequest, LeaseStore
from shared.wiring import Services
from tests.simulation.component import Component
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.world import World

_PRINCIPAL: Final = "busy@t"
_LIMITERS: Final = 2
"""Limiters of a process; each is an instance of its own for the store."""

_WINDOW: Final = 59 * MICROSECONDS
"""One minute, without the greatest difference of two hosts' clocks."""

_LARGEST_SHARE: Final = 20
_LONG_SHARE: Final = 0.02
"""Share of the requests that run for ``_LONG_SECONDS``, so that limiters state them to the store again."""
_LONG_SECONDS: Final = 4.0
_WAIT: Final = 150 * MICROSECONDS
"""Time after which a caller that obeys Retry-After is admitted: two windows and their roundings."""


class _ObservedStore:
    """Lease store that records whether its last call failed; the limiter then counts without the store."""

    def __init__(self, store: LeaseStore) -> None:
        self._store = store
        self.failures = 0
        self.has_failed = False

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        if not request.wanted:  # this states active requests, and the limiter ignores the reply
            return await self._store.lease_budget_slice(request, read_unix_seconds)
        try:
            lease = await self._store.lease_budget_slice(request, read_unix_seconds)
        except WorkspaceError:
            self.failures += 1
            self.has_failed = True
            raise
        self.has_failed = False
        return lease


@dataclass
class _Limiter:
    """Rate limiter of one process, with the number of requests that it admitted while its store failed."""

    limiter: RateLimiter
    store: _ObservedStore
    alone: int = 0


@dataclass(frozen=True)
class _Admission:
    """Time of an admitted request, with the shift of the simulated clocks at that time."""

    at: int
    clock_shift: timedelta


class RateBudgetsComponent(Component):
    """Clients send requests of one principal to two rate limiters in each process.

    Invariants: no minute contains more requests than the budget plus one unreported slice for each limiter; a limiter
    whose store fails admits at most one budget for each failure; after the last fault, a caller that obeys Retry-After
    is admitted.
    """

    name: ClassVar[str] = "rate-budgets"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/rate_limits/limiter.py",
        "shared/backends/embedded/rate_limits.py",
    )
    weight: ClassVar[int] = 14
    cosmos_weight: ClassVar[int] = 16

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._budget = Budget(world.random.choice((8, 40, 100)), 1_000)
        self._limiters: dict[Services, tuple[_Limiter, ...]] = {}
        self._admitted: list[_Admission] = []

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that together send more requests than the budget allows."""
        choices = self.world.random
        for _ in range(choices.randint(1, 4)):
            yield self._send_requests(choices.randint(20, 80), choices.choice((0.5, 1.0, 3.0)))

    async def _send_requests(self, count: int, longest_pause: float) -> None:
        for _ in range(count):
            await self.world.sleep(self.world.random.random() * longest_pause)
            await self._send_request()

    async def _send_request(self) -> int | None:
        """Send a request; return 0 if it is admitted, the seconds to wait if rejected, or None without a reply."""

        async def admit_request(services: Services) -> int:
            if services not in self._limiters:
                self._limiters[services] = tuple(_build_limiter(services) for _ in range(_LIMITERS))
            limiter = self.world.random.choice(self._limiters[services])
            async with limiter.limiter.admit(_PRINCIPAL, self._budget) as decision:
                if decision.rejection is None:
                    self._record_admission(limiter)
                    if self.world.random.random() < _LONG_SHARE:
                        await self.world.sleep(_LONG_SECONDS)
                    return 0
                return int(str(decision.rejection.members["retryAfter"]))

        try:
            return await run_on_instance(self.world, admit_request)
        except WorkFailedError:
            return None

    def _record_admission(self, limiter: _Limiter) -> None:
        self.world.trace("admitted")
        if limiter.store.has_failed:
            limiter.alone += 1
            most = limiter.store.failures * self._budget.requests
            self.world.require(limiter.alone <= most, "a limiter without a store admits more than its budget")
        else:
            self._admitted.append(_Admission(self.world.scheduler.now, self.world.clock_shift))

    async def complete_work(self) -> None:
        """Send requests to each process until it admits one."""
        for _ in range(4):
            last = self.world.scheduler.now + _WAIT
            while (seconds := await self._send_request()) != 0:
                self.world.require(self.world.scheduler.now < last, "a caller that waits as told is not admitted")
                await self.world.sleep(1 if seconds is None else seconds)

    def check_invariants(self, folder: Path) -> None:  # noqa: ARG002  the invariants concern replies only
        """Check that no minute contains more admitted requests than the budget permits."""
        slices = len(self._limiters) * _LIMITERS * max(1, self._budget.requests // _LARGEST_SHARE)
        most = self._budget.requests + slices
        for number, first in enumerate(self._admitted):
            # Clocks that are set forward end all slices.
            window = [
                each
                for each in self._admitted[number:]
                if each.at < first.at + _WINDOW and each.clock_shift == first.clock_shift
            ]
            self.world.require(len(window) <= most, f"a minute has {len(window)} requests, more than {most}")


def _build_limiter(services: Services) -> _Limiter:
    store = _ObservedStore(services.rate_limits._lease_store)
    return _Limiter(RateLimiter(store, runtime=services.runtime), store)
