"""Rate limiter with a budget of requests per principal that all instances share.

An instance leases a slice (share) of a principal's budget: a number of requests that it may admit within one second.
Most requests therefore need no call of the store. When it leases the next slice, the instance reports the time of the
last request and returns the unused requests to the budget. The store counts the used requests for 60 seconds from that
time, or from the end of the slice's second if nothing was reported. So in any period of 60 seconds, all instances
together admit at most as many requests as the budget has.

If the wall clock is set forward, the store no longer counts the slices that it leased before. An instance therefore
also ends its slice when its wall clock is set. In a minute with such a change, the instances can admit the requests of
up to two budgets.
"""

import asyncio
import contextvars
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.rate_limits.models import WINDOW_SECONDS, Budget, RateLimitState
from shared.rate_limits.ports import Lease, LeaseRequest, LeaseStore
from shared.runtime import SYSTEM_RUNTIME, Runtime

LEASE_SECONDS: Final = 1.0
STATEMENT_SECONDS: Final = 1.5
"""Time in seconds after which an instance states its number of active requests again, although no request arrives.

Other instances ignore a number that is older than five seconds, because its instance has possibly died.
"""
LARGEST_SHARE: Final = 20
"""Divisor of a budget: a slice is at most a twentieth of it, so that one instance does not block the others."""

_LOG = logs.get_logger("rate_limits")

FORGET_AFTER_SECONDS: Final = 300.0
OUTAGE_SECONDS: Final = 10.0
"""Seconds for which a failed store is not called again, because each call would delay a request."""
_MAX_PRINCIPALS: Final = 10_000
_CLOCK_TOLERANCE_SECONDS: Final = 1.0
"""If the wall clock and the monotonic clock advance by times that differ more, the wall clock was set."""


@dataclass(frozen=True, slots=True)
class RateLimitDecision:
    """Decision of the rate limiter to admit or reject a request.

    Attributes:
        state: state of the principal's limit.
        rejection: THROTTLED ``RATE_LIMITED`` if the request is rejected, else None.
    """

    state: RateLimitState
    rejection: WorkspaceError | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Rate-limit headers for the reply to the request."""
        return self.state.build_headers()


@dataclass(slots=True)
class _PrincipalUsage:
    """Leased slice (share) of one principal's budget on this instance, and the number of requests that used it.

    ``active`` is the number of requests in progress. ``used_until`` is the Unix time of the last admitted request.
    ``ends`` is a time of the monotonic clock, because a slice must also end after the wall clock was set back.
    ``clock_difference`` is the wall clock minus the monotonic clock, in seconds, at the time of the lease.
    ``stated`` is the number of active requests that the store got last, at the time ``stated_at`` of the monotonic
    clock. After a failure of the store it is 0, because other instances ignore the number before ``outage_ends``, until
    when no further number is stated.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    lease: Lease | None = None
    ends: float = 0.0
    clock_difference: float = 0.0
    used: int = 0
    used_until: float = 0.0
    active: int = 0
    stated: int = 0
    stated_at: float = 0.0
    outage_ends: float = 0.0
    statements: asyncio.Task[None] | None = None

    def is_new_slice_needed(self) -> bool:
        """Return whether the leased slice of the budget is used up and a new slice can be requested from the store.

        The id of a slice is empty if the budget was used up or the store failed. Such a slice is not replaced before it
        expires.
        """
        return self.count_unused_requests() <= 0 and (self.lease is None or self.lease.id != "")

    def is_stating(self) -> bool:
        """Return whether a task states the number of active requests to the store."""
        return self.statements is not None and not self.statements.done()

    def compute_next_statement_time(self) -> float:
        """Return the time of the monotonic clock at which the number of active requests must be stated again."""
        return max(self.stated_at + STATEMENT_SECONDS, self.outage_ends)

    def count_unused_requests(self) -> int:
        return 0 if self.lease is None else self.lease.granted - self.used


class RateLimiter:
    """Limits the request rate and the concurrent requests of each principal (user or service).

    Args:
        store: store of the leases, shared by all instances.
        runtime: clock, randomness and threads.
    """

    def __init__(self, store: LeaseStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._instance = runtime.new_id()
        self._usages: dict[str, _PrincipalUsage] = {}
        self._is_closed = False
        self._runtime = runtime

    @asynccontextmanager
    async def admit(self, principal: str, budget: Budget) -> AsyncIterator[RateLimitDecision]:
        """Context manager: yield the decision to admit or reject a request, and count the request until it ends."""
        usage = self._get_principal_usage(principal)
        lease = await self._get_current_lease(principal, usage, budget)
        if usage.active + lease.active_on_other_instances >= budget.concurrent:
            yield RateLimitDecision(
                self._build_rate_limit_state(usage, budget),
                _build_rate_limit_error("Too many concurrent requests; wait for replies before sending more.", 1),
            )
            return
        usage.active += 1
        self._start_statements(principal, usage, budget)
        try:
            yield await self._decide_by_request_budget(principal, usage, budget)
        finally:
            usage.active -= 1

    async def close(self) -> None:
        """Stop the tasks that state the numbers of active requests to the store."""
        self._is_closed = True
        tasks = [usage.statements for usage in self._usages.values() if usage.statements is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_statements(self, principal: str, usage: _PrincipalUsage, budget: Budget) -> None:
        if not self._is_closed and not usage.is_stating():
            # The task serves many requests, so it must not inherit the log context of the first one.
            usage.statements = asyncio.get_running_loop().create_task(
                self._state_active_requests_until_none(principal, usage, budget), context=contextvars.Context()
            )

    async def _state_active_requests_until_none(self, principal: str, usage: _PrincipalUsage, budget: Budget) -> None:
        """State the number of active requests to the store again and again, until no request is active.

        Leases state the number, too. But an instance leases nothing while its requests run and no further one arrives.
        """
        while usage.active or usage.stated:
            seconds = usage.compute_next_statement_time() - self._runtime.monotonic()
            if seconds > 0:
                await self._runtime.sleep(seconds)
            else:
                await self._try_to_state_active_requests(principal, usage, budget)

    async def _try_to_state_active_requests(self, principal: str, usage: _PrincipalUsage, budget: Budget) -> None:
        start = self._runtime.monotonic()
        request = LeaseRequest(
            principal=principal,
            instance=self._instance,
            previous="",
            used=0,
            used_until=0.0,
            wanted=0,
            active=usage.active,
            budget=budget.requests,
        )
        try:
            await self._store.lease_budget_slice(request, self._read_unix_seconds)
        except WorkspaceError as error:
            _LOG.warning("the rate-limit store failed, so active requests are stated later: %s", error.detail)
            usage.stated, usage.outage_ends = 0, self._runtime.monotonic() + OUTAGE_SECONDS
        else:
            usage.stated, usage.stated_at = request.active, start

    async def _decide_by_request_budget(
        self, principal: str, usage: _PrincipalUsage, budget: Budget
    ) -> RateLimitDecision:
        if usage.is_new_slice_needed():
            async with usage.lock:
                # Another request may have leased a new slice while this one waited for the lock.
                if usage.is_new_slice_needed():
                    await self._renew_lease(principal, usage, budget)
        if usage.count_unused_requests() <= 0:
            state = self._build_rate_limit_state(usage, budget)
            return RateLimitDecision(
                state,
                _build_rate_limit_error(
                    "Too many requests in a minute; retry after the stated time.", state.reset_seconds
                ),
            )
        usage.used += 1
        usage.used_until = self._read_unix_seconds()
        return RateLimitDecision(self._build_rate_limit_state(usage, budget))

    async def _get_current_lease(self, principal: str, usage: _PrincipalUsage, budget: Budget) -> Lease:
        """Return the slice of the budget for the current second; it is possibly used up already."""
        if usage.lease is None or self._has_lease_ended(usage):
            async with usage.lock:
                if usage.lease is None or self._has_lease_ended(usage):
                    return await self._renew_lease(principal, usage, budget)
        return usage.lease

    def _has_lease_ended(self, usage: _PrincipalUsage) -> bool:
        return self._runtime.monotonic() >= usage.ends or self._has_clock_jumped_since_lease(usage)

    def _has_clock_jumped_since_lease(self, usage: _PrincipalUsage) -> bool:
        """Return whether the wall clock was set since the lease; the store may then no longer count this lease."""
        difference = self._read_unix_seconds() - self._runtime.monotonic()
        return abs(difference - usage.clock_difference) > _CLOCK_TOLERANCE_SECONDS

    async def _renew_lease(self, principal: str, usage: _PrincipalUsage, budget: Budget) -> Lease:
        """Lease a new slice (share) of a budget; lease again if the wall clock was set while the store worked."""
        lease = await self._lease_budget_slice(principal, usage, budget)
        return (
            await self._lease_budget_slice(principal, usage, budget)
            if self._has_clock_jumped_since_lease(usage)
            else lease
        )

    async def _lease_budget_slice(self, principal: str, usage: _PrincipalUsage, budget: Budget) -> Lease:
        start = self._runtime.monotonic()
        clock_difference = self._read_unix_seconds() - start
        previous = usage.lease
        wanted = max(1, min(usage.used * 2, budget.requests // LARGEST_SHARE))
        request = LeaseRequest(
            principal=principal,
            instance=self._instance,
            previous=previous.id if previous else "",
            used=usage.used,
            used_until=usage.used_until,
            wanted=wanted,
            active=usage.active,
            budget=budget.requests,
        )
        try:
            lease, ends = await self._store.lease_budget_slice(request, self._read_unix_seconds), start + LEASE_SECONDS
        except WorkspaceError as error:
            # Rate limits protect the service, so their store must not make the service unavailable.
            _LOG.warning("the rate-limit store failed, so this instance counts alone: %s", error.detail)
            lease = _build_local_lease(budget, self._read_unix_seconds() + OUTAGE_SECONDS)
            ends = self._runtime.monotonic() + OUTAGE_SECONDS
            usage.stated, usage.outage_ends = 0, ends
        else:
            usage.stated, usage.stated_at = request.active, start
        # A slice without requests expires when requests become available, so a caller that waits for the stated time is
        # admitted.
        if not lease.granted:
            ends = min(ends, self._runtime.monotonic() + lease.frees_at - self._read_unix_seconds())
        usage.lease, usage.used, usage.ends = lease, 0, ends
        # Not sooner: until here, requests see the previous slice, which has ended if the clock was set.
        usage.clock_difference = clock_difference
        return lease

    def _build_rate_limit_state(self, usage: _PrincipalUsage, budget: Budget) -> RateLimitState:
        lease = usage.lease
        if lease is None:
            return RateLimitState(budget, budget.requests, WINDOW_SECONDS)
        seconds = math.ceil(lease.frees_at - self._read_unix_seconds())
        # At most one window, because clients expect that. Requests of another instance in the current second may
        # count for one second longer.
        return RateLimitState(
            budget, max(0, lease.left + usage.count_unused_requests()), min(max(1, seconds), WINDOW_SECONDS)
        )

    def _get_principal_usage(self, principal: str) -> _PrincipalUsage:
        usage = self._usages.get(principal)
        if usage is None:
            if len(self._usages) >= _MAX_PRINCIPALS:
                self._delete_inactive_principals()
            usage = self._usages[principal] = _PrincipalUsage()
        return usage

    def _read_unix_seconds(self) -> float:
        """Return the current time in seconds since 1970."""
        return self._runtime.now().timestamp()

    def _delete_inactive_principals(self) -> None:
        """Delete the entries of principals without a request in the last ``FORGET_AFTER_SECONDS``."""
        limit = self._runtime.monotonic() - FORGET_AFTER_SECONDS
        self._usages = {
            principal: usage
            for principal, usage in self._usages.items()
            if usage.active or usage.is_stating() or usage.ends > limit
        }


def _build_local_lease(budget: Budget, frees_at_unix_seconds: float) -> Lease:
    """Build a lease of the whole budget, without the store; an instance uses it while the store is unavailable."""
    return Lease("", budget.requests, 0, 0, frees_at_unix_seconds)


def _build_rate_limit_error(detail: str, retry_after_seconds: int) -> WorkspaceError:
    return WorkspaceError(Kind.THROTTLED, "RATE_LIMITED", detail, retryAfter=retry_after_seconds)
