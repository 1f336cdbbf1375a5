"""Rate limits in Cosmos DB: leases of slices (shares) of a principal's request budget.

Each principal has one small item, and each lease costs one write.
"""

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import RATE_LIMITS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.errors import Kind, WorkspaceError
from shared.rate_limits.limiter import LEASE_SECONDS
from shared.rate_limits.models import WINDOW_SECONDS
from shared.rate_limits.ports import Lease, LeaseRequest

BELIEVED_SECONDS: Final = 5.0
"""Age in seconds at which another instance's number of active requests is ignored, because the instance has died.

Instances whose clocks differ by this time also ignore each other's numbers.
"""

TIMEOUT_SECONDS: Final = 1.0
"""Timeout for a lease from the store; after the timeout, the caller's request is admitted without a lease."""

_KNOWN: Final = 10_000


class CosmosLeaseStore:
    """Implementation of LeaseStore: stores leased slices of rate-limit budgets in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
        timeout_seconds: timeout in seconds of a request for a lease.
    """

    def __init__(self, account: CosmosAccount, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._account = account
        self._items = CosmosItemStore(
            account,
            RATE_LIMITS,
            "RATE_LIMITS_UNAVAILABLE",
            "the store of rate limits",
            retry_seconds=timeout_seconds,
        )
        self._timeout_seconds = timeout_seconds
        self._runtime = account.runtime
        self._known: dict[str, Item] = {}

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        place = hashlib.sha256(request.principal.encode()).hexdigest()
        leases: list[Lease] = []

        def lease_slice_of_budget(before: Item | None) -> Item:
            at = read_unix_seconds()
            usage = _PrincipalBudget.from_item(before, at)
            leases[:] = [usage.lease(request, at, self._runtime.new_id()[:16])]
            return {"id": place, **usage.to_item_properties()}

        try:
            async with asyncio.timeout(self._timeout_seconds):
                item = await self._items.change(
                    place, place, lease_slice_of_budget, known_item=self._known.pop(place, None)
                )
        except TimeoutError:
            detail = "The store of rate limits did not respond in time; retry later."
            raise WorkspaceError(Kind.UNAVAILABLE, "RATE_LIMITS_UNAVAILABLE", detail) from None
        if item is not None and len(self._known) < _KNOWN:
            self._known[place] = item
        elif len(self._known) >= _KNOWN:
            self._known.clear()
        return leases[0]


class _PrincipalBudget:
    """Stored usage of one principal's rate budget.

    The usage of ended leases is summed per second, so that the item remains small under any load. Times are rounded up,
    so usage can count for up to one second too long, but never too short.

    Args:
        settled: number of used requests of ended leases, by second since the epoch.
        running: end time and number of requests of each running lease, by lease id.
        working: time and number of active requests that each instance stated last, by instance id.
    """

    def __init__(
        self, settled: dict[int, int], running: dict[str, tuple[float, int]], working: dict[str, tuple[float, int]]
    ) -> None:
        self._settled = settled
        self._running = running
        self._working = working

    @classmethod
    def from_item(cls, item: Mapping[str, Any] | None, unix_seconds: float) -> Self:
        """Parse the usage of a budget from a Cosmos DB item; omit usage before the rate-limit window.

        The window ends at ``unix_seconds``, the current time. An instance's number of active requests is omitted if
        its time differs from the current time by :data:`BELIEVED_SECONDS` or more. If the clock was set back, stored
        times can be in the future: a lease then counts as taken now, and a used request as used now.
        """
        if item is None:
            return cls({}, {}, {})
        since, second, latest = unix_seconds - WINDOW_SECONDS, math.ceil(unix_seconds), unix_seconds + LEASE_SECONDS
        settled: Counter[int] = Counter()
        for stored, count in item["settled"].items():
            if int(stored) > since:
                settled[min(int(stored), second)] += count
        running = {
            name: (min(float(ends), latest), count) for name, (ends, count) in item["running"].items() if ends > since
        }
        working = {
            name: (float(seen), count)
            for name, (seen, count) in item["working"].items()
            if abs(seen - unix_seconds) < BELIEVED_SECONDS
        }
        return cls(settled, running, working)

    def to_item_properties(self) -> Item:
        """Convert the usage of the budget to properties of a Cosmos DB item."""
        settled = {str(second): count for second, count in self._settled.items()}
        return {"settled": settled, "running": self._running, "working": self._working}

    def lease(self, request: LeaseRequest, unix_seconds: float, new_id: str) -> Lease:
        """Record how much of the instance's previous lease was used, and lease a new slice of the budget."""
        if request.previous in self._running:
            self._running.pop(request.previous)
            if request.used:
                second = math.ceil(request.used_until)
                self._settled[second] = self._settled.get(second, 0) + request.used
        running = self._running.values()
        counted = sum(self._settled.values()) + sum(count for _, count in running)
        first = min([*self._settled, *(ends for ends, _ in running)], default=unix_seconds)
        granted = max(0, min(request.wanted, request.budget - counted))
        lease_id = new_id if granted else ""
        if granted:
            self._running[lease_id] = (unix_seconds + LEASE_SECONDS, granted)
        self._working[request.instance] = (unix_seconds, request.active)
        other_active = sum(count for name, (_, count) in self._working.items() if name != request.instance)
        remaining = max(0, request.budget - counted - granted)
        return Lease(lease_id, granted, remaining, other_active, first + WINDOW_SECONDS)
