"""Tests that every store of quota reservations ("places") meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from shared.backends.azure.cosmos_quotas import CosmosQuotaStore
from shared.backends.embedded.quotas import SCHEMA, SqliteQuotaStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.fair_use.ports import Purpose, QuotaReservation, QuotaStore
from tests.adapters.cosmos import KINDS, open_accounts

AT = 1_800_000_000.0
WHO = "p/ü?#"
type Opener = Callable[[], QuotaStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> QuotaStore:
            if account:
                return CosmosQuotaStore(account())
            database = SqliteDatabase(tmp_path / "places.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return SqliteQuotaStore(database)

        yield open_another


async def test_concurrent_reservations_respect_the_limit(open_store: Opener) -> None:
    """Processes that reserve concurrently together get exactly as many reservations as the limit allows."""
    stores = [open_store() for _ in range(3)]
    taken = await asyncio.gather(
        *(
            stores[n % 3].try_reserve(WHO, Purpose.JOBS, f"job-{n}", at_unix_seconds=AT + n, max_reservations=5)
            for n in range(15)
        )
    )
    assert sum(taken) == 5
    held = await stores[0].list_reservations(WHO, Purpose.JOBS)
    assert {place.id for place in held} == {f"job-{n}" for n in range(15) if taken[n]}


async def test_reservations_of_other_principals_do_not_count(open_store: Opener) -> None:
    """Reservations of other principals or purposes are not counted; repeating a reservation changes nothing."""
    store, other = open_store(), open_store()
    assert await store.try_reserve(WHO, Purpose.JOBS, "a", at_unix_seconds=AT, max_reservations=1)
    assert await other.try_reserve(WHO, Purpose.JOBS, "a", at_unix_seconds=AT + 1, max_reservations=1)
    assert not await other.try_reserve(WHO, Purpose.JOBS, "b", at_unix_seconds=AT, max_reservations=1)
    assert await other.try_reserve(WHO, Purpose.STREAMS, "b", at_unix_seconds=AT, max_reservations=1)
    assert await other.try_reserve("another", Purpose.JOBS, "b", at_unix_seconds=AT, max_reservations=1)
    assert list(await store.list_reservations(WHO, Purpose.JOBS)) == [QuotaReservation("a", AT)]
    assert list(await store.list_reservations("nobody", Purpose.JOBS)) == []


async def test_a_released_quota_place_can_be_reserved_again(open_store: Opener) -> None:
    """A released reservation is available at once; releasing a reservation that does not exist changes nothing."""
    store, other = open_store(), open_store()
    for reservation_id in ("a", "b"):
        assert await store.try_reserve(WHO, Purpose.STREAMS, reservation_id, at_unix_seconds=AT, max_reservations=2)
    await other.delete_reservations(WHO, Purpose.STREAMS, ["a", "missing"])
    await other.delete_reservations("nobody", Purpose.STREAMS, ["a"])
    assert await store.try_reserve(WHO, Purpose.STREAMS, "c", at_unix_seconds=AT + 1, max_reservations=2)
    assert [place.id for place in await store.list_reservations(WHO, Purpose.STREAMS)] == ["b", "c"]


async def test_a_finished_job_counts_only_with_its_size(open_store: Opener) -> None:
    """The reservation of a finished job does not count as active, but the bytes of the job still count."""
    store = open_store()
    assert await store.try_reserve(WHO, Purpose.JOBS, "a", at_unix_seconds=AT, max_reservations=1)
    assert await store.try_raise_reserved_size(
        WHO, Purpose.JOBS, "a", new_size=60, at_unix_seconds=AT, max_total_size=100
    )
    await store.mark_inactive(WHO, Purpose.JOBS, "a")
    await store.mark_inactive(WHO, Purpose.JOBS, "missing")
    assert await store.try_reserve(WHO, Purpose.JOBS, "b", at_unix_seconds=AT + 1, max_reservations=1)
    assert not await store.try_raise_reserved_size(
        WHO, Purpose.JOBS, "b", new_size=41, at_unix_seconds=AT, max_total_size=100
    )
    assert await store.try_raise_reserved_size(
        WHO, Purpose.JOBS, "b", new_size=40, at_unix_seconds=AT, max_total_size=100
    )
    assert await store.try_raise_reserved_size(
        WHO, Purpose.JOBS, "b", new_size=10, at_unix_seconds=AT, max_total_size=100
    )
    expected = [QuotaReservation("a", AT, active=False, size=60), QuotaReservation("b", AT + 1, size=40)]
    assert list(await store.list_reservations(WHO, Purpose.JOBS)) == expected


async def test_concurrent_size_changes_respect_the_limit(open_store: Opener) -> None:
    """If several processes increase sizes at the same time, the sum stays within the limit."""
    stores = [open_store() for _ in range(3)]
    grown = await asyncio.gather(
        *(
            stores[n % 3].try_raise_reserved_size(
                WHO, Purpose.JOBS, f"job-{n}", new_size=30, at_unix_seconds=AT, max_total_size=100
            )
            for n in range(9)
        )
    )
    assert sum(grown) == 3
    assert sum(place.size for place in await stores[1].list_reservations(WHO, Purpose.JOBS)) == 90
