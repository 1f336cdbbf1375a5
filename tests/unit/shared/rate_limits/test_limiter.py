"""Budgets over several instances that share one store."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.backends.embedded.rate_limits import SCHEMA, SqliteLeaseStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import Kind, WorkspaceError
from shared.rate_limits.limiter import RateLimiter
from shared.rate_limits.models import FREE, WINDOW_SECONDS, Budget
from shared.rate_limits.ports import Lease, LeaseRequest


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Return the time, seconds since the epoch."""
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteLeaseStore]:
    """Return a store of its own for each test."""
    database = SqliteDatabase(tmp_path / "limits.sqlite", SCHEMA)
    yield SqliteLeaseStore(database)
    await database.close()


async def call(limiter: RateLimiter, budget: Budget = FREE, principal: str = "p") -> bool:
    """Return whether a request was let in."""
    async with limiter.admit(principal, budget) as admission:
        return admission.refusal is None


async def test_budget_is_exact(store: SqliteLeaseStore) -> None:
    """As many requests as the budget has are let in, the next one is refused and told when to come again."""
    clock = Clock()
    limiter = RateLimiter(store, clock)
    remaining = []
    for _ in range(FREE.requests):
        async with limiter.admit("p", FREE) as admission:
            assert admission.refusal is None
            remaining.append(admission.state.remaining)
    assert remaining == list(range(FREE.requests - 1, -1, -1))
    async with limiter.admit("p", FREE) as admission:
        assert admission.refusal is not None
        assert (admission.refusal.kind, admission.refusal.code) == (Kind.THROTTLED, "RATE_LIMITED")
        assert 1 <= int(str(admission.refusal.members["retryAfter"])) <= 60
    assert await call(limiter, principal="another")
    clock.now += 60
    assert await call(limiter)


@pytest.mark.parametrize("pause", [0.0, 0.3, 0.7, 60.4])
@pytest.mark.parametrize("before", [0.0, 0.4, 59.9])
async def test_who_waits_as_told_is_let_in(store: SqliteLeaseStore, before: float, pause: float) -> None:
    """A client that comes again after exactly the seconds that it was told, 60 at most, is let in, whoever asked."""
    clock = Clock()
    first, second = RateLimiter(store, clock), RateLimiter(store, clock)
    assert await call(first)
    clock.now += before
    while await call(first):
        pass
    clock.now += pause
    for limiter in (first, second):
        async with limiter.admit("p", FREE) as admission:
            if admission.refusal is not None:
                told = int(str(admission.refusal.members["retryAfter"]))
                assert told <= WINDOW_SECONDS
                assert f";t={told}" in admission.headers["RateLimit"]
                # Another request of the same caller, shortly before it is time.
                comes_at = clock.now + told
                clock.now = max(clock.now, comes_at - 1.01)
                assert not await call(second)
                clock.now = comes_at
                assert await call(limiter)


async def test_concurrency_is_bounded_across_instances(store: SqliteLeaseStore) -> None:
    """A principal has no more requests at work than allowed, also those at work elsewhere; one that ends makes room."""
    clock = Clock()
    first, second = RateLimiter(store, clock), RateLimiter(store, clock)
    async with AsyncExitStack() as open_requests:
        for _ in range(FREE.concurrent):
            admission = await open_requests.enter_async_context(first.admit("p", FREE))
            assert admission.refusal is None
            clock.now += 1.1
        assert not await call(first)
        assert not await call(second)
    clock.now += 10
    assert await call(first)
    assert await call(second)


async def test_failing_store_does_not_close_the_service() -> None:
    """While the store does not answer, requests go on, and few of them wait for it."""
    asked_at: list[float] = []

    class Down:
        async def lease(self, asked: LeaseRequest, at: float) -> Lease:
            asked_at.append(at)
            raise WorkspaceError(Kind.UNAVAILABLE, "RATE_LIMITS_UNAVAILABLE", f"down at {at} for {asked.principal}")

    clock = Clock()
    limiter = RateLimiter(Down(), clock)
    for _ in range(40):
        assert await call(limiter)
        clock.now += 0.5
    assert len(asked_at) == 2
    # What it allows by itself is a budget, not one after the other.
    clock.now += 10
    assert sum([await call(limiter) for _ in range(3 * FREE.requests)]) == FREE.requests
    async with limiter.admit("p", FREE) as admission:
        assert admission.refusal is not None
        clock.now += int(str(admission.refusal.members["retryAfter"]))
    assert await call(limiter)
    assert len(asked_at) == 4


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.floats(0, 20)), min_size=1, max_size=40)


@given(steps=STEPS, requests=st.integers(min_value=1, max_value=120))
@settings(max_examples=40, deadline=None)
async def test_no_window_holds_more_than_the_budget(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, float]], requests: int
) -> None:
    """Whatever three instances are asked and when, no 60 seconds hold more admitted requests than the budget."""
    database = SqliteDatabase(tmp_path_factory.mktemp("limits") / "limits.sqlite", SCHEMA)
    clock, budget = Clock(), Budget(requests, 1000)
    limiters = [RateLimiter(SqliteLeaseStore(database), clock) for _ in range(3)]
    admitted: deque[float] = deque()
    for instance, count, pause in steps:
        for _ in range(count):
            if await call(limiters[instance], budget):
                admitted.append(clock.now)
        while admitted and admitted[0] <= clock.now - 60:
            admitted.popleft()
        assert len(admitted) <= requests
        clock.now += pause
    await database.close()


async def test_shared_budget_is_used_up_within_three_percent(store: SqliteLeaseStore) -> None:
    """Four instances that are asked for twice the budget let in at least 97 of 100 of it, and no more than all."""
    clock, budget = Clock(), Budget(1000, 1000)
    limiters = [RateLimiter(store, clock) for _ in range(4)]
    let_in: list[Any] = []
    for second in range(60):
        for number in range(34):
            let_in.append(await call(limiters[(second + number) % 4], budget))
            clock.now += 1 / 34
    assert 970 <= sum(let_in) <= 1000
