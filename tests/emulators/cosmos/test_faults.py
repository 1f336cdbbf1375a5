"""Tests of how the SDK reacts to injected faults, to notice changes in new SDK versions."""

import asyncio
from typing import Any

import pytest
from azure.core.exceptions import (
    AzureError,
    IncompleteReadError,
    ServiceRequestError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.cosmos import CosmosClient as SyncClient
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import (
    CosmosBatchOperationError,
    CosmosHttpResponseError,
    CosmosResourceExistsError,
)

from emulators.cosmos import CosmosRequest, CosmosServer, FaultKind, InjectedFault
from emulators.cosmos.faults import build_random_faults

NO_RETRIES: dict[str, Any] = {"retry_total": 0, "retry_throttle_total": -1, "enable_endpoint_discovery": False}
"""The options under which the aio SDK sends every write once."""


def _is_batch_create_or_read(request: CosmosRequest) -> bool:
    return request.operation in ("batch", "create_item", "read_item")


def _build_status_fault(status: int, substatus: int = 0, *, is_executed: bool = False) -> InjectedFault:
    kind = FaultKind.STATUS_AFTER_COMMIT if is_executed else FaultKind.STATUS
    return InjectedFault(kind, _is_batch_create_or_read, times=1, status=status, substatus=substatus, retry_after_ms=1)


def _build_fault(kind: FaultKind, **options: Any) -> InjectedFault:
    return InjectedFault(kind, _is_batch_create_or_read, times=1, **options)


async def _append_record(container: ContainerProxy) -> object:
    """Update the head document with If-Match and create a record in one batch."""
    head = await container.upsert_item({"id": "head", "pk": "p", "n": 0})
    change = ("replace", ("head", {"id": "head", "pk": "p", "n": 1}), {"if_match_etag": head["_etag"]})
    return await container.execute_item_batch([change, ("create", ({"id": "r1", "pk": "p"},))], "p")


async def _append_and_find_outcome(container: ContainerProxy) -> tuple[str, bool]:
    """Return the result of an append, and whether the emulator has committed it."""
    try:
        await _append_record(container)
        ended = "done"
    except AzureError as error:
        status = getattr(error, "status_code", None)
        ended = type(error).__name__ if status is None else str(status)
    return ended, (await container.read_item("head", "p"))["n"] == 1


def _build_faults() -> dict[str, InjectedFault]:
    return {
        "drop before": _build_fault(FaultKind.DROP_BEFORE_COMMIT),
        "drop after": _build_fault(FaultKind.DROP_AFTER_COMMIT),
        "reset after": _build_fault(FaultKind.DROP_AFTER_COMMIT, reset=True),
        "drop in reply": _build_fault(FaultKind.DROP_IN_REPLY),
        "408": _build_status_fault(408),
        "408 after": _build_status_fault(408, is_executed=True),
        "410": _build_status_fault(410, 1002),
        "412": _build_status_fault(412),
        "429": _build_status_fault(429, 3200),
        "429 in batch": _build_fault(FaultKind.BATCH_STATUS, status=429),
        "449": _build_status_fault(449),
        "500 after": _build_status_fault(500, is_executed=True),
        "503": _build_status_fault(503),
        "503 after": _build_status_fault(503, is_executed=True),
        "403": _build_status_fault(403, 5300),
    }


# name: (ended and done by default, requests sent; ended and done without retries)
MEASURED: dict[str, tuple[tuple[str, bool], int, tuple[str, bool]]] = {
    "drop before": (("done", True), 2, ("ServiceRequestError", False)),
    "drop after": (("412", True), 2, ("ServiceRequestError", True)),
    "reset after": (("412", True), 2, ("ServiceRequestError", True)),
    "drop in reply": (("IncompleteReadError", True), 1, ("IncompleteReadError", True)),
    "408": (("408", False), 1, ("408", False)),
    "408 after": (("408", True), 1, ("408", True)),
    "410": (("410", False), 1, ("410", False)),
    "412": (("412", False), 1, ("412", False)),
    "429": (("done", True), 2, ("429", False)),
    "429 in batch": (("429", False), 1, ("429", False)),
    "449": (("449", False), 1, ("449", False)),
    "500 after": (("500", True), 1, ("500", True)),
    "503": (("done", True), 2, ("503", False)),
    "503 after": (("412", True), 2, ("503", True)),
    "403": (("403", False), 1, ("403", False)),
}


@pytest.mark.parametrize("name", MEASURED)
async def test_the_sdk_repeats_a_failed_batch_by_default(
    server: CosmosServer, container: ContainerProxy, name: str
) -> None:
    """By default, the asynchronous SDK repeats a batch after a lost connection, 429 or 503.

    The SDK repeats the batch even if the emulator committed it.
    """
    server.faults.add(_build_faults()[name])
    ended, sent, _ = MEASURED[name]
    assert await _append_and_find_outcome(container) == ended
    assert len(server.requests.list_by_operation("batch")) == sent


@pytest.mark.parametrize("name", MEASURED)
async def test_without_retries_the_sdk_sends_a_batch_once(
    server: CosmosServer, container: ContainerProxy, name: str
) -> None:
    """Without retries, a batch is sent once, and the caller gets each fault."""
    async with CosmosClient(server.endpoint, server.key, **NO_RETRIES) as client:
        once = client.get_database_client("plant").get_container_client(container.id)
        server.faults.add(_build_faults()[name])
        assert await _append_and_find_outcome(once) == MEASURED[name][2]
        assert len(server.requests.list_by_operation("batch")) == 1


@pytest.mark.parametrize("write_retries", [1, 3])
async def test_a_write_retry_conflicts_with_its_committed_batch(server: CosmosServer, write_retries: int) -> None:
    """With write retries, a committed batch whose reply was 408 is repeated, and the second attempt gets 412."""
    async with CosmosClient(server.endpoint, server.key, retry_write=write_retries) as client:
        database = await client.create_database("plant")
        container = await database.create_container("records", PartitionKey("/pk"))
        server.faults.add(_build_status_fault(408, is_executed=True))
        assert await _append_and_find_outcome(container) == ("408" if write_retries == 1 else "412", True)


async def test_a_repeated_create_conflicts_with_its_first_attempt(
    server: CosmosServer, container: ContainerProxy
) -> None:
    """By default, a create whose reply was lost is repeated and then gets 409, although it was committed."""
    server.faults.add(_build_fault(FaultKind.DROP_AFTER_COMMIT))
    with pytest.raises(CosmosResourceExistsError):
        await container.create_item({"id": "a", "pk": "p"})
    assert [exchange.status for exchange in server.requests.list_by_operation("create_item")] == [0, 409]


def test_sync_sdk_sends_a_write_once(server: CosmosServer) -> None:
    """The synchronous SDK sends a write once; if the reply is lost, it raises ServiceResponseError."""
    with SyncClient(server.endpoint, server.key) as client:
        container = client.create_database("plant").create_container("records", PartitionKey("/pk"))
        server.faults.add(_build_fault(FaultKind.DROP_AFTER_COMMIT))
        with pytest.raises(ServiceResponseError):
            container.create_item({"id": "a", "pk": "p"})
        assert container.read_item("a", "p")["id"] == "a"
        assert len(server.requests.list_by_operation("create_item")) == 1


@pytest.mark.parametrize("name", ["drop before", "drop after", "drop in reply", "408", "429", "503"])
async def test_the_sdk_repeats_a_read_after_a_fault(server: CosmosServer, container: ContainerProxy, name: str) -> None:
    """By default the SDK repeats a read that failed because of one injected fault."""
    await container.create_item({"id": "a", "pk": "p"})
    server.faults.add(_build_faults()[name])
    assert (await container.read_item("a", "p"))["id"] == "a"
    assert len(server.requests.list_by_operation("read_item")) == 2


@pytest.mark.parametrize("substatus", [0, 1000, 1002, 1007, 1008])
async def test_the_sdk_raises_an_exception_for_status_410(
    server: CosmosServer, container: ContainerProxy, substatus: int
) -> None:
    """The SDK raises an exception for the status 410 with any sub-status, for writes and point reads."""
    await container.create_item({"id": "a", "pk": "p"})
    for attempt in (container.read_item("a", "p"), container.create_item({"id": "b", "pk": "p"})):
        server.faults.add(_build_status_fault(410, substatus))
        with pytest.raises(CosmosHttpResponseError) as caught:
            await attempt
        assert (caught.value.status_code, caught.value.sub_status or 0) == (410, substatus)


async def test_the_throttling_exception_contains_the_delay(server: CosmosServer, container: ContainerProxy) -> None:
    """If each retry gets 429, the exception contains the delay that the server requests."""
    fault = InjectedFault(FaultKind.STATUS, _is_batch_create_or_read, status=429, substatus=3200, retry_after_ms=1)
    server.faults.add(fault)
    with pytest.raises(CosmosHttpResponseError) as caught:
        await container.create_item({"id": "a", "pk": "p"})
    assert caught.value.headers["x-ms-retry-after-ms"] == "1"
    assert fault.applied == 10


async def test_a_batch_with_429_of_an_operation_is_not_repeated(
    server: CosmosServer, container: ContainerProxy
) -> None:
    """If an operation of a batch gets 429, the SDK does not repeat the batch, and the caller gets the delay."""
    server.faults.add(_build_fault(FaultKind.BATCH_STATUS, status=429, retry_after_ms=7))
    with pytest.raises(CosmosBatchOperationError) as caught:
        await _append_record(container)
    assert not isinstance(caught.value, CosmosHttpResponseError)
    assert caught.value.operation_responses[0]["retryAfterMilliseconds"] == 7
    assert caught.value.operation_responses[1]["statusCode"] == 424


async def test_the_sdk_repeats_a_write_with_a_late_reply(server: CosmosServer, container: ContainerProxy) -> None:
    """By default, a write with a late reply is repeated and conflicts with its first attempt."""
    server.faults.add(_build_fault(FaultKind.DELAY_AFTER_COMMIT, seconds=0.5))
    with pytest.raises(CosmosResourceExistsError):
        await container.create_item({"id": "a", "pk": "p"}, read_timeout=0.1)


@pytest.mark.parametrize("kind", [FaultKind.DELAY, FaultKind.DELAY_AFTER_COMMIT])
async def test_a_write_may_be_committed_despite_a_timeout(
    server: CosmosServer, container: ContainerProxy, kind: FaultKind
) -> None:
    """Without retries, a late reply raises ServiceResponseTimeoutError, although the write is possibly committed."""
    async with CosmosClient(server.endpoint, server.key, **NO_RETRIES) as client:
        once = client.get_database_client("plant").get_container_client(container.id)
        server.faults.add(_build_fault(kind, seconds=0.3))
        with pytest.raises(ServiceResponseTimeoutError):
            await once.create_item({"id": "a", "pk": "p"}, read_timeout=0.1)
        found: list[Any] = []
        for _ in range(500):
            found = [item["id"] async for item in once.read_all_items()]
            if found:
                break
            await asyncio.sleep(0.01)
        assert found == ["a"]


async def test_a_fault_is_injected_up_to_its_limit_and_until_it_is_cleared(
    server: CosmosServer, container: ContainerProxy
) -> None:
    """A fault is injected at most as often as its limit allows, and not after it is cleared."""
    fault = server.faults.add(InjectedFault(FaultKind.STATUS, _is_batch_create_or_read, status=449))
    for _ in range(2):
        with pytest.raises(CosmosHttpResponseError):
            await container.create_item({"id": "a", "pk": "p"})
    server.faults.clear()
    await container.create_item({"id": "a", "pk": "p"})
    assert fault.applied == 2
    assert [exchange.fault for exchange in server.requests.list_by_operation("create_item")] == [
        FaultKind.STATUS
    ] * 2 + [None]


async def test_random_faults_have_the_requested_probability() -> None:
    """Random faults are injected with the requested probability."""
    faults = build_random_faults(0.3, seed=7)
    request = CosmosRequest("POST", ("dbs", "d", "colls", "c", "docs"), {}, b"", "batch")
    applied = sum(any(fault.try_apply_to_request(request) for fault in faults) for _ in range(4000))
    assert 0.22 < applied / 4000 < 0.38


async def test_a_lost_connection_and_a_truncated_reply_raise_different_exceptions(
    server: CosmosServer, container: ContainerProxy
) -> None:
    """Without retries, a lost connection and a truncated reply raise different exceptions."""
    async with CosmosClient(server.endpoint, server.key, **NO_RETRIES) as client:
        once = client.get_database_client("plant").get_container_client(container.id)
        for kind, error in (
            (FaultKind.DROP_AFTER_COMMIT, ServiceRequestError),
            (FaultKind.DROP_IN_REPLY, IncompleteReadError),
        ):
            server.faults.add(_build_fault(kind))
            with pytest.raises(error):
                await once.create_item({"id": kind.value, "pk": "p"})
            assert (await once.read_item(kind.value, "p"))["id"] == kind.value
