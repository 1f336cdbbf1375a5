"""Tests of the shutdown signal."""

import asyncio

from local.host.shutdown import ShutdownSignal


async def test_all_tasks_that_wait_for_the_shutdown_end() -> None:
    """When the host stops, all tasks that wait for this end their wait, with and without a time limit."""
    signal = ShutdownSignal()
    waiting = [asyncio.create_task(signal.wait()), asyncio.create_task(signal.wait_until_set(3_600))]
    await asyncio.sleep(0)
    assert not signal.is_set()
    signal.set()
    assert await asyncio.gather(*waiting) == [None, True]
    assert signal.is_set()


async def test_a_limited_wait_returns_whether_the_host_stops() -> None:
    """A wait with a time limit returns True if the host stops, and False after the time limit."""
    signal = ShutdownSignal()
    assert not await signal.wait_until_set(0)
    signal.set()
    assert await signal.wait_until_set(3_600)
