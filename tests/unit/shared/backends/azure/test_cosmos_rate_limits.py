"""Tests of the Cosmos DB item that stores a principal's rate limit, under any load."""

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.backends.azure.cosmos_rate_limits import _PrincipalBudget
from shared.rate_limits.limiter import RateLimiter
from shared.rate_limits.models import Budget
from shared.rate_limits.ports import Lease, LeaseRequest
from shared.runtime import SYSTEM_RUNTIME
from tests.virtual_time import VirtualTime

STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.floats(0, 20)), min_size=1, max_size=40)


class InMemoryBudgets:
    """In-memory replacement of the Cosmos DB container with one rate-limit item for each principal."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    async def lease_budget_slice(self, request: LeaseRequest, read_time: Callable[[], float]) -> Lease:
        """Count the request, and grant a lease as the Cosmos DB store does."""
        at = read_time()
        text = self.held.get(request.principal)
        account = _PrincipalBudget.from_item(json.loads(text) if text else None, at)
        lease = account.lease(request, at, SYSTEM_RUNTIME.new_id())
        self.held[request.principal] = json.dumps(account.to_item_properties())
        return lease


async def is_request_admitted(limiter: RateLimiter, budget: Budget) -> bool:
    """Send a request to the limiter; return whether it was admitted."""
    async with limiter.admit("p", budget) as admission:
        return admission.rejection is None


@given(steps=STEPS, requests=st.integers(min_value=1, max_value=120))
@settings(max_examples=60, deadline=None)
async def test_any_60_seconds_have_at_most_the_budget_of_requests(
    steps: list[tuple[int, int, float]], requests: int
) -> None:
    """Whatever the load on three instances is, any 60 seconds have at most as many admitted requests as the budget."""
    clock, budget, items = VirtualTime(), Budget(requests, 1000), InMemoryBudgets()
    limiters = [RateLimiter(items, runtime=clock.runtime) for _ in range(3)]
    admitted: deque[float] = deque()
    for instance, count, pause in steps:
        for _ in range(count):
            if await is_request_admitted(limiters[instance], budget):
                admitted.append(clock.seconds)
        while admitted and admitted[0] <= clock.seconds - 60:
            admitted.popleft()
        assert len(admitted) <= requests
        clock.advance(pause)


async def test_the_item_stays_small_and_the_budget_is_used() -> None:
    """Four busy instances use at least 97 % of a budget, and its item is at most some kilobytes large."""
    clock, budget, items = VirtualTime(), Budget(1000, 1000), InMemoryBudgets()
    limiters = [RateLimiter(items, runtime=clock.runtime) for _ in range(4)]
    let_in: list[Any] = []
    for second in range(180):
        for number in range(34):
            let_in.append(await is_request_admitted(limiters[(second + number) % 4], budget))
            clock.advance(1 / 34)
    assert 970 <= sum(let_in[: 60 * 34]) <= 1000
    assert len(items.held["p"]) < 3_000
