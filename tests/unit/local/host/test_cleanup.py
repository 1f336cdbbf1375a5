"""Hourly deletion of expired data."""

import sqlite3

from local.host.cleanup import delete_hourly
from local.host.shutdown import ShutdownSignal


class CountedPauses(ShutdownSignal):
    """Shutdown after a number of pauses, with a record of the pauses."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.pauses: list[float] = []

    async def wait_for(self, seconds: float) -> bool:
        """Record a pause instead of waiting; set the signal at the last pause."""
        self.pauses.append(seconds)
        if len(self.pauses) == self._number:
            self.set()
        return self.is_set()


async def test_data_is_deleted_at_the_start_and_hourly() -> None:
    """The first deletion is at the start; after a failure, the next hour tries again."""
    outcomes: list[int | sqlite3.Error] = [3, sqlite3.OperationalError("database is locked"), 0]

    async def delete() -> int:
        outcome = outcomes.pop(0)
        if isinstance(outcome, sqlite3.Error):
            raise outcome
        return outcome

    stopping = CountedPauses(3)
    await delete_hourly("test data", delete, stopping)
    assert (outcomes, stopping.pauses) == ([], [3600.0] * 3)


async def test_nothing_is_deleted_after_the_shutdown() -> None:
    """A host that is already stopping deletes nothing."""

    async def delete() -> int:
        raise AssertionError

    stopping = ShutdownSignal()
    stopping.set()
    await delete_hourly("test data", delete, stopping)
