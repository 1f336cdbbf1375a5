"""Tests of the clock of the Durable Task engine."""

import asyncio
from datetime import timedelta

from emulators.durable.clock import SystemClock


async def test_an_event_ends_a_wait_of_the_clock() -> None:
    """A wait of the clock without an end time ends when its event is set."""
    clock, wake = SystemClock(), asyncio.Event()
    waiting = asyncio.create_task(clock.wait_until_due_or_woken(None, wake))
    await asyncio.sleep(0)
    wake.set()
    await waiting


async def test_a_wait_until_a_past_time_ends_at_once() -> None:
    """A wait of the clock until a time in the past ends at once."""
    clock = SystemClock()
    before = clock.now()
    await clock.wait_until_due_or_woken(before - timedelta(days=1), asyncio.Event())
    assert clock.now() >= before
