"""Tests of concurrent calls of one operation for many items."""

import asyncio
from collections.abc import Iterator

import pytest

from shared.cold_data.concurrent_calls import call_for_each


@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_results_have_the_order_of_the_items(limit: int) -> None:
    """The results have the order of the items, not of the ends of the calls; at most ``limit`` calls run at a time."""
    running, most = 0, 0

    async def double(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(20 - number):
            await asyncio.sleep(0)
        running -= 1
        return 2 * number

    assert await call_for_each(double, range(20), limit) == list(range(0, 40, 2))
    assert most == min(limit, 20)
    assert await call_for_each(double, [], limit) == []


async def test_an_error_is_raised_after_the_running_calls() -> None:
    """After an error no further call starts; the error is raised when the running calls have ended."""
    taken, ended = [], []

    def iterate_items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    async def fail_for_one(number: int) -> None:
        if number == 1:
            raise ValueError(number)
        await asyncio.sleep(0)
        ended.append(number)

    with pytest.raises(ValueError, match="1"):
        await call_for_each(fail_for_one, iterate_items(), 4)
    assert (taken, ended) == ([0, 1], [0])


async def test_cancelled_calls_end_before_the_cancellation() -> None:
    """If the caller is cancelled, the running calls are cancelled and have ended when the caller ends."""
    ended = []

    async def wait_for_ever(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    calls = asyncio.create_task(call_for_each(wait_for_ever, range(9), 2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calls.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls
    assert ended == [0, 1]
