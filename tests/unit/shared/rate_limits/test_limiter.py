"""Tests of rate limits that several instances with one store share."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.backends.embedded.rate_limits import SCHEMA, SqliteLeaseStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import Kind, WorkspaceError
from shared.rate_limits.limiter import FORGET_AFTER_SECONDS, STATEMENT_SECONDS, RateLimiter
from shared.rate_limits.models import FREE, WINDOW_SECONDS, Budget
from shared.rate_limits.ports import Lease, LeaseRequest
from shared.runtime import Runtime
from tests.random_examples import scale_examples
from tests.virtual_time import VirtualTime


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteLeaseStore]:
    """Return a new store for the leases of rate limit budgets."""
    database = SqliteDatabase(tmp_path / "limits.sqlite", SCHEMA)
    yield SqliteLeaseStore(database)
    await database.close()


async def is_request_admitted(limiter: RateLimiter, budget: Budget = FREE, principal: str = "p") -> bool:
    """Send a request to the limiter; return whether it was admitted."""
    async with limiter.admit(principal, budget) as decision:
        return decision.rejection is None


async def yield_to_tasks() -> None:
    """Let all other tasks run until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_exactly_the_budget_of_requests_is_admitted(store: SqliteLeaseStore) -> None:
    """Exactly as many requests as the budget are admitted; the next one is rejected with the time to wait."""
    clock = VirtualTime()
    limiter = RateLimiter(store, runtime=clock.runtime)
    remaining = []
    for _ in range(FREE.requests):
        async with limiter.admit("p", FREE) as decision:
            assert decision.rejection is None
            remaining.append(decision.state.remaining)
    assert remaining == list(range(FREE.requests - 1, -1, -1))
    async with limiter.admit("p", FREE) as decision:
        assert decision.rejection is not None
        assert (decision.rejection.kind, decision.rejection.code) == (Kind.THROTTLED, "RATE_LIMITED")
        assert 1 <= int(str(decision.rejection.members["retryAfter"])) <= 60
    assert await is_request_admitted(limiter, principal="another")
    clock.advance(60)
    assert await is_request_admitted(limiter)


@pytest.mark.parametrize("pause", [0.0, 0.3, 0.7, 60.4])
@pytest.mark.parametrize("before", [0.0, 0.4, 59.9])
async def test_a_caller_that_waits_for_the_stated_time_is_admitted(
    store: SqliteLeaseStore, before: float, pause: float
) -> None:
    """A rejected caller that waits for the stated number of seconds, at most 60, is admitted by each instance."""
    clock = VirtualTime()
    first, second = RateLimiter(store, runtime=clock.runtime), RateLimiter(store, runtime=clock.runtime)
    assert await is_request_admitted(first)
    clock.advance(before)
    while await is_request_admitted(first):
        pass
    clock.advance(pause)
    for limiter in (first, second):
        async with limiter.admit("p", FREE) as decision:
            if decision.rejection is not None:
                seconds = int(str(decision.rejection.members["retryAfter"]))
                assert seconds <= WINDOW_SECONDS
                assert f";t={seconds}" in decision.headers["RateLimit"]
                # A request shortly before the stated time is rejected.
                retry_at = clock.seconds + seconds
                clock.advance(max(0, retry_at - 1.01 - clock.seconds))
                assert not await is_request_admitted(second)
                clock.advance(retry_at - clock.seconds)
                assert await is_request_admitted(limiter)


async def test_concurrency_is_limited_across_instances(store: SqliteLeaseStore) -> None:
    """Concurrent requests are counted over all instances; when a request completes, a further request is admitted."""
    clock = VirtualTime()
    first, second = RateLimiter(store, runtime=clock.runtime), RateLimiter(store, runtime=clock.runtime)
    async with AsyncExitStack() as open_requests:
        for _ in range(FREE.concurrent):
            decision = await open_requests.enter_async_context(first.admit("p", FREE))
            assert decision.rejection is None
            clock.advance(1.1)
        assert not await is_request_admitted(first)
        assert not await is_request_admitted(second)
    clock.advance(10)
    assert await is_request_admitted(first)
    assert await is_request_admitted(second)


class ObservedStore:
    """Lease store that records the requests of a limiter.

    Args:
        store: store that gives the leases.
    """

    def __init__(self, store: SqliteLeaseStore) -> None:
        self._store = store
        self._called = asyncio.Event()
        self.requests: list[LeaseRequest] = []

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        """Record a request and return its lease."""
        lease = await self._store.lease_budget_slice(request, read_unix_seconds)
        self.requests.append(request)
        self._called.set()
        return lease

    async def advance_until_statement(self, clock: VirtualTime, seconds: float = STATEMENT_SECONDS) -> None:
        """Advance the clock, and wait until the limiter has stated its number of active requests."""
        self._called.clear()
        async with asyncio.timeout(10):
            while not clock.has_sleepers:  # noqa: ASYNC110  the clock has no event for this
                await asyncio.sleep(0)
            clock.advance(seconds)
            await self._called.wait()


async def test_long_requests_of_another_instance_count_until_they_end(store: SqliteLeaseStore) -> None:
    """Requests count for the concurrency of all instances while they run, also if no further request arrives."""
    clock, observed = VirtualTime(), ObservedStore(store)
    first, second = RateLimiter(observed, runtime=clock.runtime), RateLimiter(store, runtime=clock.runtime)
    async with AsyncExitStack() as open_requests:
        for _ in range(FREE.concurrent):
            await open_requests.enter_async_context(first.admit("p", FREE))
        for _ in range(10):
            await observed.advance_until_statement(clock)
        assert not await is_request_admitted(second)
    await observed.advance_until_statement(clock)
    assert observed.requests[-1].active == 0
    assert await is_request_admitted(second)


async def test_active_requests_are_stated_1_5_seconds_after_the_last_lease(store: SqliteLeaseStore) -> None:
    """The number of active requests is stated again 1.5 seconds after the last lease, which states it, too."""
    clock, observed = VirtualTime(), ObservedStore(store)
    limiter = RateLimiter(observed, runtime=clock.runtime)
    async with limiter.admit("p", FREE):
        await yield_to_tasks()
        clock.advance(STATEMENT_SECONDS - 0.25)
        assert await is_request_admitted(limiter)
        clock.advance(0.25)
        await yield_to_tasks()
        await observed.advance_until_statement(clock, STATEMENT_SECONDS - 0.25)
        assert [request.wanted > 0 for request in observed.requests] == [True, True, False]
    await limiter.close()


async def test_a_closed_limiter_calls_the_store_no_longer(store: SqliteLeaseStore) -> None:
    """A closed limiter does not state its active requests, so that the store can be closed afterwards."""
    clock, observed = VirtualTime(), ObservedStore(store)
    limiter = RateLimiter(observed, runtime=clock.runtime)
    async with limiter.admit("p", FREE):
        await observed.advance_until_statement(clock)
        await limiter.close()
        async with limiter.admit("p", FREE):
            before = len(observed.requests)
            await yield_to_tasks()
            clock.advance(STATEMENT_SECONDS)
            await yield_to_tasks()
        assert (len(observed.requests), len(asyncio.all_tasks())) == (before, 1)


async def test_a_principal_is_not_forgotten_while_its_requests_are_stated(store: SqliteLeaseStore) -> None:
    """The entry of an inactive principal is deleted only after its task has ended, so that `close` ends each task."""
    clock = VirtualTime()
    limiter = RateLimiter(store, runtime=clock.runtime)
    assert await is_request_admitted(limiter)
    clock.now += timedelta(seconds=FORGET_AFTER_SECONDS + 10)
    limiter._delete_inactive_principals()
    assert list(limiter._usages) == ["p"]
    await limiter.close()
    limiter._delete_inactive_principals()
    assert not limiter._usages


async def test_a_failing_store_does_not_stop_the_service() -> None:
    """While the store fails, each instance admits requests by itself, and only a few of them wait for the store."""
    called_at: list[float] = []

    class UnavailableLeaseStore:
        async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
            called_at.append(at := read_unix_seconds())
            raise WorkspaceError(
                Kind.UNAVAILABLE,
                "RATE_LIMITS_UNAVAILABLE",
                f"the lease store does not respond to {request.principal} at {at}",
            )

    clock = VirtualTime()
    limiter = RateLimiter(UnavailableLeaseStore(), runtime=clock.runtime)
    for _ in range(40):
        assert await is_request_admitted(limiter)
        clock.advance(0.5)
    assert len(called_at) == 2
    # Without the store, the instance admits one budget in total and then rejects until `retryAfter`.
    clock.advance(10)
    assert sum([await is_request_admitted(limiter) for _ in range(3 * FREE.requests)]) == FREE.requests
    async with limiter.admit("p", FREE) as decision:
        assert decision.rejection is not None
        clock.advance(int(str(decision.rejection.members["retryAfter"])))
    assert await is_request_admitted(limiter)
    assert len(called_at) == 4


async def test_active_requests_are_not_stated_during_an_outage() -> None:
    """After each failed call of the store, the number of active requests is not stated for ten seconds."""
    called_at: list[float] = []

    class UnavailableLeaseStore:
        async def lease_budget_slice(self, *_: object) -> Lease:
            called_at.append(clock.seconds)
            raise WorkspaceError(Kind.UNAVAILABLE, "RATE_LIMITS_UNAVAILABLE", "the lease store does not respond")

    clock = VirtualTime()
    limiter = RateLimiter(UnavailableLeaseStore(), runtime=clock.runtime)
    async with limiter.admit("p", FREE):
        for _ in range(50):
            await yield_to_tasks()
            clock.advance(0.5)
    await limiter.close()
    assert called_at == [0, 10, 20]


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.floats(0, 20)), min_size=1, max_size=40)


@given(steps=STEPS, requests=st.integers(min_value=1, max_value=120))
@settings(max_examples=scale_examples(40), deadline=None)
async def test_any_60_seconds_have_at_most_the_budget_of_requests(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, float]], requests: int
) -> None:
    """Whatever the load on three instances is, they admit at most the budget in any 60 seconds."""
    database = SqliteDatabase(tmp_path_factory.mktemp("limits") / "limits.sqlite", SCHEMA)
    clock, budget = VirtualTime(), Budget(requests, 1000)
    limiters = [RateLimiter(SqliteLeaseStore(database), runtime=clock.runtime) for _ in range(3)]
    admitted: deque[float] = deque()
    for instance, count, pause in steps:
        for _ in range(count):
            if await is_request_admitted(limiters[instance], budget):
                admitted.append(clock.seconds)
        while admitted and admitted[0] <= clock.seconds - 60:
            admitted.popleft()
        assert len(admitted) <= requests
        clock.advance(pause)
    for limiter in limiters:
        await limiter.close()
    await database.close()


async def test_a_shared_budget_is_used_to_97_percent(store: SqliteLeaseStore) -> None:
    """If the load is twice the budget, four instances together admit 97 to 100 % of the budget."""
    clock, budget = VirtualTime(), Budget(1000, 1000)
    limiters = [RateLimiter(store, runtime=clock.runtime) for _ in range(4)]
    let_in: list[Any] = []
    for second in range(60):
        for number in range(34):
            let_in.append(await is_request_admitted(limiters[(second + number) % 4], budget))
            clock.advance(1 / 34)
    assert 970 <= sum(let_in) <= 1000


async def test_a_caller_is_admitted_a_minute_after_the_clock_was_set_back(store: SqliteLeaseStore) -> None:
    """If the clock is set back by an hour, a rejected caller is admitted after at most a minute."""
    clock, set_back = VirtualTime(), timedelta()
    runtime = Runtime(now=lambda: clock.now - set_back, monotonic=lambda: clock.seconds)
    limiter = RateLimiter(store, runtime=runtime)
    while await is_request_admitted(limiter):
        pass
    set_back = timedelta(hours=1)
    clock.advance(1)
    assert not await is_request_admitted(limiter)
    clock.advance(WINDOW_SECONDS + 1)
    assert await is_request_admitted(limiter)


async def test_a_slice_is_not_used_after_the_clock_was_set_forward(store: SqliteLeaseStore) -> None:
    """After the clock is set forward, no instance uses a slice that the store may no longer count."""
    clock, set_forward = VirtualTime(), timedelta()
    runtime = Runtime(now=lambda: clock.now + set_forward, monotonic=lambda: clock.seconds)
    budget = Budget(100, 1000)
    limiters = [RateLimiter(store, runtime=runtime) for _ in range(20)]
    for limiter in limiters:
        for _ in range(3):
            # A slice grows to five requests if the one before was used up.
            assert await is_request_admitted(limiter, budget)
    set_forward = timedelta(hours=1)
    admitted = [await is_request_admitted(limiter, budget) for _ in range(20) for limiter in limiters]
    assert sum(admitted) == budget.requests


async def test_a_request_waits_for_the_new_slice_after_the_clock_was_set(store: SqliteLeaseStore) -> None:
    """While one request leases a new slice because the clock was set, another one does not use the ended slice."""
    clock, set_forward = VirtualTime(), timedelta()
    runtime = Runtime(now=lambda: clock.now + set_forward, monotonic=lambda: clock.seconds)
    budget, is_open = Budget(40, 1000), asyncio.Event()
    is_open.set()

    class SlowStore:
        async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
            await is_open.wait()
            return await store.lease_budget_slice(request, read_unix_seconds)

    limiter = RateLimiter(SlowStore(), runtime=runtime)
    # The second slice has two requests, of which one is unused.
    assert [await is_request_admitted(limiter, budget) for _ in range(2)] == [True, True]
    set_forward = timedelta(hours=1)
    is_open.clear()
    requests = [asyncio.create_task(is_request_admitted(limiter, budget)) for _ in range(2)]
    done, _ = await asyncio.wait(requests, timeout=0)
    assert not done
    is_open.set()
    assert await asyncio.gather(*requests) == [True, True]


async def test_a_slice_is_replaced_if_the_clock_was_set_during_the_request_for_it(store: SqliteLeaseStore) -> None:
    """If the clock is set forward while the store grants a slice, the slice is replaced before its first use."""
    clock, set_forward = VirtualTime(), timedelta()
    runtime = Runtime(now=lambda: clock.now + set_forward, monotonic=lambda: clock.seconds)

    class LateReplies:
        async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
            nonlocal set_forward
            lease = await store.lease_budget_slice(request, read_unix_seconds)
            set_forward = timedelta(hours=1)
            return lease

    assert await is_request_admitted(RateLimiter(LateReplies(), runtime=runtime), Budget(1, 1000))
    assert not await is_request_admitted(RateLimiter(store, runtime=runtime), Budget(1, 1000))
