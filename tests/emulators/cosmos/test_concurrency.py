"""Tests of concurrent writers, and of several client processes that use one emulator."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosBatchOperationError

from emulators.cosmos import DEFAULT_KEY, CosmosServer
from emulators.cosmos.faults import build_random_faults

SEED = 20261121
ROOT = Path(__file__).parents[3]


async def _increment_counter(container: ContainerProxy) -> None:
    while True:
        head = await container.read_item("head", "p")
        changed = {**head, "n": head["n"] + 1}
        condition = {"etag": head["_etag"], "match_condition": MatchConditions.IfNotModified}
        try:
            await container.replace_item("head", changed, **condition)
        except CosmosAccessConditionFailedError:
            continue
        return


async def test_fifty_writers_of_one_document_lose_no_update(container: ContainerProxy) -> None:
    """If fifty writers update one document with If-Match, no update is lost."""
    await container.create_item({"id": "head", "pk": "p", "n": 0})
    await asyncio.gather(*(_increment_counter(container) for _ in range(50)))
    assert (await container.read_item("head", "p"))["n"] == 50


async def test_record_numbers_of_concurrent_writers_have_no_gaps(container: ContainerProxy) -> None:
    """If many writers append batches on condition of the head document's ETag, the record numbers have no gaps."""
    await container.create_item({"id": "head", "pk": "p", "n": 0})

    async def append_batch() -> None:
        while True:
            head = await container.read_item("head", "p")
            number = head["n"] + 1
            replace = ("replace", ("head", {"id": "head", "pk": "p", "n": number}), {"if_match_etag": head["_etag"]})
            try:
                await container.execute_item_batch([replace, ("create", ({"id": f"{number:012}", "pk": "p"},))], "p")
            except CosmosBatchOperationError as error:
                assert error.status_code == 412  # noqa: PT017  anything else is a failure of the test
                continue
            return

    await asyncio.gather(*(append_batch() for _ in range(20)))
    query = "SELECT VALUE c.id FROM c WHERE c.id != 'head' ORDER BY c.id"
    found: list[Any] = [item_id async for item_id in container.query_items(query, partition_key="p")]
    assert found == [f"{number:012}" for number in range(1, 21)]


async def _append_record(container: ContainerProxy, name: str) -> None:
    """Append one record; after an error, check whether the record was stored."""
    query = "SELECT VALUE c.id FROM c WHERE c.name = @name"
    parameters: list[dict[str, object]] = [{"name": "@name", "value": name}]
    while True:
        head = await container.read_item("head", "p")
        number = head["n"] + 1
        replace = ("replace", ("head", {"id": "head", "pk": "p", "n": number}), {"if_match_etag": head["_etag"]})
        record = {"id": f"{number:012}", "pk": "p", "name": name}
        try:
            await container.execute_item_batch([replace, ("create", (record,))], "p")
        except AzureError:
            if not [found async for found in container.query_items(query, parameters=parameters, partition_key="p")]:
                continue
        return


async def test_a_chain_has_no_gaps_despite_faults_of_every_kind(
    server: CosmosServer, container: ContainerProxy
) -> None:
    """If faults of every kind are injected, each record is stored once, and the numbers have no gaps."""
    await container.create_item({"id": "head", "pk": "p", "n": 0})
    faults = build_random_faults(0.4, SEED, lambda request: request.operation == "batch")
    server.faults.add_all(faults)
    options: dict[str, Any] = {"retry_total": 0, "retry_throttle_total": -1, "enable_endpoint_discovery": False}
    async with CosmosClient(server.endpoint, server.key, **options) as client:
        plain = client.get_database_client("plant").get_container_client(container.id)
        await asyncio.gather(*(_append_record(plain, str(n)) for n in range(40)))
        query = "SELECT c.id, c.name FROM c WHERE IS_DEFINED(c.name) ORDER BY c.id"
        records = [record async for record in plain.query_items(query, partition_key="p")]
    assert [record["id"] for record in records] == [f"{number:012}" for number in range(1, 41)], f"seed {SEED}"
    assert {record["name"] for record in records} == {str(n) for n in range(40)}, f"seed {SEED}"
    assert sum(fault.applied for fault in faults) > 10, f"seed {SEED}"


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Start an emulator in a separate process and yield its URL."""
    command = [sys.executable, "-m", "emulators.cosmos", "--port", "0", "--latency-ms", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        word, _, url = process.stdout.readline().strip().partition(" ")
        assert word == "ready"
        yield url
    finally:
        process.terminate()
        assert process.wait(10) == 0
        if process.stdout is not None:
            process.stdout.close()


WRITER = """
import asyncio, sys
from azure.cosmos.aio import CosmosClient
from tests.emulators.cosmos.test_concurrency import _increment_counter
async def main():
    async with CosmosClient(sys.argv[1], sys.argv[2]) as client:
        container = client.get_database_client("plant").get_container_client("records")
        await asyncio.gather(*(_increment_counter(container) for _ in range(8)))
asyncio.run(main())
"""


async def test_concurrent_processes_lose_no_update(endpoint: str) -> None:
    """If two client processes update one document with If-Match, no update is lost."""
    async with CosmosClient(endpoint, DEFAULT_KEY) as client:
        database = await client.create_database("plant")
        container = await database.create_container("records", PartitionKey("/pk"))
        await container.create_item({"id": "head", "pk": "p", "n": 0})
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", WRITER, endpoint, DEFAULT_KEY]
        writers = [await asyncio.create_subprocess_exec(*command, env=environment, cwd=ROOT) for _ in range(2)]
        assert await asyncio.gather(*(writer.wait() for writer in writers)) == [0, 0]
        assert (await container.read_item("head", "p"))["n"] == 16
