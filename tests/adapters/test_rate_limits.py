"""Tests that every store of rate-limit leases meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore
from shared.backends.embedded.rate_limits import SCHEMA, SqliteLeaseStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.rate_limits.ports import Lease, LeaseRequest, LeaseStore
from tests.adapters.cosmos import KINDS, open_accounts

AT = 1_800_000_000.0
type Opener = Callable[[], LeaseStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several instances do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> LeaseStore:
            if account:
                return CosmosLeaseStore(account(), timeout_seconds=20)
            database = SqliteDatabase(tmp_path / "limits.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return SqliteLeaseStore(database)

        yield open_another


def build_lease_request(
    requests: int,
    *,
    previous: str = "",
    used: int = 0,
    used_until: float = AT + 1,
    instance: str = "one",
    active: int = 0,
    principal: str = "p/ü?#",
) -> LeaseRequest:
    """Return a request of an instance for a lease of this number of requests."""
    return LeaseRequest(principal, instance, previous, used, used_until, requests, active, 10)


async def test_a_lease_reduces_the_request_budget_of_other_instances(open_store: Opener) -> None:
    """The lease of one instance reduces the remaining request budget of the other instances."""
    first, second = open_store(), open_store()
    lease = await first.lease_budget_slice(build_lease_request(6), lambda: AT)
    assert (lease.granted, lease.left, lease.active_on_other_instances) == (6, 4, 0)
    other = await second.lease_budget_slice(build_lease_request(6, instance="two"), lambda: AT + 1)
    assert (other.granted, other.left) == (4, 0)
    empty = await second.lease_budget_slice(
        build_lease_request(1, instance="two", previous=other.id, used=4), lambda: AT + 2
    )
    assert (empty.id, empty.granted, empty.frees_at) == ("", 0, AT + 61)
    assert (await first.lease_budget_slice(build_lease_request(1, principal="another"), lambda: AT + 2)).granted == 1


async def test_unused_budget_is_available_after_the_lease_is_settled(open_store: Opener) -> None:
    """The unused part of a lease is available again after the lease is settled."""
    store = open_store()
    lease = await store.lease_budget_slice(build_lease_request(8), lambda: AT)
    settled = await store.lease_budget_slice(build_lease_request(1, previous=lease.id, used=2), lambda: AT + 1)
    assert (settled.granted, settled.left) == (1, 7)
    unused = await store.lease_budget_slice(build_lease_request(0, previous=settled.id), lambda: AT + 1)
    assert (unused.granted, unused.left) == (0, 8)


async def test_used_budget_is_available_again_after_one_minute(open_store: Opener) -> None:
    """Used budget is available again one minute after its last use."""
    store = open_store()
    lease = await store.lease_budget_slice(build_lease_request(10), lambda: AT - 0.5)
    settled = await store.lease_budget_slice(
        build_lease_request(0, previous=lease.id, used=10, used_until=AT), lambda: AT + 1
    )
    assert settled.frees_at == AT + 60
    assert (await store.lease_budget_slice(build_lease_request(5), lambda: AT + 59.9)).granted == 0
    assert (await store.lease_budget_slice(build_lease_request(5), lambda: AT + 60)).granted == 5


async def test_the_budget_of_an_unsettled_lease_counts_as_used(open_store: Opener) -> None:
    """If an instance dies without settling its lease, the lease counts as used."""
    await open_store().lease_budget_slice(build_lease_request(10), lambda: AT)
    assert (await open_store().lease_budget_slice(build_lease_request(5, instance="two"), lambda: AT + 30)).granted == 0
    assert (await open_store().lease_budget_slice(build_lease_request(5, instance="two"), lambda: AT + 61)).granted == 5


async def test_active_requests_of_other_instances_are_reported(open_store: Opener) -> None:
    """Each instance gets the number of requests that the other instances are executing at this time."""
    store = open_store()
    await store.lease_budget_slice(build_lease_request(1, active=3), lambda: AT)
    assert (
        await store.lease_budget_slice(build_lease_request(1, instance="two", active=2), lambda: AT + 1)
    ).active_on_other_instances == 3
    assert (
        await store.lease_budget_slice(build_lease_request(1, instance="three"), lambda: AT + 2)
    ).active_on_other_instances == 5
    assert (
        await store.lease_budget_slice(build_lease_request(1, instance="three"), lambda: AT + 5.5)
    ).active_on_other_instances == 2
    assert (
        await store.lease_budget_slice(build_lease_request(1, instance="three"), lambda: AT + 20)
    ).active_on_other_instances == 0


async def test_simultaneous_leases_share_the_budget(open_store: Opener) -> None:
    """The sum of simultaneous leases does not exceed the budget."""
    stores = [open_store() for _ in range(3)]
    given: list[Lease] = await asyncio.gather(
        *(
            stores[number % 3].lease_budget_slice(build_lease_request(2, instance=f"i{number}"), lambda: AT)
            for number in range(9)
        )
    )
    assert sum(lease.granted for lease in given) == 10
    assert len({lease.id for lease in given if lease.granted}) == 5


@pytest.mark.parametrize("is_settled", [False, True])
async def test_usage_before_the_clock_was_set_back_counts_for_one_window(
    open_store: Opener, *, is_settled: bool
) -> None:
    """After the clock is set back by an hour, earlier usage counts for one minute only."""
    store = open_store()
    lease = await store.lease_budget_slice(build_lease_request(10), lambda: AT + 3600)
    if is_settled:
        await store.lease_budget_slice(
            build_lease_request(0, previous=lease.id, used=10, used_until=AT + 3600), lambda: AT + 3600
        )
    empty = await store.lease_budget_slice(build_lease_request(5, instance="two"), lambda: AT)
    assert empty.granted == 0
    assert empty.frees_at <= AT + 61
    assert (await store.lease_budget_slice(build_lease_request(5, instance="two"), lambda: AT + 62)).granted == 5


async def test_active_requests_before_the_clock_was_set_back_are_ignored(open_store: Opener) -> None:
    """If an instance died before the clock was set back, its active requests are not counted."""
    store = open_store()
    await store.lease_budget_slice(build_lease_request(1, active=3), lambda: AT + 3600)
    assert (
        await store.lease_budget_slice(build_lease_request(1, instance="two"), lambda: AT)
    ).active_on_other_instances == 0
