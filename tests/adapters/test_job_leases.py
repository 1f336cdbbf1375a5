"""Tests that every lease store for background jobs meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.backends.azure.cosmos_jobs import CosmosJobLeaseStore
from shared.backends.embedded.jobs import SCHEMA, SqliteJobLeaseStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.background.ports import JobClaim, JobLeaseStore
from tests.adapters.cosmos import KINDS, open_accounts

JOB = "checkpoints"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = 30 * SECOND
type Opener = Callable[[], JobLeaseStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several instances do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> JobLeaseStore:
            if account:
                return CosmosJobLeaseStore(account())
            database = SqliteDatabase(tmp_path / "jobs.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return SqliteJobLeaseStore(database)

        yield open_another


async def claim_job(store: JobLeaseStore, holder: str, at: datetime, first_due: datetime = AT) -> JobClaim:
    return await store.claim_job(JOB, holder, at, at + LEASE, first_due)


async def test_new_job_is_due_at_its_first_due_time(open_store: Opener) -> None:
    """A new job gets no lease before the first time at which it is due."""
    store = open_store()
    assert await claim_job(store, "a", AT, AT + SECOND) == JobClaim(granted=False, next_attempt=AT + SECOND)
    assert (await claim_job(store, "a", AT + SECOND, AT + 9 * SECOND)).granted


async def test_only_one_instance_gets_a_due_job(open_store: Opener) -> None:
    """If several instances claim a due job, exactly one gets the lease."""
    stores = [open_store() for _ in range(4)]
    claims = await asyncio.gather(*(claim_job(store, f"instance-{n}", AT) for n, store in enumerate(stores)))
    assert sum(each.granted for each in claims) == 1
    assert all(each.next_attempt == AT + LEASE for each in claims)


async def test_released_job_waits_for_its_next_due_time(open_store: Opener) -> None:
    """After its release, a job gets no lease before the next time at which it is due."""
    first, second = open_store(), open_store()
    assert (await claim_job(first, "a", AT)).granted
    await first.release_lease(JOB, "a", AT + 15 * SECOND)
    early = await claim_job(second, "b", AT + 14 * SECOND)
    assert early == JobClaim(granted=False, next_attempt=AT + 15 * SECOND)
    assert (await claim_job(second, "b", AT + 15 * SECOND)).granted


async def test_lease_of_a_dead_instance_ends(open_store: Opener) -> None:
    """If the instance that holds a lease crashes, the job is due again after the lease has expired."""
    first, second = open_store(), open_store()
    assert (await claim_job(first, "a", AT)).granted
    assert not (await claim_job(second, "b", AT + LEASE - SECOND)).granted
    assert (await claim_job(second, "b", AT + LEASE)).granted


async def test_due_time_is_limited_after_clocks_are_set_back(open_store: Opener) -> None:
    """After clocks are set back, a job is due at the next time of its schedule instead of the later stored time."""
    store = open_store()
    hour = 3600 * SECOND
    assert (await claim_job(store, "a", AT + hour)).granted
    await store.release_lease(JOB, "a", AT + hour + 15 * SECOND)
    early = await claim_job(store, "a", AT, AT + 15 * SECOND)
    assert early == JobClaim(granted=False, next_attempt=AT + 15 * SECOND)
    assert (await claim_job(store, "b", AT + 15 * SECOND, AT + 30 * SECOND)).granted


async def test_lease_of_a_dead_instance_is_limited_after_clocks_are_set_back(open_store: Opener) -> None:
    """After clocks are set back, the lease of a dead instance ends after its usual duration."""
    first, second = open_store(), open_store()
    assert (await claim_job(first, "a", AT + 3600 * SECOND)).granted
    refused = await claim_job(second, "b", AT)
    assert refused == JobClaim(granted=False, next_attempt=AT + LEASE)
    assert (await claim_job(second, "b", AT + LEASE)).granted


async def test_extended_lease_stays_with_its_holder(open_store: Opener) -> None:
    """While an extended lease is valid, no other instance gets the job."""
    first, second = open_store(), open_store()
    assert (await claim_job(first, "a", AT)).granted
    assert await first.try_extend_lease(JOB, "a", AT + 2 * LEASE)
    assert not (await claim_job(second, "b", AT + LEASE)).granted
    assert (await claim_job(second, "b", AT + 2 * LEASE)).granted


async def test_former_holder_cannot_change_the_lease(open_store: Opener) -> None:
    """An instance that lost its lease can neither extend nor release the lease."""
    first, second = open_store(), open_store()
    assert (await claim_job(first, "a", AT)).granted
    assert (await claim_job(second, "b", AT + LEASE)).granted
    assert not await first.try_extend_lease(JOB, "a", AT + 9 * LEASE)
    await first.release_lease(JOB, "a", AT)
    assert not (await claim_job(first, "a", AT + LEASE + SECOND)).granted
    assert await second.try_extend_lease(JOB, "b", AT + 3 * LEASE)


async def test_unknown_job_has_no_lease(open_store: Opener) -> None:
    """An unknown job has no lease to extend, and releasing its lease stores nothing."""
    store = open_store()
    assert not await store.try_extend_lease(JOB, "a", AT + LEASE)
    await store.release_lease(JOB, "a", AT + 9 * LEASE)
    assert (await claim_job(store, "a", AT)).granted
