"""Tests of cancelling queries of disconnected clients."""

import asyncio

import pytest

from shared.warm_queries.disconnects import (
    cancel_at_disconnect,
    is_cancelled_by_client,
    start_task_independent_of_client,
    watch_for_disconnect,
)


class Client:
    """Fake client that stays connected until the test disconnects it."""

    def __init__(self) -> None:
        self._gone = asyncio.Event()
        self.is_watched = asyncio.Event()

    async def wait(self) -> None:
        """Wait until the client disconnects."""
        self.is_watched.set()
        await self._gone.wait()

    def disconnect(self) -> None:
        """Disconnect the client."""
        self._gone.set()


async def run_query() -> None:
    """Run a query that never returns and can only be cancelled."""
    with cancel_at_disconnect():
        await asyncio.Event().wait()


async def test_a_disconnect_during_a_query_cancels_the_request() -> None:
    """If the client disconnects while a query of its request runs, the request is cancelled."""
    client, cancelled = Client(), list[bool]()

    async def process_request() -> None:
        with watch_for_disconnect(client.wait) as watch:
            cancelled.append(is_cancelled_by_client())
            try:
                await asyncio.gather(run_query(), run_query())
            finally:
                cancelled.append(watch.has_cancelled and is_cancelled_by_client())

    request = asyncio.create_task(process_request())
    await client.is_watched.wait()
    client.disconnect()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert cancelled == [False, True]
    assert not is_cancelled_by_client()


async def test_a_disconnect_after_a_query_does_not_cancel_the_request() -> None:
    """If the client disconnects after the query has ended, the request continues, so that a write is completed."""
    client = Client()

    async def process_request() -> str:
        with watch_for_disconnect(client.wait):
            with cancel_at_disconnect():
                await client.is_watched.wait()
            client.disconnect()
            for _ in range(5):
                await asyncio.sleep(0)
            return "written"

    assert await asyncio.create_task(process_request()) == "written"


async def test_a_shared_task_does_not_end_with_a_client() -> None:
    """If several requests wait for one query, it continues after one of their clients disconnects."""
    client, gate = Client(), asyncio.Event()

    async def run_shared() -> str:
        with cancel_at_disconnect():
            await gate.wait()
        return "result"

    async def process_request() -> "asyncio.Task[str]":
        with watch_for_disconnect(client.wait):
            shared = start_task_independent_of_client(run_shared())
            await asyncio.sleep(0)
            return shared

    shared = await asyncio.create_task(process_request())
    client.disconnect()
    await asyncio.sleep(0)
    assert not client.is_watched.is_set()
    gate.set()
    assert await shared == "result"


async def test_queries_without_a_watched_client_are_not_cancelled() -> None:
    """Outside of a request that watches its client, queries are never cancelled by a disconnect."""
    before = asyncio.all_tasks()
    with cancel_at_disconnect():
        assert asyncio.all_tasks() == before
