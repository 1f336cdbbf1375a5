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
from shared.backends.azure.cosmos_containers import CONNECTIONS
from shared.backends.azure.cosmos_item_store import CosmosItemStore
from shared.telemetry.ports import ArrivedMessages, ConnectionState
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)


@asynccontextmanager
async def open_empty_account(server: CosmosServer) -> AsyncIterator[CosmosAccount]:
    """Yield an account with empty containers on a new server."""
    await create_database(server)
    account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
    yield account
    await account.close()


async def test_closing_waits_for_the_write_of_a_cancelled_caller() -> None:
    """Closing the store waits until a write has ended whose caller was cancelled meanwhile."""
    is_writing = threading.Event()

    def is_write(request: CosmosRequest) -> bool:
        if request.operation == "batch":
            is_writing.set()
        return request.operation == "batch"

    async with CosmosServer() as server, open_empty_account(server) as account:
        states = CosmosConnectionStates(account)
        server.faults.add(InjectedFault(FaultKind.DELAY, is_write, seconds=0.3))
        arrivals = ArrivedMessages("rig", "telemetry/0", (1, 2), AT, AT)
        caller = asyncio.create_task(states.add_arrived_messages_to_counts([arrivals]))
        await asyncio.to_thread(is_writing.wait)
        caller.cancel()
        await asyncio.wait([caller])
        await states.close()
        assert (await states.load_states_by_connection())["rig"].messages_received == 2


async def test_states_are_built_in_a_worker_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of connections are built in a worker thread, because many of them would block the event loop."""
    threads: list[threading.Thread] = []
    build = module._build_connection_state

    def record_thread(*arguments: Any) -> ConnectionState:
        threads.append(threading.current_thread())
        return build(*arguments)

    monkeypatch.setattr(module, "_build_connection_state", record_thread)
    async with CosmosServer() as server, open_empty_account(server) as account:
        states = CosmosConnectionStates(account)
        await states.set_status(["rig"], "CONNECTED")
        assert await states.load_states_by_connection() == {"rig": ConnectionState("CONNECTED", 0, None)}
    assert threads
    assert threading.main_thread() not in threads


async def test_connections_that_do_not_fit_into_an_item_are_in_further_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item contains a limited number of connections; the counts and statuses of others are in further items."""
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 2)
    names = [f"c{number}" for number in range(5)]
    async with CosmosServer() as server, open_empty_account(server) as account:
        first, second = CosmosConnectionStates(account), CosmosConnectionStates(account)
        for states, known, numbers in [(first, names[2:], (1,)), (second, names, (1, 2)), (first, names, (1, 2, 3))]:
            await states.add_arrived_messages_to_counts(
                [ArrivedMessages(each, "hub/0", numbers, AT, AT) for each in known]
            )
            await states.set_status(known, "CONNECTED")
        await first.set_status(names[1:4], "CONNECTING")
        statuses = dict(zip(names, ["CONNECTED", *["CONNECTING"] * 3, "CONNECTED"], strict=True))
        assert await second.load_statuses_by_connection() == statuses
        assert await second.load_states_by_connection() == {
            each: ConnectionState(statuses[each], 3, AT) for each in names
        }
        items = await CosmosItemStore(account, CONNECTIONS, "-", "-").query_items("SELECT * FROM c")
        assert sorted(len(item["statuses"]) for item in items if "statuses" in item) == [1, 2, 2]
        assert sorted(len(item["counts"]) for item in items if "counts" in item) == [1, 2, 2]
