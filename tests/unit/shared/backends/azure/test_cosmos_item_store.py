"""Tests of compare-and-swap changes in Cosmos DB with faults."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from emulators.cosmos import CosmosServer
from emulators.cosmos.faults import FaultKind, InjectedFault
from emulators.cosmos.wire import CosmosRequest
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CONNECTIONS, CONTAINERS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, build_readiness_checks_by_name
from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore
from shared.errors import Kind, WorkspaceError
from shared.rate_limits.ports import LeaseRequest
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database


@dataclass
class ItemStores:
    """Emulator with two item stores that use the same container."""

    server: CosmosServer
    account: CosmosAccount
    state: CosmosItemStore
    other: CosmosItemStore

    def inject_faults(self, *faults: InjectedFault) -> None:
        """Make each of the given faults occur once in the next batches."""
        for fault in faults:
            fault.match, fault.times = _is_batch, 1
        self.server.faults.add_all(faults)

    async def increment(self, state: CosmosItemStore | None = None) -> int:
        """Increment the number in the item and return the new number."""
        item = await (state or self.state).change("n", "n", _increment_value)
        assert item is not None
        return int(item["count"])


@pytest.fixture
async def item_stores() -> AsyncIterator[ItemStores]:
    """Provide an emulator and two clients of one empty container."""
    async with CosmosServer() as server:
        await create_database(server)
        accounts = [CosmosAccount(server.endpoint, DATABASE, key=server.key, read_seconds=0.5) for _ in range(2)]
        states = [CosmosItemStore(each, CONNECTIONS, "CODE", "it", retry_seconds=2) for each in accounts]
        yield ItemStores(server, accounts[0], *states)
        for account in accounts:
            await account.close()


def _is_batch(request: CosmosRequest) -> bool:
    return request.operation == "batch"


def _increment_value(before: Item | None) -> Item:
    return {"id": "n", "count": before["count"] + 1 if before else 1}


FAULTS = [
    InjectedFault(FaultKind.DROP_BEFORE_COMMIT),
    InjectedFault(FaultKind.DROP_AFTER_COMMIT),
    InjectedFault(FaultKind.DROP_AFTER_COMMIT, reset=True),
    InjectedFault(FaultKind.DROP_IN_REPLY),
    InjectedFault(FaultKind.STATUS, status=408),
    InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=408),
    InjectedFault(FaultKind.STATUS, status=410, substatus=1002),
    InjectedFault(FaultKind.STATUS, status=429, substatus=3200, retry_after_ms=5),
    InjectedFault(FaultKind.BATCH_STATUS, status=429, retry_after_ms=5),
    InjectedFault(FaultKind.BATCH_STATUS, status=449, retry_after_ms=5),
    InjectedFault(FaultKind.STATUS, status=449),
    InjectedFault(FaultKind.STATUS, status=500),
    InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=500),
    InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=503),
    InjectedFault(FaultKind.DELAY, seconds=0.8),
    InjectedFault(FaultKind.DELAY_AFTER_COMMIT, seconds=0.8),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind.name}-{fault.status}")
async def test_each_change_is_applied_once(item_stores: ItemStores, fault: InjectedFault) -> None:
    """If a request or reply of a change is lost, the change is still applied once, and so is the next change."""
    for expected in (1, 2):
        fault.applied = 0
        item_stores.inject_faults(fault)
        assert await item_stores.increment() == expected
        assert fault.applied == 1
        item_stores.server.faults.clear()
    assert await item_stores.increment(item_stores.other) == 3


async def test_a_change_with_a_lost_reply_is_applied_once(item_stores: ItemStores) -> None:
    """If the reply to a change is lost, it is applied once, even if other writers change the item before the retry."""
    await item_stores.increment()
    item_stores.inject_faults(InjectedFault(FaultKind.DELAY_AFTER_COMMIT, seconds=0.8))
    late = asyncio.create_task(item_stores.increment())
    await _write_items(item_stores, 2)
    assert [await item_stores.increment(item_stores.other) for _ in range(3)] == [3, 4, 5]
    assert await late >= 2
    assert await item_stores.increment(item_stores.other) == 6


async def _write_items(item_stores: ItemStores, count: int) -> None:
    async with asyncio.timeout(10):
        while True:
            found = await item_stores.other.read("n", "n")
            if found is not None and found["count"] == count:
                return
            await asyncio.sleep(0.01)


async def test_a_change_fails_after_its_last_attempt(item_stores: ItemStores) -> None:
    """After its last attempt, a change fails with the store's error code and without internal details."""
    bodies: list[bytes] = []

    def is_first_change(request: CosmosRequest) -> bool:
        if _is_batch(request) and not bodies:
            bodies.append(request.body)
        return _is_batch(request) and request.body in bodies

    # The fault stays, because a request that the client has abandoned can reach the emulator after the change failed.
    item_stores.server.faults.add(InjectedFault(FaultKind.STATUS, is_first_change, status=503))
    with pytest.raises(WorkspaceError) as caught:
        await item_stores.increment()
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CODE")
    assert caught.value.detail == "It does not respond; retry later."
    assert await item_stores.increment() == 1


async def test_a_rejection_is_not_retried(item_stores: ItemStores) -> None:
    """A permanent rejection is raised at once, without another attempt."""
    item_stores.inject_faults(InjectedFault(FaultKind.STATUS, status=403))
    with pytest.raises(WorkspaceError):
        await item_stores.increment()
    assert item_stores.server.requests.count_by_operation()["batch"] == 1


async def test_a_missing_container_raises_an_error_but_a_missing_item_does_not(
    item_stores: ItemStores, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing item is read as None; a missing container is logged and raises an error, also in readiness checks."""
    assert await item_stores.state.read("n", "n") is None
    probe = build_readiness_checks_by_name(item_stores.account)["Cosmos DB container connections"]
    await probe()
    item_stores.server.faults.add(
        InjectedFault(FaultKind.STATUS, lambda request: request.operation == "read_item", status=404, substatus=1003)
    )
    assert not caplog.records
    for read in (lambda: item_stores.state.read("n", "n"), probe):
        with pytest.raises(WorkspaceError):
            await read()
        assert getattr(caplog.records[-1], "fields", None) == {"container": "connections"}
        caplog.clear()


async def test_renewing_a_lease_takes_one_write(item_stores: ItemStores) -> None:
    """Renewing a rate-limit lease takes one write and no read; if the store is slow, renewing fails after a timeout."""
    store = CosmosLeaseStore(item_stores.account, timeout_seconds=0.4)
    await store.lease_budget_slice(LeaseRequest("p", "one", "", 0, 0, 1, 0, 10), lambda: 1_000.0)
    before = item_stores.server.requests.count_by_operation()
    await store.lease_budget_slice(LeaseRequest("p", "one", "", 0, 0, 1, 0, 10), lambda: 1_001.0)
    after = item_stores.server.requests.count_by_operation()
    assert {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)} == {
        "batch": 1
    }
    item_stores.server.faults.add(InjectedFault(FaultKind.DELAY, _is_batch, seconds=3))
    with pytest.raises(WorkspaceError) as caught:
        await store.lease_budget_slice(LeaseRequest("p", "one", "", 0, 0, 1, 0, 10), lambda: 1_002.0)
    assert caught.value.code == "RATE_LIMITS_UNAVAILABLE"
    item_stores.server.faults.clear()
    assert (await store.lease_budget_slice(LeaseRequest("p", "one", "", 0, 0, 1, 0, 10), lambda: 1_003.0)).granted == 1


def test_every_container_is_defined_once() -> None:
    """Container names are unique; with unique keys, items do not expire; deviating properties are reported."""
    assert len({definition.name for definition in CONTAINERS}) == len(CONTAINERS)
    assert all(definition.default_ttl is None for definition in CONTAINERS if definition.unique_key_paths)
    assert [definition.describe_differences(_get_properties(definition)) for definition in CONTAINERS] == [[]] * len(
        CONTAINERS
    )
    other = _get_properties(CONNECTIONS) | {"defaultTtl": 60, "partitionKey": {"paths": ["/other"]}}
    assert CONNECTIONS.describe_differences(other) == ["its partition key must be /id", "its items must not expire"]


def _get_properties(definition: object) -> Item:
    assert isinstance(definition, type(CONNECTIONS))
    keys = [{"paths": [path]} for path in definition.unique_key_paths]
    return {
        "partitionKey": {"paths": [definition.partition_key_path]},
        "defaultTtl": definition.default_ttl,
        "uniqueKeyPolicy": {"uniqueKeys": keys},
    }
