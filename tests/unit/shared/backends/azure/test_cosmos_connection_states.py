"""Tests of status and statistics of connections in Cosmos DB that do not apply to other stores."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from emulators.cosmos import CosmosServer
from emulators.cosmos.faults import FaultKind, InjectedFault
from emulators.cosmos.wire import CosmosRequest
from shared.backends.azure import cosmos_connection_states as module
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates
from shared.telemetry.ports import ArrivedMessages, ConnectionState
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)


@asynccontextmanager
async def open_connection_states(server: CosmosServer) -> AsyncIterator[CosmosConnectionStates]:
    """Yield an empty store of connection states on a new server."""
    await create_database(server)
    account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
    yield CosmosConnectionStates(account)
    await account.close()


async def test_closing_waits_for_the_write_of_a_cancelled_caller() -> None:
    """Closing the store waits until a write has ended whose caller was cancelled meanwhile."""
    is_writing = threading.Event()

    def is_write(request: CosmosRequest) -> bool:
        if request.operation == "batch":
            is_writing.set()
        return request.operation == "batch"

    async with CosmosServer() as server, open_connection_states(server) as states:
        server.faults.add(InjectedFault(FaultKind.DELAY, is_write, seconds=0.3))
        arrivals = ArrivedMessages("rig", "telemetry/0", (1, 2), AT, AT)
        caller = asyncio.create_task(states.count_arrived_messages([arrivals]))
        await asyncio.to_thread(is_writing.wait)
        caller.cancel()
        await asyncio.wait([caller])
        await states.close()
        assert (await states.load_states())["rig"].messages_received == 2


async def test_states_are_built_in_a_worker_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of connections are built in a worker thread, because many of them would block the event loop."""
    threads: list[threading.Thread] = []
    build = module._build_connection_state

    def record_thread(*arguments: Any) -> ConnectionState:
        threads.append(threading.current_thread())
        return build(*arguments)

    monkeypatch.setattr(module, "_build_connection_state", record_thread)
    async with CosmosServer() as server, open_connection_states(server) as states:
        await states.set_status(["rig"], "CONNECTED")
        assert await states.load_states() == {"rig": ConnectionState("CONNECTED", 0, None)}
    assert threads
    assert threading.main_thread() not in threads
