"""Tests that every store of signature attempts, used sign-ins and signatures meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.backends.azure.cosmos_signatures import CosmosSignatureIndex, CosmosSignatureStore
from shared.backends.embedded.signatures import SCHEMA, SqliteSignatureIndex, SqliteSignatureStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.provenance.ports import ChainKey, Target
from shared.signatures.ports import IndexedSignature, IndexProgress, SignatureFilter, SignatureIndex, SignatureStore
from tests.adapters.cosmos import KINDS, open_accounts

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line/1 ?#\\")
OTHER = ChainKey(Target.PLATFORM_CONFIG)
ALL = SignatureFilter()


@dataclass(frozen=True, slots=True)
class Stores:
    """The two stores that are tested, as one process opens them."""

    store: SignatureStore
    index: SignatureIndex


type Opener = Callable[[], Stores]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_both_stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same stores at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> Stores:
            if account:
                return Stores(CosmosSignatureStore(account()), CosmosSignatureIndex(account()))
            database = SqliteDatabase(tmp_path / "signatures.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return Stores(SqliteSignatureStore(database), SqliteSignatureIndex(database))

        yield open_another


@pytest.fixture
def stores(open_both_stores: Opener) -> Stores:
    """Provide empty stores; each test runs with each kind of store."""
    return open_both_stores()


def increment_number(value: dict[str, Any] | None) -> dict[str, Any]:
    """Return a value with its number incremented."""
    return {"number": (value or {"number": 0})["number"] + 1, "pending": []}


async def test_signing_attempts_are_stored_per_member(stores: Stores) -> None:
    """Signing attempts are stored for each member; if the change function returns None, they are unchanged."""
    store = stores.store
    assert await store.find_refused_attempts("a@t") is None
    assert await store.change_refused_attempts("a@t", lambda _: None) is None
    assert await store.change_refused_attempts("a@t", increment_number) == {"number": 1, "pending": []}
    assert await store.change_refused_attempts("A@t", increment_number) == {"number": 1, "pending": []}
    assert await store.change_refused_attempts("a@t", increment_number) == {"number": 2, "pending": []}
    assert await store.change_refused_attempts("a@t", lambda _: None) == {"number": 2, "pending": []}
    assert await store.find_refused_attempts("a@t") == {"number": 2, "pending": []}


async def test_concurrent_changes_of_signing_attempts_are_all_stored(open_both_stores: Opener) -> None:
    """If several processes change attempts at the same time, all changes are stored."""
    processes = [open_both_stores() for _ in range(3)]
    await asyncio.gather(*(each.store.change_refused_attempts("a@t", increment_number) for each in processes * 3))
    assert (await processes[0].store.find_refused_attempts("a@t") or {})["number"] == 9
    await asyncio.gather(*(each.store.change_sign_in_use("s1", increment_number, AT) for each in processes * 3))
    assert (await processes[0].store.change_sign_in_use("s1", lambda _: None, AT) or {})["number"] == 9


async def test_lock_outs_are_listed_until_their_report_is_recorded(stores: Stores) -> None:
    """A lock-out is listed as pending until its report is recorded."""
    assert list(await stores.store.list_attempts_with_unreported_lock_outs()) == []
    await stores.store.change_refused_attempts("a@t", lambda _: {"pending": ["event"]})
    await stores.store.change_refused_attempts("b@t", lambda _: {"pending": []})
    assert list(await stores.store.list_attempts_with_unreported_lock_outs()) == [{"pending": ["event"]}]
    await stores.store.change_refused_attempts("a@t", lambda _: {"pending": []})
    assert list(await stores.store.list_attempts_with_unreported_lock_outs()) == []


async def test_an_exception_of_the_change_function_changes_nothing(stores: Stores) -> None:
    """If the change function raises an exception, nothing is changed and the caller gets the exception."""

    def raise_error(_: object) -> None:
        raise LookupError("refused")

    await stores.store.change_sign_in_use("s1", increment_number, AT)
    with pytest.raises(LookupError):
        await stores.store.change_sign_in_use("s1", raise_error, AT)
    assert await stores.store.change_sign_in_use("s1", lambda _: None, AT) == {"number": 1, "pending": []}
    assert await stores.store.change_sign_in_use("s2", lambda _: None, AT) is None


def build_entry(second: int, user: str = "a@t", chain: str = "1") -> IndexedSignature:
    """Return an entry of the index of signatures whose time has this second."""
    place = f"2026-03-01T12:00:{second:02d}.000000Z {chain} {second:012d}"
    return IndexedSignature(place, user, {"UserID": user, "Statement": None, "Text": "é"})


async def test_signatures_are_listed_newest_first(stores: Stores) -> None:
    """Signatures are listed newest first, by member and time, in pages; adding a signature again changes nothing."""
    index = stores.index
    first, second, third = build_entry(1), build_entry(2, "b@t"), build_entry(3)
    same_time = build_entry(2, "a@t", "2")
    await index.add_signatures(CHAIN, [first, third], IndexProgress(3, "h3"))
    await index.add_signatures(OTHER, [second, same_time], IndexProgress(2, "h2"))
    await index.add_signatures(CHAIN, [first, third], IndexProgress(3, "h3"))
    everything = [third, same_time, second, first]
    assert list(await index.list_signatures(ALL, "", 10)) == everything
    assert list(await index.list_signatures(ALL, "", 2)) == everything[:2]
    assert list(await index.list_signatures(ALL, everything[1].place, 2)) == everything[2:]
    assert list(await index.list_signatures(SignatureFilter("a@t"), "", 10)) == [third, same_time, first]
    assert list(await index.list_signatures(SignatureFilter(""), "", 10)) == []
    window = SignatureFilter(start="2026-03-01T12:00:02.000000Z", end="2026-03-01T12:00:03.000000Z")
    assert list(await index.list_signatures(window, "", 10)) == [same_time, second]
    assert list(await index.list_signatures(window, same_time.place, 10)) == [second]


async def test_the_progress_of_the_signature_index_never_decreases(stores: Stores) -> None:
    """The stored progress of the index of signatures never decreases."""
    index = stores.index
    assert (await index.read_progress(CHAIN), await index.read_index_end_time()) == (IndexProgress(), "")
    await index.add_signatures(CHAIN, [], IndexProgress(7, "h7"))
    await index.add_signatures(CHAIN, [], IndexProgress(5, "h5"))
    assert await index.read_progress(CHAIN) == IndexProgress(7, "h7")
    assert await index.read_progress(OTHER) == IndexProgress()
    await index.save_time_indexed_until("2026-03-01T12:00:00.000000Z")
    await index.save_time_indexed_until("2026-02-01T12:00:00.000000Z")
    assert await index.read_index_end_time() == "2026-03-01T12:00:00.000000Z"


async def test_the_signatures_of_one_chain_are_removed(open_both_stores: Opener) -> None:
    """The signatures and the progress of a chain are removed, unless another process has changed the progress."""
    index, other = open_both_stores().index, open_both_stores().index
    first, second, third = build_entry(1), build_entry(2, chain="2"), build_entry(3)
    await index.add_signatures(CHAIN, [first, third], IndexProgress(3, "old"))
    await index.add_signatures(OTHER, [second], IndexProgress(2, "h2"))
    for progress in (IndexProgress(), IndexProgress(3, "new"), IndexProgress(2, "old")):
        await other.remove_signatures(CHAIN, progress)
        assert list(await index.list_signatures(ALL, "", 10)) == [third, second, first]
    await other.remove_signatures(CHAIN, IndexProgress(3, "old"))
    assert list(await index.list_signatures(ALL, "", 10)) == [second]
    assert await index.read_progress(CHAIN) == IndexProgress()
    assert await index.read_progress(OTHER) == IndexProgress(2, "h2")
    await index.add_signatures(CHAIN, [first], IndexProgress(1, "h1"))
    await other.remove_signatures(CHAIN, IndexProgress(3, "old"))
    assert list(await index.list_signatures(ALL, "", 10)) == [second, first]
    assert await index.read_progress(CHAIN) == IndexProgress(1, "h1")


async def test_concurrent_removals_keep_signatures_that_are_added_again(open_both_stores: Opener) -> None:
    """If several processes remove the signatures of a chain and add the new ones, none of the new ones is lost."""
    before = IndexProgress(9, "old")
    await open_both_stores().index.add_signatures(CHAIN, [build_entry(second) for second in range(1, 10)], before)
    entries = [build_entry(second) for second in (2, 3)]

    async def index_again(index: SignatureIndex) -> None:
        await index.remove_signatures(CHAIN, before)
        await index.add_signatures(CHAIN, entries, IndexProgress(3, "new"))

    await asyncio.gather(*(index_again(open_both_stores().index) for _ in range(4)))
    listed = open_both_stores().index
    assert list(await listed.list_signatures(ALL, "", 10)) == entries[::-1]
    assert await listed.read_progress(CHAIN) == IndexProgress(3, "new")


async def test_more_signatures_than_a_transaction_can_hold_are_added_together(stores: Stores) -> None:
    """More signatures than one transaction can hold can be added together."""
    entries = [
        IndexedSignature(f"2026-03-01T12:00:00.{number:06d}Z 1 {number:012d}", "a@t", {}) for number in range(150)
    ]
    await stores.index.add_signatures(CHAIN, entries, IndexProgress(150, "h150"))
    listed = await stores.index.list_signatures(ALL, "", 1_000)
    assert [one.place for one in listed] == [one.place for one in reversed(entries)]


async def test_long_signatures_are_added_together(stores: Stores) -> None:
    """Signatures can be added together even if all of them are longer than one request to the store."""
    statement = "\U0001f600" * 1_000
    entries = [
        IndexedSignature(f"2026-03-01T12:00:00.{number:06d}Z 1 {number:012d}", "a@t", {"Statement": statement})
        for number in range(160)
    ]
    await stores.index.add_signatures(CHAIN, entries, IndexProgress(160, "h160"))
    listed = await stores.index.list_signatures(ALL, "", 1_000)
    assert [one.place for one in listed] == [one.place for one in reversed(entries)]
    assert all(one.content["Statement"] == statement for one in listed)
