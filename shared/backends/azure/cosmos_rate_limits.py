"""Leases of rate budgets in Cosmos DB: one small item a principal, one write a lease while one instance serves it."""

import asyncio
import hashlib
import math
import uuid
from collections.abc import Mapping
from typing import Any, Final, Self

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import RATE_LIMITS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.errors import Kind, WorkspaceError
from shared.rate_limits.limiter import LEASE_SECONDS
from shared.rate_limits.models import WINDOW_SECONDS
from shared.rate_limits.ports import Lease, LeaseRequest

BELIEVED_SECONDS: Final = 5.0
"""How long another instance's count of requests at work is believed; one that was killed takes nothing back."""

PATIENCE_SECONDS: Final = 1.0
"""A request waits for this; without an answer it is let in."""

_KNOWN: Final = 10_000


class CosmosLeaseStore:
    """The LeaseStore port over Cosmos DB.

    Args:
        account: where the container is.
        patience_seconds: how long an answer is waited for.
    """

    def __init__(self, account: CosmosAccount, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._state = CosmosItemStore(
            account,
            RATE_LIMITS,
            "RATE_LIMITS_UNAVAILABLE",
            "the store of rate limits",
            patience_seconds=patience_seconds,
        )
        self._patience = patience_seconds
        self._known: dict[str, Item] = {}

    async def lease(self, asked: LeaseRequest, at: float) -> Lease:
        """Settle the last lease and grant a new one."""
        place = hashlib.sha256(asked.principal.encode()).hexdigest()
        leases: list[Lease] = []

        def change(before: Item | None) -> Item:
            account = _PrincipalBudget.of(before, at)
            leases[:] = [account.leased(asked, at)]
            return {"id": place, **account.members()}

        try:
            async with asyncio.timeout(self._patience):
                item = await self._state.change(place, place, change, known=self._known.pop(place, None))
        except TimeoutError:
            detail = "the store of rate limits is slow"
            raise WorkspaceError(Kind.UNAVAILABLE, "RATE_LIMITS_UNAVAILABLE", detail) from None
        if item is not None and len(self._known) < _KNOWN:
            self._known[place] = item
        elif len(self._known) >= _KNOWN:
            self._known.clear()
        return leases[0]


class _PrincipalBudget:
    """What one principal has used of its budget.

    Settled leases are added up by the second of their last use, rounded up, so that the item stays small whatever the
    load: counted up to a second too long, never too short.
    """

    def __init__(
        self, settled: dict[int, int], running: dict[str, tuple[float, int]], working: dict[str, tuple[float, int]]
    ) -> None:
        self._settled = settled
        self._running = running
        self._working = working

    @classmethod
    def of(cls, item: Mapping[str, Any] | None, at: float) -> Self:
        """Return what an item says, without what left the window."""
        if item is None:
            return cls({}, {}, {})
        since = at - WINDOW_SECONDS
        settled = {int(second): count for second, count in item["settled"].items() if int(second) > since}
        running = {name: (float(ends), count) for name, (ends, count) in item["running"].items() if ends > since}
        believed = at - BELIEVED_SECONDS
        working = {name: (float(seen), count) for name, (seen, count) in item["working"].items() if seen > believed}
        return cls(settled, running, working)

    def members(self) -> Item:
        """Return what the item says."""
        settled = {str(second): count for second, count in self._settled.items()}
        return {"settled": settled, "running": self._running, "working": self._working}

    def leased(self, asked: LeaseRequest, at: float) -> Lease:
        """Settle the last lease and return a new one."""
        if asked.previous in self._running:
            self._running.pop(asked.previous)
            if asked.used:
                second = math.ceil(asked.used_until)
                self._settled[second] = self._settled.get(second, 0) + asked.used
        running = self._running.values()
        counted = sum(self._settled.values()) + sum(count for _, count in running)
        first = min([*self._settled, *(ends for ends, _ in running)], default=at)
        granted = max(0, min(asked.wanted, asked.budget - counted))
        lease_id = uuid.uuid4().hex[:16] if granted else ""
        if granted:
            self._running[lease_id] = (at + LEASE_SECONDS, granted)
        self._working[asked.instance] = (at, asked.active)
        elsewhere = sum(count for name, (_, count) in self._working.items() if name != asked.instance)
        left = max(0, asked.budget - counted - granted)
        return Lease(lease_id, granted, left, elsewhere, first + WINDOW_SECONDS)
