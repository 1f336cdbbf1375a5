"""Tests of chain appends and reads with Cosmos DB faults: each fault once, then random faults."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosRequest, CosmosServer, FaultKind, InjectedFault
from emulators.cosmos.faults import build_random_faults
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_chain_items import HEAD_ID, compute_partition_key
from shared.backends.azure.cosmos_requests import READ_ATTEMPTS
from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import format_record_id
from shared.provenance.ports import ChainKey, Filters, LookupField, OutcomeUnknownError, Tip, TipMovedError
from shared.provenance.records import build_event_draft
from shared.provenance.verifier import ChainVerifier
from shared.runtime import Runtime
from tests.unit.shared.backends.azure.cosmos_stores import (
    CHAIN,
    DATABASE,
    EVENT,
    MANY,
    build_batch,
    create_database,
    fill_chain,
    get_workspace_id,
    open_logs,
    open_stores,
    read_sequences,
)

READ_SECONDS = 0.2
WRITERS, TURNS = 24, 8


@pytest.fixture
async def server() -> AsyncIterator[CosmosServer]:
    """Provide an emulator with the containers of the chains."""
    async with CosmosServer(physical_partitions=2) as running:
        await create_database(running)
        yield running


@pytest.fixture
async def store(server: CosmosServer) -> AsyncIterator[CosmosChainStore]:
    """Provide a store with a chain of three records."""
    async with open_stores(server, read_seconds=READ_SECONDS) as (opened,):
        await fill_chain(opened, 3)
        yield opened


def _is_batch(request: CosmosRequest) -> bool:
    return request.operation == "batch"


def _is_read(request: CosmosRequest) -> bool:
    return request.operation in ("query", "read_item")


async def _wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  what is waited for happens in the server's thread
            await asyncio.sleep(0.01)


def _build_status_fault(status: int, *, kind: FaultKind = FaultKind.STATUS, substatus: int = 0) -> InjectedFault:
    return InjectedFault(kind, _is_batch, times=1, status=status, substatus=substatus, retry_after_ms=1)


def _build_batch_fault(kind: FaultKind, **more: Any) -> InjectedFault:
    return InjectedFault(kind, _is_batch, times=1, **more)


MET = ("conflicts", "unknown_outcomes", "read_retries")
AFTER = FaultKind.STATUS_AFTER_COMMIT
IN_BATCH = FaultKind.BATCH_STATUS
type Expected = tuple[type[Exception] | None, bool]
FAULTS: dict[str, tuple[InjectedFault, Expected]] = {
    "drop before": (_build_batch_fault(FaultKind.DROP_BEFORE_COMMIT), (OutcomeUnknownError, False)),
    "drop after": (_build_batch_fault(FaultKind.DROP_AFTER_COMMIT), (OutcomeUnknownError, True)),
    "reset after": (_build_batch_fault(FaultKind.DROP_AFTER_COMMIT, reset=True), (OutcomeUnknownError, True)),
    "drop in reply": (_build_batch_fault(FaultKind.DROP_IN_REPLY), (OutcomeUnknownError, True)),
    "late reply": (_build_batch_fault(FaultKind.DELAY_AFTER_COMMIT, seconds=0.5), (OutcomeUnknownError, True)),
    "408": (_build_status_fault(408), (OutcomeUnknownError, False)),
    "408 after": (_build_status_fault(408, kind=AFTER), (OutcomeUnknownError, True)),
    "410": (_build_status_fault(410, substatus=1002), (OutcomeUnknownError, False)),
    "449": (_build_status_fault(449), (OutcomeUnknownError, False)),
    "500": (_build_status_fault(500), (OutcomeUnknownError, False)),
    "500 after": (_build_status_fault(500, kind=AFTER), (OutcomeUnknownError, True)),
    "503": (_build_status_fault(503), (OutcomeUnknownError, False)),
    "503 after": (_build_status_fault(503, kind=AFTER), (OutcomeUnknownError, True)),
    "409": (_build_status_fault(409), (TipMovedError, False)),
    "412": (_build_status_fault(412), (TipMovedError, False)),
    "412 in batch": (_build_status_fault(412, kind=IN_BATCH), (TipMovedError, False)),
    "404 in batch": (_build_status_fault(404, kind=IN_BATCH), (TipMovedError, False)),
    "429": (_build_status_fault(429, substatus=3200), (None, True)),
    "429 in batch": (_build_status_fault(429, kind=IN_BATCH), (None, True)),
    "449 in batch": (_build_status_fault(449, kind=IN_BATCH), (None, True)),
    "403": (_build_status_fault(403, substatus=3), (WorkspaceError, False)),
    "413": (_build_status_fault(413), (WorkspaceError, False)),
    "400 in batch": (_build_status_fault(400, kind=IN_BATCH), (WorkspaceError, False)),
}


def _reset_fault(name: str) -> InjectedFault:
    fault = FAULTS[name][0]
    fault.applied = 0
    return fault


@pytest.mark.parametrize("name", FAULTS)
async def test_a_failed_append_reports_its_outcome(server: CosmosServer, store: CosmosChainStore, name: str) -> None:
    """The error of a failed append says whether nothing was written, the chain has grown, or the result is unknown."""
    fault, (expected, stored) = _reset_fault(name), FAULTS[name][1]
    tip = await store.read_tip(CHAIN)
    server.faults.add(fault)
    if expected is None:
        await store.append(CHAIN, build_batch(tip, 2), tip)
        assert store.usage.throttled == 1
    else:
        with pytest.raises(expected):
            await store.append(CHAIN, build_batch(tip, 2), tip)
    assert fault.applied == 1
    await _wait_until(lambda: len(server.requests.list_by_operation("batch")) == 4 + (expected is None))
    # The fixture sends three batches and this append one. It is sent again only after a definite rejection.
    assert len(server.requests.list_by_operation("batch")) == 4 + (expected is None)
    assert (await store.read_tip(CHAIN)).sequence == (5 if stored else 3)
    assert await read_sequences(store) == list(range(1, 6 if stored else 4))
    await _check_stored_once(server, store, name)


async def _check_stored_once(server: CosmosServer, store: CosmosChainStore, name: str) -> None:
    """Check that an append is stored once, or was rejected and is not stored."""
    (log,) = open_logs([store])
    before = await read_sequences(store)
    server.faults.clear()
    server.faults.add(_reset_fault(name))
    if FAULTS[name][1][0] is WorkspaceError:
        with pytest.raises(WorkspaceError):
            await log.append(CHAIN, build_event_draft("u", EVENT), append_id="same")
        assert await read_sequences(store) == before
    appended = await log.append(CHAIN, build_event_draft("u", EVENT), append_id="same")
    assert (appended.record.sequence, appended.repeated) == (len(before) + 1, False)
    assert await store.find(CHAIN, LookupField.APPEND_ID, ["same"]) == [appended.record]
    assert await read_sequences(store) == [*before, appended.record.sequence]


async def test_an_abandoned_batch_that_is_executed_late_is_rejected(
    server: CosmosServer, store: CosmosChainStore
) -> None:
    """If the account executes an abandoned batch late, it conflicts with its retry and is not stored twice."""
    (log,) = open_logs([store])
    late = server.faults.add(_build_batch_fault(FaultKind.DELAY, seconds=0.5))
    appended = await log.append(CHAIN, build_event_draft("u", EVENT), append_id="same")
    assert late.applied == 1
    await _wait_until(lambda: len(server.requests.list_by_operation("batch")) == 5)
    assert sorted(exchange.status for exchange in server.requests.list_by_operation("batch")[3:]) in (
        [200, 207],
        [200, 412],
    )
    assert await read_sequences(store) == [1, 2, 3, 4]
    assert (await store.read_tip(CHAIN)).hash == appended.record.hash


async def test_a_retry_after_throttling_keeps_its_condition(server: CosmosServer, store: CosmosChainStore) -> None:
    """If another append succeeds while a throttled append waits, the throttled append is rejected by If-Match."""
    tip = await store.read_tip(CHAIN)
    conditional: list[bool] = []

    def record_request(request: CosmosRequest) -> bool:
        if _is_batch(request):
            conditional.append(b'"ifMatch"' in request.body)
        return _is_batch(request) and len(conditional) == 1

    server.faults.add(InjectedFault(FaultKind.STATUS, record_request, status=429, retry_after_ms=400))
    waiting = asyncio.create_task(store.append(CHAIN, build_batch(tip, 1, name="late"), tip))
    await _wait_until(lambda: store.usage.throttled == 1)
    await store.append(CHAIN, build_batch(tip, 1), tip)
    with pytest.raises(TipMovedError):
        await waiting
    assert store.usage.conflicts == 1
    assert conditional == [True, True, True]


async def test_an_append_throttled_in_its_last_attempt_is_unavailable(
    server: CosmosServer, store: CosmosChainStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last attempt of an append is throttled, the error says that nothing was written."""
    monkeypatch.setattr("shared.backends.azure.cosmos_chain.THROTTLED_SECONDS", 0.05)
    server.faults.add(InjectedFault(FaultKind.STATUS, _is_batch, status=429, retry_after_ms=20))
    tip = await store.read_tip(CHAIN)
    with pytest.raises(WorkspaceError) as caught:
        await store.append(CHAIN, build_batch(tip, 1), tip)
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")


async def test_an_unreachable_service_is_unavailable() -> None:
    """If no connection is possible, the error says that nothing was written."""
    async with CosmosServer() as server:
        await create_database(server)
        async with open_stores(server) as (store,):
            tip = await fill_chain(store, 1)
            await asyncio.to_thread(server.stop)
            # The first request may still be sent on a connection that closes.
            with contextlib.suppress(OutcomeUnknownError, WorkspaceError):
                await store.append(CHAIN, build_batch(tip, 1), tip)
            with pytest.raises(WorkspaceError) as caught:
                await store.append(CHAIN, build_batch(tip, 1), tip)
            assert caught.value.code == "PROVENANCE_UNAVAILABLE"


READ_FAULTS = [
    InjectedFault(FaultKind.DROP_BEFORE_COMMIT),
    InjectedFault(FaultKind.DROP_IN_REPLY),
    InjectedFault(FaultKind.DELAY, seconds=0.5),
    InjectedFault(FaultKind.PARTIAL_PAGE, page_size=1),
    InjectedFault(FaultKind.PARTIAL_PAGE, page_size=0),
    InjectedFault(FaultKind.STATUS, status=404, substatus=1002, retry_after_ms=1),
    *(InjectedFault(FaultKind.STATUS, status=status, retry_after_ms=1) for status in (408, 410, 429, 449, 500, 503)),
]


@pytest.mark.parametrize("fault", READ_FAULTS, ids=lambda fault: f"{fault.kind} {fault.status} {fault.page_size}")
async def test_reads_are_repeated_after_transient_faults(
    server: CosmosServer, store: CosmosChainStore, fault: InjectedFault
) -> None:
    """If transient faults occur, a read returns each record once and in order."""
    for read in (
        lambda: store.read_tip(CHAIN),
        lambda: store.read(CHAIN, 0, limit=9, max_bytes=MANY),
        lambda: store.scan(CHAIN, Filters(), offset=1, limit=9, max_bytes=MANY),
        lambda: store.scan(CHAIN, Filters(), offset=5, limit=9, max_bytes=MANY),
        lambda: store.find(CHAIN, LookupField.APPEND_ID, ["e-1", "e-2", "e-3"]),
        lambda: store.read_hashes(CHAIN, 0, limit=9),
    ):
        undisturbed = await read()
        applied = InjectedFault(
            fault.kind,
            _is_read,
            times=2,
            status=fault.status,
            substatus=fault.substatus,
            retry_after_ms=1,
            seconds=fault.seconds,
            page_size=fault.page_size,
        )
        server.faults.add(applied)
        assert await read() == undisturbed
        server.faults.clear()
    assert [chain async for chain, _ in store.iterate_tips()] == [CHAIN]


async def _skip_pause(_: float) -> None:
    await asyncio.sleep(0)


async def _list_chains(store: CosmosChainStore) -> list[ChainKey]:
    return [chain async for chain, _ in store.iterate_tips(targets=(CHAIN.target,))]


@pytest.mark.parametrize("read", [_list_chains, read_sequences])
async def test_a_read_whose_later_pages_always_fail_is_unavailable(
    server: CosmosServer, read: Callable[[CosmosChainStore], Awaitable[object]]
) -> None:
    """If the later pages of a read always fail, the read raises UNAVAILABLE, although its first page arrives."""
    async with open_stores(server, runtime=Runtime(sleep=_skip_pause)) as (store,), asyncio.timeout(60):
        for chain in (ChainKey(CHAIN.target, f"line {number}") for number in range(4)):
            await store.append(chain, build_batch(Tip(), 1), Tip())
        await _insert_items_without_record_id(server)
        throttled = InjectedFault(
            FaultKind.STATUS, lambda sent: bool(sent.read_header("x-ms-continuation")), status=429, retry_after_ms=1
        )
        server.faults.add_all([throttled, InjectedFault(FaultKind.PARTIAL_PAGE, page_size=1)])
        with pytest.raises(WorkspaceError) as caught:
            await read(store)
    assert caught.value.code == "PROVENANCE_UNAVAILABLE"
    assert throttled.applied == READ_ATTEMPTS


async def _insert_items_without_record_id(server: CosmosServer) -> None:
    """Insert items whose ids are not RecordIDs, although they sort between RecordIDs."""
    async with CosmosClient(server.endpoint, server.key) as client:
        container = client.get_database_client(DATABASE).get_container_client(CHAIN.target)
        for letter in "xyz":
            item_id = f"{format_record_id(1)}{letter}"
            await container.create_item({"id": item_id, "append": letter, "chain": compute_partition_key(CHAIN, 1)})


async def test_rejected_reads_are_unavailable(server: CosmosServer, store: CosmosChainStore) -> None:
    """A read that is permanently rejected is not repeated and raises UNAVAILABLE."""
    server.faults.add(InjectedFault(FaultKind.STATUS, lambda request: request.operation != "batch", status=403))
    sent = len(server.requests.list_by_operation("read_item"))
    with pytest.raises(WorkspaceError) as caught:
        await store.read_tip(CHAIN)
    assert caught.value.code == "PROVENANCE_UNAVAILABLE"
    assert len(server.requests.list_by_operation("read_item")) == sent + 1
    with pytest.raises(WorkspaceError):
        await store.read(CHAIN, 0, limit=9, max_bytes=MANY)


async def test_a_missing_container_is_no_empty_chain(server: CosmosServer, store: CosmosChainStore) -> None:
    """If the container of a chain is deleted while the service runs, reading the tip raises UNAVAILABLE."""
    async with CosmosClient(server.endpoint, server.key) as client:
        await client.get_database_client(DATABASE).delete_container(CHAIN.target)
    with pytest.raises(WorkspaceError) as caught:
        await store.read_tip(CHAIN)
    assert caught.value.code == "PROVENANCE_UNAVAILABLE"


@pytest.mark.parametrize(("seed", "segment_bytes"), [(20261121, 10**9), (7, 10**9), (3, 20_000)])
async def test_random_faults_neither_lose_nor_duplicate_records(
    server: CosmosServer, seed: int, segment_bytes: int
) -> None:
    """With random faults and several clients, each acknowledged record is stored once, without gap or fork."""
    async with open_stores(server, 4, segment_bytes=segment_bytes) as opened:
        for store in opened:
            await store.provision(CHAIN)
        faults = build_random_faults(0.4, seed, _is_batch)
        # A read has no condition that can fail.
        faults += [fault for fault in build_random_faults(0.2, seed + 1, _is_read) if fault.status != 412]
        server.faults.add_all(faults)
        answered: dict[str, tuple[int, str]] = {}
        engines = open_logs(opened)

        async def write(number: int) -> None:
            for turn in range(TURNS):
                name = f"{number}-{turn}"
                event = EVENT | {"EntityID": name}
                appended = await engines[number % 4].append(CHAIN, build_event_draft("u", event), append_id=name)
                answered[name] = (appended.record.sequence, appended.record.hash)

        await asyncio.gather(*(write(number) for number in range(WRITERS)))
        server.faults.clear()
        page = await opened[0].read(CHAIN, 0, limit=10_000, max_bytes=MANY)
        stored = {record.append_id: (record.sequence, record.hash) for record in page.records}
        assert len(answered) == WRITERS * TURNS
        assert stored == answered, f"seed {seed}"
        assert [record.sequence for record in page.records] == list(range(1, WRITERS * TURNS + 1)), f"seed {seed}"
        verdict = await ChainVerifier(opened[1], get_workspace_id).verify(CHAIN)
        assert verdict.chain_valid, f"seed {seed}: {verdict.reason}"
        assert sum(fault.applied for fault in faults) > 20, f"seed {seed}"
        assert all(sum(getattr(store.usage, name) for store in opened) for name in MET), f"seed {seed}"
    await _check_heads(server, page.records[-1].hash)


async def _check_heads(server: CosmosServer, last: str) -> None:
    """Check that the head items of all segments but the last are sealed, and the last head has the last record."""
    async with CosmosClient(server.endpoint, server.key) as client:
        container = client.get_database_client(DATABASE).get_container_client(CHAIN.target)
        heads = [item async for item in container.query_items("SELECT * FROM c WHERE c.id = 'head'")]
    heads.sort(key=lambda head: head["segment"])
    assert [head["segment"] for head in heads] == list(range(1, len(heads) + 1))
    assert all(head["sealed"] for head in heads[:-1])
    assert heads[-1]["tip"]["hash"] == last


async def test_a_missing_head_never_causes_a_fork(server: CosmosServer, store: CosmosChainStore) -> None:
    """If the chain's head item is missing, a writer cannot start the chain again over its records."""
    async with CosmosClient(server.endpoint, server.key) as client:
        container = client.get_database_client(DATABASE).get_container_client(CHAIN.target)
        await container.delete_item(HEAD_ID, compute_partition_key(ChainKey(CHAIN.target, CHAIN.scope_key), 1))
    assert await store.read_tip(CHAIN) == Tip()
    with pytest.raises(TipMovedError):
        await store.append(CHAIN, build_batch(Tip(), 1, name="fork"), Tip())
    assert await read_sequences(store) == [1, 2, 3]
