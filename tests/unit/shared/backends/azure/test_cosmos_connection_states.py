"""Tests of status and statistics of connections in Cosmos DB that do not apply to other stores."""

import asyncio
import threading
from datetime import UTC, datetime

from emulators.cosmos import CosmosServer
from emulators.cosmos.faults import FaultKind, InjectedFault
from emulators.cosmos.wire import CosmosRequest
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates
from shared.telemetry.ports import ArrivedMessages
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database


async def test_closing_waits_for_the_write_of_a_cancelled_caller() -> None:
    """Closing the store waits until a write has ended whose caller was cancelled meanwhile."""
    is_writing = threading.Event()

    def is_write(request: CosmosRequest) -> bool:
        if request.operation == "batch":
            is_writing.set()
        return request.operation == "batch"

    async with CosmosServer() as server:
        await create_database(server)
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        states = CosmosConnectionStates(account)
        server.faults.add(InjectedFault(FaultKind.DELAY, is_write, seconds=0.3))
        at = datetime(2026, 1, 5, 8, tzinfo=UTC)
        arrivals = ArrivedMessages("rig", "telemetry/0", (1, 2), at, at)
        caller = asyncio.create_task(states.count_arrived_messages([arrivals]))
        await asyncio.to_thread(is_writing.wait)
        caller.cancel()
        await asyncio.wait([caller])
        await states.close()
        assert (await states.load_states())["rig"].messages_received == 2
        await account.close()
