"""Tests that every store of idempotency keys and of their replies meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore, CosmosReplyStore
from shared.backends.embedded import idempotency
from shared.backends.embedded.idempotency import SqliteIdempotencyStore, SqliteReplyStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.idempotency.keys import Claim, IdempotencyStore
from shared.idempotency.replies import IdempotentReplyStore
from tests.adapters.cosmos import KINDS, open_accounts

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
FIRST, OTHER = Claim("f" * 64, "first"), Claim("f" * 64, "other")
ANSWER = bytes(range(256))
type Opener = Callable[[], tuple[IdempotencyStore, IdempotentReplyStore]]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_both_stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same stores at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":

            def open_another() -> tuple[IdempotencyStore, IdempotentReplyStore]:
                database = SqliteDatabase(tmp_path / "workspace.sqlite", idempotency.SCHEMA)
                stack.push_async_callback(database.close)
                return SqliteIdempotencyStore(database), SqliteReplyStore(database)

            yield open_another
        else:
            account = await stack.enter_async_context(open_accounts(request.param))

            def open_stores() -> tuple[IdempotencyStore, IdempotentReplyStore]:
                client = account()
                return CosmosIdempotencyStore(client), CosmosReplyStore(client)

            yield open_stores


@pytest.fixture
def keys(open_both_stores: Opener) -> IdempotencyStore:
    """Provide an empty store of idempotency keys."""
    return open_both_stores()[0]


@pytest.fixture
def store(open_both_stores: Opener) -> IdempotentReplyStore:
    """Provide an empty store of replies to idempotent requests."""
    return open_both_stores()[1]


async def test_one_of_simultaneous_claims_of_a_key_is_stored(open_both_stores: Opener) -> None:
    """If several callers claim a key at the same time, one claim is stored, and each caller receives it."""
    claims = [Claim("f", f"id-{number}") for number in range(6)]
    stores = [open_both_stores()[0] for _ in range(3)]
    given = await asyncio.gather(
        *(stores[number % 3].store_or_get_claim("k", claim, AT, AT - DAY) for number, claim in enumerate(claims))
    )
    assert len(set(given)) == 1
    assert await stores[0].store_or_get_claim("k", OTHER, AT + SECOND, AT + SECOND - DAY) == given[0]
    assert await stores[0].store_or_get_claim("another", OTHER, AT, AT - DAY) == OTHER


async def test_a_claim_expires_after_its_retention_period(keys: IdempotencyStore) -> None:
    """After its retention period, a claim expires, and another request can claim the key."""
    await keys.store_or_get_claim("k", FIRST, AT, AT - DAY)
    assert await keys.store_or_get_claim("k", OTHER, AT + DAY, AT) == FIRST
    assert await keys.store_or_get_claim("k", OTHER, AT + DAY, AT + SECOND) == OTHER


async def test_a_claim_is_deleted_only_with_its_append_id(keys: IdempotencyStore) -> None:
    """The claim of a key can be deleted only with the claim's append id."""
    await keys.store_or_get_claim("k", FIRST, AT, AT - DAY)
    await keys.delete_claim("k", "other")
    await keys.delete_claim("unknown", "other")
    different = Claim("g" * 64, "different")
    assert await keys.store_or_get_claim("k", different, AT, AT - DAY) == FIRST
    await keys.delete_claim("k", "first")
    assert await keys.store_or_get_claim("k", OTHER, AT, AT - DAY) == OTHER


async def test_a_claim_that_a_repeated_request_got_is_not_deleted(keys: IdempotencyStore) -> None:
    """A claim whose append id a repeated request has got stays until it expires, also if this request is repeated."""
    await keys.store_or_get_claim("k", FIRST, AT, AT - DAY)
    assert await keys.store_or_get_claim("k", FIRST, AT, AT - DAY) == FIRST
    for second in range(2):
        assert await keys.store_or_get_claim("k", OTHER, AT + second * SECOND, AT - DAY) == FIRST
        await keys.delete_claim("k", "first")
    assert await keys.store_or_get_claim("k", OTHER, AT + DAY + SECOND, AT + SECOND) == OTHER
    await keys.delete_claim("k", "other")
    assert await keys.store_or_get_claim("k", FIRST, AT + DAY + SECOND, AT + SECOND) == FIRST


async def test_one_of_many_callers_with_the_same_claim_gets_the_lease(open_both_stores: Opener) -> None:
    """If several callers have the same claim, exactly one gets the lease."""
    stores = [open_both_stores()[1] for _ in range(3)]
    begun = await asyncio.gather(
        *(
            stores[number % 3].claim_and_lease_key(
                "n", Claim("f", f"id-{number}"), f"l{number}", AT, AT + SECOND, AT - DAY
            )
            for number in range(6)
        )
    )
    assert [each.owns_lease for each in begun].count(True) == 1
    assert len({each.claim for each in begun}) == 1
    assert {each.reply for each in begun} == {None}


async def test_an_expired_lease_passes_to_the_next_caller(store: IdempotentReplyStore) -> None:
    """After an expired lease has passed to another caller, only that caller can renew, use or release it."""
    assert (await store.claim_and_lease_key("n", FIRST, "a", AT, AT + SECOND, AT - DAY)).owns_lease
    assert not (await store.claim_and_lease_key("n", OTHER, "b", AT + SECOND, AT + 2 * SECOND, AT - DAY)).owns_lease
    late = AT + 2 * SECOND
    taken = await store.claim_and_lease_key("n", OTHER, "b", late, late + SECOND, AT - DAY)
    assert (taken.owns_lease, taken.claim) == (True, FIRST)
    await store.renew_lease("n", "a", late + DAY)
    await store.release_lease("n", "a", deletes_claim=True)
    assert not await store.try_save_reply("n", "a", b"wrong")
    assert await store.try_save_reply("n", "b", ANSWER)
    for lease in ("c", "d"):
        given = await store.claim_and_lease_key("n", OTHER, lease, late + DAY / 2, late + DAY, AT - DAY)
        assert (given.owns_lease, given.reply, given.claim) == (False, ANSWER, FIRST)


async def test_a_lease_ends_in_time_after_the_clock_is_set_back(store: IdempotentReplyStore) -> None:
    """If the clock is set back by half an hour, the lease of a dead process still ends a few seconds later."""
    before = AT + timedelta(minutes=30)
    await store.claim_and_lease_key("n", FIRST, "a", before, before + SECOND, AT - DAY)
    assert not (await store.claim_and_lease_key("n", OTHER, "b", AT, AT + SECOND, AT - DAY)).owns_lease
    late = AT + 2 * SECOND
    taken = await store.claim_and_lease_key("n", OTHER, "b", late, late + SECOND, AT - DAY)
    assert (taken.owns_lease, taken.claim) == (True, FIRST)


async def test_a_lease_can_be_renewed_and_released(store: IdempotentReplyStore) -> None:
    """A renewed lease expires later, and a released lease can be taken at once."""
    await store.claim_and_lease_key("n", FIRST, "a", AT, AT + SECOND, AT - DAY)
    await store.renew_lease("n", "a", AT + 9 * SECOND)
    assert not (await store.claim_and_lease_key("n", OTHER, "b", AT + 5 * SECOND, AT + DAY, AT - DAY)).owns_lease
    await store.release_lease("n", "a", deletes_claim=False)
    again = await store.claim_and_lease_key("n", OTHER, "b", AT + 5 * SECOND, AT + DAY, AT - DAY)
    assert (again.owns_lease, again.claim) == (True, FIRST)
    await store.release_lease("n", "b", deletes_claim=True)
    fresh = await store.claim_and_lease_key("n", OTHER, "c", AT + 5 * SECOND, AT + DAY, AT - DAY)
    assert (fresh.owns_lease, fresh.claim) == (True, OTHER)


async def test_a_request_with_the_same_key_but_other_content_gets_no_lease(store: IdempotentReplyStore) -> None:
    """A request with another content but the same key never gets a lease."""
    await store.claim_and_lease_key("n", FIRST, "a", AT, AT + SECOND, AT - DAY)
    other = Claim("0" * 64, "zero")
    begun = await store.claim_and_lease_key("n", other, "b", AT + 5 * SECOND, AT + DAY, AT - DAY)
    assert (begun.owns_lease, begun.claim) == (False, FIRST)


async def test_stored_replies_expire_after_their_retention_period(store: IdempotentReplyStore) -> None:
    """After its retention period, a stored reply expires, and its key can be used again."""
    await store.claim_and_lease_key("n", FIRST, "a", AT, AT + SECOND, AT - DAY)
    await store.try_save_reply("n", "a", ANSWER)
    assert (await store.claim_and_lease_key("n", OTHER, "b", AT + DAY, AT + DAY + SECOND, AT)).reply == ANSWER
    fresh = await store.claim_and_lease_key("n", OTHER, "b", AT + DAY, AT + DAY + SECOND, AT + SECOND)
    assert (fresh.owns_lease, fresh.reply, fresh.claim) == (True, None, OTHER)


async def test_idempotency_keys_and_replies_are_stored_separately(open_both_stores: Opener) -> None:
    """The store of keys and the store of replies may contain the same name."""
    keys, store = open_both_stores()
    await keys.store_or_get_claim("n", FIRST, AT, AT - DAY)
    assert (await store.claim_and_lease_key("n", OTHER, "a", AT, AT + SECOND, AT - DAY)).claim == OTHER
