"""Cosmos DB accounts for tests of adapters: the emulator, the emulator with random faults, and a real account.

With COSMOS_ENDPOINT and COSMOS_KEY set, every suite also runs on that account, in a separate database that is deleted
afterwards.
"""

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from emulators.cosmos.faults import InjectedFault, build_random_faults
from emulators.cosmos.wire import CosmosRequest
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import create_containers
from shared.runtime import SYSTEM_RUNTIME, Runtime

COSMOS, FAILING, ENDPOINT = "cosmos", "cosmos failing", "cosmos endpoint"
KINDS = [COSMOS, FAILING, *([ENDPOINT] if os.environ.get("COSMOS_ENDPOINT") and os.environ.get("COSMOS_KEY") else [])]
DATABASE = "plant"


class Accounts(Protocol):
    """Opens another client of the one account, as another process has it."""

    def __call__(self, runtime: Runtime = SYSTEM_RUNTIME) -> CosmosAccount:
        """Open a client whose process has the given clock."""
        ...


@asynccontextmanager
async def open_accounts(kind: str) -> AsyncIterator[Accounts]:
    """Open an account of the given kind with empty containers."""
    async with AsyncExitStack() as stack:
        server: CosmosServer | None = None
        if kind == ENDPOINT:
            endpoint, key = os.environ["COSMOS_ENDPOINT"], os.environ["COSMOS_KEY"]
            name = f"contract-{uuid.uuid4().hex}"
        else:
            server = await stack.enter_async_context(CosmosServer(physical_partitions=3))
            endpoint, key, name = server.endpoint, server.key, DATABASE
        client = await stack.enter_async_context(CosmosClient(endpoint, key))
        await create_containers(await client.create_database(name))
        if kind == ENDPOINT:
            stack.push_async_callback(client.delete_database, name)
        if kind == FAILING and server is not None:
            server.faults.add_all(build_random_faults_without_412())

        def open_account(runtime: Runtime = SYSTEM_RUNTIME) -> CosmosAccount:
            account = CosmosAccount(endpoint, name, key=key, runtime=runtime)
            stack.push_async_callback(account.close)
            return account

        yield open_account


def build_random_faults_without_412() -> list[InjectedFault]:
    """Return random faults without the status 412, which callers would treat as a real conflict."""
    return [
        fault
        for fault in (*build_random_faults(0.3, 1, _is_batch_request), *build_random_faults(0.1, 2, _is_read_request))
        if fault.status != 412
    ]


def _is_batch_request(request: CosmosRequest) -> bool:
    return request.operation == "batch"


def _is_read_request(request: CosmosRequest) -> bool:
    return request.operation in {"read_item", "query"}
