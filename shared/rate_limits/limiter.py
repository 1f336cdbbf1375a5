"""Admits requests from slices of a shared budget, so that the steady path asks no store.

A slice is good for a second. Its requests count in the store until 60 seconds after that second or, once the instance
has told, after the last of them: no window holds more than the budget, whichever instance answered. What an instance
did not use goes back with its next slice.
"""

import asyncio
import math
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.rate_limits.models import WINDOW_SECONDS, Budget, RateLimitState
from shared.rate_limits.ports import Lease, LeaseRequest, LeaseStore

LEASE_SECONDS: Final = 1.0
LARGEST_SHARE: Final = 20
"""A slice is at most this part of the budget, so that one instance does not hold what another needs."""

_LOG = logs.get_logger("rate_limits")

FORGET_AFTER_SECONDS: Final = 300.0
OUTAGE_SECONDS: Final = 10.0
"""For how long a store that did not answer is left alone: whoever asks it waits."""
_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class RateLimitDecision:
    """Whether a request may go on.

    Attributes:
        standing: where its principal stands.
        refusal: THROTTLED ``RATE_LIMITED`` when it may not.
    """

    state: RateLimitState
    refusal: WorkspaceError | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """What the reply tells of the caller's limits."""
        return self.state.headers()


@dataclass(slots=True)
class _PrincipalUsage:
    """What this instance knows of one principal."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    lease: Lease | None = None
    ends: float = 0.0
    used: int = 0
    used_until: float = 0.0
    active: int = 0

    def is_used_up(self) -> bool:
        """Return whether another slice may be had; where the store gave none or was away, not before this ends."""
        return self.unused() <= 0 and (self.lease is None or self.lease.id != "")

    def unused(self) -> int:
        return 0 if self.lease is None else self.lease.granted - self.used


class RateLimiter:
    """Keeps principals within their budgets.

    Args:
        store: shared by all instances.
        clock: seconds since the epoch.
    """

    def __init__(self, store: LeaseStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._instance = uuid.uuid4().hex
        self._accounts: dict[str, _PrincipalUsage] = {}

    @asynccontextmanager
    async def admit(self, principal: str, budget: Budget) -> AsyncIterator[RateLimitDecision]:
        """Count a request while it is worked on, and tell whether it may be worked on."""
        account = self._account(principal)
        lease = await self._current(principal, account, budget)
        if account.active + lease.elsewhere >= budget.concurrent:
            yield RateLimitDecision(self._standing(account, budget), _refusal("Too many requests at once.", 1))
            return
        account.active += 1
        try:
            yield await self._take(principal, account, budget)
        finally:
            account.active -= 1

    async def _take(self, principal: str, account: _PrincipalUsage, budget: Budget) -> RateLimitDecision:
        if account.is_used_up():
            async with account.lock:
                # Another request may have brought a new slice while this one waited.
                if account.is_used_up():
                    await self._renew(principal, account, budget)
        standing = self._standing(account, budget)
        if account.unused() <= 0:
            return RateLimitDecision(standing, _refusal("Too many requests in a minute.", standing.reset_seconds))
        account.used += 1
        account.used_until = self._clock()
        return RateLimitDecision(self._standing(account, budget))

    async def _current(self, principal: str, account: _PrincipalUsage, budget: Budget) -> Lease:
        """Return the slice of this second; it may be empty."""
        if account.lease is None or self._clock() >= account.ends:
            async with account.lock:
                if account.lease is None or self._clock() >= account.ends:
                    return await self._renew(principal, account, budget)
        return account.lease

    async def _renew(self, principal: str, account: _PrincipalUsage, budget: Budget) -> Lease:
        at = self._clock()
        previous = account.lease
        wanted = max(1, min(account.used * 2, budget.requests // LARGEST_SHARE))
        asked = LeaseRequest(
            principal=principal,
            instance=self._instance,
            previous=previous.id if previous else "",
            used=account.used,
            used_until=account.used_until,
            wanted=wanted,
            active=account.active,
            budget=budget.requests,
        )
        try:
            lease, seconds = await self._store.lease(asked, at), LEASE_SECONDS
        except WorkspaceError as error:
            # A limit protects the service from its callers; it must not be what takes it from them.
            _LOG.warning("rate limits are not shared now: %s", error.detail)
            lease, seconds = _alone(budget, self._clock() + OUTAGE_SECONDS), OUTAGE_SECONDS
            at = self._clock()
        # Who waits as long as was told finds the budget asked for again, not an empty slice of the second before.
        ends = at + seconds if lease.granted else min(at + seconds, lease.frees_at)
        account.lease, account.used, account.ends = lease, 0, ends
        return lease

    def _standing(self, account: _PrincipalUsage, budget: Budget) -> RateLimitState:
        lease = account.lease
        if lease is None:
            return RateLimitState(budget, budget.requests, WINDOW_SECONDS)
        seconds = math.ceil(lease.frees_at - self._clock())
        # Never more than the window: clients read it as one. What another instance used in this very second may count
        # for a second more.
        return RateLimitState(budget, max(0, lease.left + account.unused()), min(max(1, seconds), WINDOW_SECONDS))

    def _account(self, principal: str) -> _PrincipalUsage:
        account = self._accounts.get(principal)
        if account is None:
            if len(self._accounts) >= _KEPT:
                self._forget()
            account = self._accounts[principal] = _PrincipalUsage()
        return account

    def _forget(self) -> None:
        """Drop the accounts that nobody used for a while."""
        limit = self._clock() - FORGET_AFTER_SECONDS
        self._accounts = {
            principal: account
            for principal, account in self._accounts.items()
            if account.active or account.ends > limit
        }


def _alone(budget: Budget, until: float) -> Lease:
    """Return what an instance allows by itself while the store does not answer."""
    return Lease("", budget.requests, 0, 0, until)


def _refusal(detail: str, retry_after: int) -> WorkspaceError:
    return WorkspaceError(Kind.THROTTLED, "RATE_LIMITED", detail, retryAfter=retry_after)
