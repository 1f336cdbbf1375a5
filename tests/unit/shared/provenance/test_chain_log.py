"""The engine: every append once, in order, whatever the store does."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError, invalid
from shared.provenance.appender import AppendResult
from shared.provenance.chain_log import ChainLog
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import draft_event, find_first_fault, genesis_hash, parse_record
from tests.unit.shared.provenance.faulty_store import Fate, FaultyStore

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "s")


async def workspace() -> str:
    """Return the workspace's id."""
    return "plant-a"


def engine(store: FaultyStore, **options: Any) -> ChainLog:
    """Return an engine that does not wait between attempts."""
    return ChainLog(store, workspace, jitter=lambda: 0.0, **options)


def event(name: str, size: int = 0) -> dict[str, Any]:
    """Return an event of a name."""
    return {"ActionType": "A", "EntityType": "T", "EntityID": name, "AfterState": {"filler": '"' * size}}


def append(log: ChainLog, name: str, *, size: int = 0, **options: Any) -> Awaitable[AppendResult]:
    """Append an event of a name."""
    return log.append(CHAIN, draft_event("u", event(name, size)), **options)


def stored(store: FaultyStore) -> list[str]:
    """Return the names in the chain, after walking it."""
    records = [parse_record(record.canonical, record.hash) for record in store.chains.get(CHAIN, [])]
    assert find_first_fault(records, genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)) is None
    times = [record["Timestamp"] for record in records]
    assert times == sorted(times)
    return [record["EntityID"] for record in records]


async def test_appends_that_wait_ride_together() -> None:
    """What arrives while a batch is in flight is stored in batches as large as the store takes."""
    store = FaultyStore()
    log = engine(store)
    await append(log, "first")
    store.gate.clear()
    waiting = [asyncio.ensure_future(append(log, str(number))) for number in range(12)]
    await asyncio.sleep(0.01)
    store.gate.set()
    await asyncio.gather(*waiting)
    assert stored(store) == ["first", *map(str, range(12))]
    assert store.batches == [1, 5, 5, 2]
    assert log._appenders == {}


async def test_a_batch_stays_below_the_weight_that_the_store_takes() -> None:
    """Records that weigh more than they are long do not overfill a batch."""
    store = FaultyStore(max_batch_weight=4_000)
    log = engine(store)
    await asyncio.gather(*(append(log, str(number), size=300) for number in range(9)))
    assert sorted(stored(store)) == sorted(map(str, range(9)))


@pytest.mark.parametrize("fate", [Fate.UNKNOWN_STORED, Fate.UNKNOWN_LOST, Fate.UNKNOWN_LATE, Fate.MOVED])
async def test_an_append_survives_each_fate_once(fate: Fate) -> None:
    """Whether the store lost it, kept it, keeps it later or was written by another: it is stored once."""
    store = FaultyStore(fates=[fate] * 3)
    appended = await append(engine(store), "mine", append_id="a")
    assert [name for name in stored(store) if name == "mine"] == ["mine"]
    assert not appended.repeated
    assert json.loads(appended.record.canonical)["EntityID"] == "mine"


async def test_a_store_that_fails_after_an_unknown_outcome_is_waited_for() -> None:
    """Once something was sent, a store that does not answer must not turn into a verdict."""
    store = FaultyStore(fates=[Fate.UNKNOWN_STORED])
    log = engine(store)
    waiting = asyncio.ensure_future(append(log, "mine"))
    await store.started.wait()
    store.read_failures = 5
    await waiting
    assert stored(store) == ["mine"]


async def test_a_store_that_stays_silent_is_told_as_unknown() -> None:
    """A caller learns that the record may be stored, and that the same key settles it."""
    store = FaultyStore(fates=[Fate.UNKNOWN_LATE])
    log = engine(store, give_up_seconds=0.05)
    waiting = asyncio.ensure_future(append(log, "mine", append_id="a"))
    await store.started.wait()
    store.read_failures = 10**9
    with pytest.raises(WorkspaceError) as caught:
        await waiting
    assert caught.value.code == "PROVENANCE_OUTCOME_UNKNOWN"
    store.read_failures = 0
    await append(log, "mine", append_id="a")
    assert stored(store) == ["mine"]


async def test_a_store_that_refuses_is_told_at_once() -> None:
    """Nothing was written, and the chain goes on afterwards."""
    store = FaultyStore(fates=[Fate.UNAVAILABLE])
    log = engine(store)
    with pytest.raises(WorkspaceError) as caught:
        await append(log, "mine")
    assert caught.value.code == "PROVENANCE_UNAVAILABLE"
    await append(log, "next")
    assert stored(store) == ["next"]


async def test_the_same_append_id_is_stored_once() -> None:
    """A repeat gets the first record, also when both are under way at once."""
    store = FaultyStore()
    log = engine(store)
    together = await asyncio.gather(*(append(log, "mine", append_id="a") for _ in range(4)))
    again = await append(log, "other content", append_id="a")
    assert stored(store) == ["mine"]
    assert all(answer.record.hash == together[0].record.hash for answer in (*together, again))
    assert [answer.repeated for answer in together] == [False, True, True, True]


async def test_a_caller_gone_before_provisioning_ends_leaves_nothing() -> None:
    """While the first write to a scope waits for its storage, a cancelled append is forgotten."""
    store = FaultyStore()
    store.gate.clear()
    log = engine(store)
    gone = asyncio.ensure_future(append(log, "gone"))
    stays = asyncio.ensure_future(append(log, "stays"))
    await asyncio.sleep(0.01)
    gone.cancel()
    store.gate.set()
    await stays
    assert (stored(store), store.provisioned[CHAIN]) == (["stays"], 1)


async def test_a_caller_gone_after_the_append_began_loses_nothing() -> None:
    """A cancelled append that is with the store completes, whatever its outcome seemed to be."""
    store = FaultyStore()
    log = engine(store)
    await append(log, "first")
    store.gate.clear()
    store.started.clear()
    store.fates = [Fate.UNKNOWN_LOST]
    gone = asyncio.ensure_future(append(log, "gone"))
    await store.started.wait()
    gone.cancel()
    await asyncio.sleep(0)
    store.gate.set()
    await log.close()
    assert stored(store) == ["first", "gone"]


async def test_the_queue_is_bounded() -> None:
    """More than the process holds is refused with a time to come again, and room is given back."""
    store = FaultyStore()
    store.gate.clear()
    log = engine(store, max_queued_bytes=2 * draft_event("u", event("0")).size)
    waiting = [asyncio.ensure_future(append(log, str(number))) for number in range(2)]
    await asyncio.sleep(0.01)
    with pytest.raises(WorkspaceError) as caught:
        await append(log, "too much")
    assert (caught.value.code, caught.value.members) == ("PROVENANCE_BUSY", {"retryAfter": 1})
    store.gate.set()
    await asyncio.gather(*waiting)
    await append(log, "again")
    assert stored(store) == ["0", "1", "again"]


async def test_a_check_is_asked_again_after_a_conflict() -> None:
    """What a check saw holds when the record is stored: another's record in between has it asked again."""
    store = FaultyStore(fates=[Fate.MOVED])
    seen: list[int] = []

    async def check() -> None:
        seen.append(len(store.chains.get(CHAIN, [])))
        if seen[-1]:
            raise invalid("it", "came too late")

    with pytest.raises(WorkspaceError) as caught:
        await append(engine(store), "mine", check=check)
    assert (caught.value.kind, seen) == (Kind.INVALID, [0, 1])
    assert stored(store) == ["x"]


async def test_exclusive_appends_see_each_other() -> None:
    """Of two appends that exclude each other, the check of the second sees the first."""
    store = FaultyStore()

    async def check() -> None:
        if store.chains.get(CHAIN):
            raise invalid("it", "is decided")

    log = engine(store)
    outcomes = await asyncio.gather(
        *(append(log, str(number), check=check, exclusive="decision") for number in range(4)), return_exceptions=True
    )
    assert [isinstance(outcome, AppendResult) for outcome in outcomes] == [True, False, False, False]
    assert stored(store) == ["0"]


FATES = st.lists(st.sampled_from(list(Fate)), max_size=12)
CALLER = st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 6), st.integers(0, 900))


@settings(deadline=None, max_examples=150)
@given(fates=FATES, callers=st.lists(CALLER, min_size=1, max_size=16), others=st.lists(st.integers(0, 20), max_size=3))
async def test_no_history_loses_doubles_or_parts_a_chain(
    fates: list[Fate], callers: list[tuple[int, bool, int, int]], others: list[int]
) -> None:
    """Whatever fates, cancellations, repeats and writers meet: each success stands once, the rest at most once."""
    store = FaultyStore(fates=list(fates), max_batch_weight=6_000)
    log = engine(store)
    steps = iter(range(10**6))

    async def caller(number: int, repeats: int, size: int) -> str:
        append_id = f"id-{number}" if repeats else ""
        answer = await append(log, str(number), size=size, append_id=append_id)
        for _ in range(repeats - 1):
            again = await append(log, str(number), append_id=append_id)
            assert again.record.hash == answer.record.hash
        return str(json.loads(answer.record.canonical)["EntityID"])

    tasks = []
    for number, (repeats, cancelled, delay, size) in enumerate(callers):
        tasks.append(asyncio.ensure_future(caller(number, repeats, size)))
        for _ in range(delay):
            await asyncio.sleep(0)
            if next(steps) in others:
                store.append_as_another(CHAIN)
        if cancelled:
            tasks[-1].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await log.close()
    names = [name for name in stored(store) if name != "x"]
    assert len(names) == len(set(names))
    succeeded = {outcome for outcome in outcomes if isinstance(outcome, str)}
    assert succeeded <= set(names)
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, WorkspaceError):
            assert outcome.code == "PROVENANCE_UNAVAILABLE"
            repeats = callers[number][0]
            assert repeats > 1 or str(number) not in names
        else:
            assert isinstance(outcome, str | asyncio.CancelledError)
    assert log._appenders == {}
    assert log._queued_bytes == 0
