"""Tests of the limit on a container's request units per second."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError

from emulators.cosmos import AccountOptions, CosmosServer
from emulators.cosmos.throughput import ThroughputBudget
from emulators.cosmos.wire import CosmosError


def test_an_exhausted_budget_rejects_requests() -> None:
    """If no request units are left, requests are rejected with the time until the next one is accepted."""
    budget = ThroughputBudget(10)
    budget.check(100.0)
    budget.spend(25)
    with pytest.raises(CosmosError) as refused:
        budget.check(100.5)
    assert (refused.value.status, refused.value.substatus, refused.value.retry_after_ms) == (429, 3200, 1001)
    budget.check(101.501)


def test_a_budget_saves_at_most_the_units_of_one_second() -> None:
    """While a container is idle, it saves at most the request units of one second."""
    budget = ThroughputBudget(10)
    budget.check(0.0)
    budget.check(1000.0)
    budget.spend(10)
    with pytest.raises(CosmosError):
        budget.check(1000.0)


async def test_a_container_beyond_its_throughput_replies_429() -> None:
    """A request beyond a container's throughput gets 429 and a delay; other containers are not affected."""
    now = [1_000_000.0]
    options = AccountOptions(request_units=5)
    async with (
        CosmosServer(options=options, clock=lambda: now[0]) as server,
        CosmosClient(server.endpoint, server.key, retry_throttle_total=-1) as client,
    ):
        database = await client.create_database("plant")
        busy = await database.create_container("busy", PartitionKey("/pk"))
        idle = await database.create_container("idle", PartitionKey("/pk"))
        await busy.create_item({"id": "1", "pk": "a"})
        with pytest.raises(CosmosHttpResponseError) as refused:
            await busy.create_item({"id": "2", "pk": "a"})
        assert refused.value.status_code == 429
        assert refused.value.headers["x-ms-retry-after-ms"] == "1"
        await idle.create_item({"id": "2", "pk": "a"})
        now[0] += 0.001
        await busy.create_item({"id": "2", "pk": "a"})
