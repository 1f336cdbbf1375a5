"""Tests that the append engine stores each append once and in order, even if the store fails."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.provenance.appender import AppendResult
from shared.provenance.chain_log import ChainLog
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import build_event_draft, parse_record
from shared.provenance.signatures import CONFIRMATION_SECONDS
from shared.runtime import Runtime
from tests.random_examples import scale_examples
from tests.unit.shared.provenance.faulty_store import AppendOutcome, FaultyStore
from tests.unit.shared.provenance.record_rules import find_first_fault

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "s")


async def get_workspace_id() -> str:
    """Return the id of the workspace that the tests use."""
    return "plant-a"


def build_engine(store: FaultyStore, **options: Any) -> ChainLog:
    """Return an append engine that repeats failed appends without delays."""
    return ChainLog(store, get_workspace_id, runtime=Runtime(uniform=lambda low, _high: low), **options)


def build_event(name: str, size: int = 0) -> dict[str, Any]:
    """Return an event with a name."""
    return {"ActionType": "A", "EntityType": "T", "EntityID": name, "AfterState": {"filler": '"' * size}}


def append_event(log: ChainLog, name: str, *, size: int = 0, **options: Any) -> Awaitable[AppendResult]:
    """Append an event with a name."""
    return log.append(CHAIN, build_event_draft("u", build_event(name, size)), **options)


def read_names(store: FaultyStore) -> list[str]:
    """Verify the chain, and return the names of its stored events."""
    records = [parse_record(record.canonical, record.hash) for record in store.chains.get(CHAIN, [])]
    assert find_first_fault(records, compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)) is None
    times = [record["Timestamp"] for record in records]
    assert times == sorted(times)
    return [record["EntityID"] for record in records]


async def test_waiting_appends_are_batched() -> None:
    """Appends that arrive during a commit are stored together, in batches up to the maximum size."""
    store = FaultyStore()
    log = build_engine(store)
    await append_event(log, "first")
    store.gate.clear()
    waiting = [asyncio.ensure_future(append_event(log, str(number))) for number in range(12)]
    await asyncio.sleep(0.01)
    store.gate.set()
    await asyncio.gather(*waiting)
    assert read_names(store) == ["first", *map(str, range(12))]
    assert store.batches == [1, 5, 5, 2]
    assert log._appenders == {}


async def test_a_batch_does_not_exceed_its_maximum_weight() -> None:
    """A batch has a maximum weight; the weight of a record can be more than its length."""
    store = FaultyStore(max_batch_bytes=4_000)
    log = build_engine(store)
    await asyncio.gather(*(append_event(log, str(number), size=300) for number in range(9)))
    assert sorted(read_names(store)) == sorted(map(str, range(9)))


@pytest.mark.parametrize(
    "outcome",
    [AppendOutcome.UNKNOWN_STORED, AppendOutcome.UNKNOWN_LOST, AppendOutcome.UNKNOWN_LATE, AppendOutcome.MOVED],
)
async def test_an_append_is_stored_once_after_each_outcome(outcome: AppendOutcome) -> None:
    """An append is stored once, even if the store lost, stored or delayed it, or another process appended first."""
    store = FaultyStore(outcomes=[outcome] * 3)
    appended = await append_event(build_engine(store), "mine", append_id="a")
    assert [name for name in read_names(store) if name == "mine"] == ["mine"]
    assert not appended.repeated
    assert json.loads(appended.record.canonical)["EntityID"] == "mine"


async def test_an_unavailable_store_is_retried_after_an_unknown_outcome() -> None:
    """If the outcome of an append is unknown and the store then becomes unavailable, the append is repeated."""
    store = FaultyStore(outcomes=[AppendOutcome.UNKNOWN_STORED])
    log = build_engine(store)
    waiting = asyncio.ensure_future(append_event(log, "mine"))
    await store.started.wait()
    store.read_failures = 5
    await waiting
    assert read_names(store) == ["mine"]


async def test_a_silent_store_is_reported_as_unknown_outcome() -> None:
    """If the store never replies, the outcome is reported as unknown; a later retry returns the stored record."""
    store = FaultyStore(outcomes=[AppendOutcome.UNKNOWN_LATE])
    log = build_engine(store, give_up_seconds=0.05)
    waiting = asyncio.ensure_future(append_event(log, "mine", append_id="a"))
    await store.started.wait()
    store.read_failures = 10**9
    with pytest.raises(WorkspaceError) as caught:
        await waiting
    assert caught.value.code == "PROVENANCE_OUTCOME_UNKNOWN"
    store.read_failures = 0
    await append_event(log, "mine", append_id="a")
    assert read_names(store) == ["mine"]


async def test_an_unavailable_store_is_reported_at_once() -> None:
    """If the store is unavailable, an error is raised at once, nothing is written, and later appends succeed."""
    store = FaultyStore(outcomes=[AppendOutcome.UNAVAILABLE])
    log = build_engine(store)
    with pytest.raises(WorkspaceError) as caught:
        await append_event(log, "mine")
    assert caught.value.code == "PROVENANCE_UNAVAILABLE"
    await append_event(log, "next")
    assert read_names(store) == ["next"]


async def test_the_same_append_id_is_stored_once() -> None:
    """A second append with the same append id returns the first record, even while the first append is running."""
    store = FaultyStore()
    log = build_engine(store)
    together = await asyncio.gather(*(append_event(log, "mine", append_id="a") for _ in range(4)))
    again = await append_event(log, "other content", append_id="a")
    assert read_names(store) == ["mine"]
    assert all(answer.record.hash == together[0].record.hash for answer in (*together, again))
    assert [answer.repeated for answer in together] == [False, True, True, True]


async def test_cancellation_during_provisioning_stores_nothing() -> None:
    """If an append is cancelled before it is sent to the store, it is not stored."""
    store = FaultyStore()
    store.gate.clear()
    log = build_engine(store)
    gone = asyncio.ensure_future(append_event(log, "gone"))
    stays = asyncio.ensure_future(append_event(log, "stays"))
    await asyncio.sleep(0.01)
    gone.cancel()
    store.gate.set()
    await stays
    assert (read_names(store), store.provisioned[CHAIN]) == (["stays"], 1)


async def test_an_append_cancelled_after_sending_is_still_stored() -> None:
    """If an append is cancelled after it was sent to the store, it is still completed, whatever the store does."""
    store = FaultyStore()
    log = build_engine(store)
    await append_event(log, "first")
    store.gate.clear()
    store.started.clear()
    store.outcomes = [AppendOutcome.UNKNOWN_LOST]
    gone = asyncio.ensure_future(append_event(log, "gone"))
    await store.started.wait()
    gone.cancel()
    await asyncio.sleep(0)
    store.gate.set()
    await log.close()
    assert read_names(store) == ["first", "gone"]


async def test_a_full_queue_rejects_appends() -> None:
    """If the queue is full, appends are rejected with a time to wait; later appends succeed."""
    store = FaultyStore()
    store.gate.clear()
    log = build_engine(store, max_queued_bytes=2 * build_event_draft("u", build_event("0")).size)
    waiting = [asyncio.ensure_future(append_event(log, str(number))) for number in range(2)]
    await asyncio.sleep(0.01)
    with pytest.raises(WorkspaceError) as caught:
        await append_event(log, "too much")
    assert (caught.value.code, caught.value.members) == ("PROVENANCE_BUSY", {"retryAfter": 1})
    store.gate.set()
    await asyncio.gather(*waiting)
    await append_event(log, "again")
    assert read_names(store) == ["0", "1", "again"]


async def test_the_check_of_an_exclusive_append_runs_again_after_a_conflict() -> None:
    """After a conflict, the check of an exclusive append runs again and reads all records that are stored by then."""
    store = FaultyStore(outcomes=[AppendOutcome.MOVED])
    seen: list[int] = []

    async def check() -> None:
        seen.append(len(store.chains.get(CHAIN, [])))
        if seen[-1]:
            raise build_invalid_field_error("it", "came too late")

    with pytest.raises(WorkspaceError) as caught:
        await append_event(build_engine(store), "mine", check=check)
    assert (caught.value.kind, seen) == (Kind.INVALID, [0, 1])
    assert read_names(store) == ["x"]


async def test_a_check_cannot_reject_an_append_by_its_own_late_record() -> None:
    """An append succeeds if its check rejects it because an earlier attempt has stored its record meanwhile."""
    store = FaultyStore(outcomes=[AppendOutcome.UNKNOWN_LATE])

    async def check() -> None:
        if store.chains.get(CHAIN):
            raise build_invalid_field_error("it", "is decided")

    appended = await append_event(build_engine(store), "mine", append_id="a", check=check)
    assert (appended.record.append_id, appended.repeated) == ("a", False)
    assert read_names(store) == ["mine"]


async def test_a_check_cannot_reject_an_append_that_another_process_has_stored() -> None:
    """An append succeeds if its check rejects it because another process has stored the same append id meanwhile."""
    store = FaultyStore()
    first: list[AppendResult] = []

    async def check() -> None:
        first.append(await append_event(build_engine(store), "mine", append_id="a"))
        raise build_invalid_field_error("it", "is decided")

    appended = await append_event(build_engine(store), "mine", append_id="a", check=check)
    assert (appended.record.hash, appended.repeated) == (first[0].record.hash, True)
    assert read_names(store) == ["mine"]


async def test_a_rejection_after_an_unknown_outcome_is_reported_as_unknown_outcome() -> None:
    """If a check rejects an append that an earlier attempt can still store, the outcome is reported as unknown."""
    store = FaultyStore(outcomes=[AppendOutcome.UNKNOWN_LOST])

    async def check() -> None:
        if store.started.is_set():
            raise build_invalid_field_error("it", "is decided")

    with pytest.raises(WorkspaceError) as caught:
        await append_event(build_engine(store), "mine", append_id="a", check=check)
    assert caught.value.code == "PROVENANCE_OUTCOME_UNKNOWN"


async def test_an_append_is_confirmed_after_all_checks_of_its_batch() -> None:
    """A slow check of another append in the batch cannot delay the write of an append that is confirmed already."""
    log = build_engine(FaultyStore())
    calls = list[str]()

    async def confirm() -> None:
        calls.append("confirm")

    async def check() -> None:
        calls.append("check")

    await asyncio.gather(append_event(log, "1", confirm=confirm), append_event(log, "2", check=check))
    assert calls == ["check", "confirm"]


async def test_a_confirmation_that_took_too_long_is_repeated() -> None:
    """If the confirmations of a batch took too long, nothing is written until they are repeated."""
    store, seconds = FaultyStore(), [0.0]
    runtime = Runtime(uniform=lambda low, _high: low, monotonic=lambda: seconds[0])
    stored = list[int]()

    async def confirm() -> None:
        stored.append(len(store.chains.get(CHAIN, [])))
        seconds[0] += 0 if stored[1:] else CONFIRMATION_SECONDS + 1

    await append_event(ChainLog(store, get_workspace_id, runtime=runtime), "mine", confirm=confirm)
    assert stored == [0, 0]
    assert read_names(store) == ["mine"]


async def test_a_cancelled_confirmation_rejects_its_append_only() -> None:
    """If a confirmation is cancelled, only its append fails, with an error, because nobody cancelled its caller."""
    store = FaultyStore()

    async def confirm() -> None:
        raise asyncio.CancelledError

    log = build_engine(store)
    results = await asyncio.gather(
        append_event(log, "1", confirm=confirm), append_event(log, "2"), return_exceptions=True
    )
    error = results[0]
    assert isinstance(error, WorkspaceError)
    assert (error.kind, error.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")
    assert isinstance(error.__cause__, asyncio.CancelledError)
    assert read_names(store) == ["2"]


async def test_exclusive_appends_see_each_other() -> None:
    """Of two concurrent exclusive appends, the second append's check reads the record of the first append."""
    store = FaultyStore()

    async def check() -> None:
        if store.chains.get(CHAIN):
            raise build_invalid_field_error("it", "is decided")

    log = build_engine(store)
    outcomes = await asyncio.gather(
        *(append_event(log, str(number), check=check, exclusive_key="decision") for number in range(4)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, AppendResult) for outcome in outcomes] == [True, False, False, False]
    assert read_names(store) == ["0"]


FATES = st.lists(st.sampled_from(list(AppendOutcome)), max_size=12)
CALLER = st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 6), st.integers(0, 900))


@settings(deadline=None, max_examples=scale_examples(150))
@given(
    outcomes=FATES, callers=st.lists(CALLER, min_size=1, max_size=16), others=st.lists(st.integers(0, 20), max_size=3)
)
async def test_no_sequence_of_events_loses_or_repeats_records(
    outcomes: list[AppendOutcome], callers: list[tuple[int, bool, int, int]], others: list[int]
) -> None:
    """Whatever faults and cancellations occur, a successful append is stored once, and any other at most once."""
    store = FaultyStore(outcomes=list(outcomes), max_batch_bytes=6_000)
    log = build_engine(store)
    steps = iter(range(10**6))

    async def append_repeatedly(number: int, repeats: int, size: int) -> str:
        append_id = f"id-{number}" if repeats else ""
        answer = await append_event(log, str(number), size=size, append_id=append_id)
        for _ in range(repeats - 1):
            again = await append_event(log, str(number), append_id=append_id)
            assert again.record.hash == answer.record.hash
        return str(json.loads(answer.record.canonical)["EntityID"])

    tasks = []
    for number, (repeats, cancelled, delay, size) in enumerate(callers):
        tasks.append(asyncio.ensure_future(append_repeatedly(number, repeats, size)))
        for _ in range(delay):
            await asyncio.sleep(0)
            if next(steps) in others:
                store.append_as_another_process(CHAIN)
        if cancelled:
            tasks[-1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    await log.close()
    names = [name for name in read_names(store) if name != "x"]
    assert len(names) == len(set(names))
    succeeded = {result for result in results if isinstance(result, str)}
    assert succeeded <= set(names)
    for number, result in enumerate(results):
        if isinstance(result, WorkspaceError):
            assert result.code == "PROVENANCE_UNAVAILABLE"
            repeats = callers[number][0]
            assert repeats > 1 or str(number) not in names
        else:
            assert isinstance(result, str | asyncio.CancelledError)
    assert log._appenders == {}
    assert log._queued_bytes == 0
