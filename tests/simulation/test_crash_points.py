"""Tests of the places at which a simulated process can crash."""

import asyncio
from typing import Any

from shared.imports.uploads import find_upload
from tests.simulation.crash_points import list_awaits, list_suspended_awaits

UPLOADS = "shared/imports/uploads.py"


class WaitingBlobs:
    """Blob store whose list never arrives."""

    async def list(self, name: str) -> Any:
        """Wait forever."""
        await asyncio.get_running_loop().create_future()
        yield name


def test_suspended_awaits_include_those_of_an_awaited_generator() -> None:
    """A suspended task is suspended at its own await, and at those of a generator whose next item it awaits."""

    async def list_awaits_of_waiting_task() -> list[str]:
        blobs: Any = WaitingBlobs()
        task = asyncio.create_task(find_upload(blobs, "job"))
        await asyncio.sleep(0)
        found = list(list_suspended_awaits(task.get_coro()))
        task.cancel()
        return found

    points = {each.function: each.point for each in list_awaits(UPLOADS)}
    expected = [points["find_upload"], points["find_upload.<locals>.<genexpr>"]]
    assert asyncio.run(list_awaits_of_waiting_task()) == expected
