"""Tests of rate limits in Cosmos DB: of the item with a principal's budget under any load, and of timeouts."""

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.pipeline.transport import AsyncHttpTransport
from hypothesis import given, settings
from hypothesis import strategies as st

from emulators.cosmos import CosmosServer, FaultKind, InjectedFault
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore, _PrincipalBudget
from shared.backends.azure.cosmos_transport import create_single_try_transport
from shared.errors import WorkspaceError
from shared.rate_limits.limiter import RateLimiter
from shared.rate_limits.models import Budget
from shared.rate_limits.ports import Lease, LeaseRequest
from shared.runtime import SYSTEM_RUNTIME
from tests.random_examples import scale_examples
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database
from tests.virtual_time import VirtualTime

LEASE = LeaseRequest("p", "i", previous="", used=0, used_until=0.0, wanted=1, active=1, budget=100)
STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.floats(0, 20)), min_size=1, max_size=40)


class InMemoryBudgets:
    """In-memory replacement of the Cosmos DB container with one rate-limit item for each principal."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        """Count the request, and grant a lease as the Cosmos DB store does."""
        at = read_unix_seconds()
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
@settings(max_examples=scale_examples(60), deadline=None)
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


async def test_the_timeout_of_a_lease_does_not_end_the_opening_of_the_account() -> None:
    """If the account opens more slowly than a lease may take, the lease fails, but the account opens once."""
    transports: list[AsyncHttpTransport[Any, Any]] = []

    def create_transport() -> AsyncHttpTransport[Any, Any]:
        transports.append(create_single_try_transport())
        return transports[-1]

    async with CosmosServer() as server:
        await create_database(server)
        server.faults.add(InjectedFault(FaultKind.DELAY, lambda sent: sent.operation == "read_account", seconds=0.5))
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key, create_transport=create_transport)
        with pytest.raises(WorkspaceError) as caught:
            await CosmosLeaseStore(account, timeout_seconds=0.05).lease_budget_slice(LEASE, time.time)
        assert caught.value.code == "RATE_LIMITS_UNAVAILABLE"
        assert (await CosmosLeaseStore(account, timeout_seconds=30).lease_budget_slice(LEASE, time.time)).granted == 1
        assert len(transports) == 1
        await account.close()
