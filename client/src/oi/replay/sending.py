"""Sends CSV rows in batches, with several concurrent requests, at a chosen speed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from oi._async.telemetry import AsyncTelemetry
from oi.batches import MAX_BYTES
from oi.errors import ApiError
from oi.replay.csv_rows import CsvRow

_PACE_SECONDS = 0.1
"""Rows that are due within this time in seconds are sent together."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace at which a replay sends rows: batch size, speed and number of concurrent requests.

    Attributes:
        batch: maximum number of rows in one request.
        speed: factor by which rows are sent faster than they were measured; 0 to send as fast as possible.
        concurrency: maximum number of concurrent requests.
    """

    batch: int = 1_000
    speed: float = 0.0
    concurrency: int = 4


async def send_rows(
    rows: Iterable[CsvRow],
    telemetry: AsyncTelemetry,
    connection: str,
    pace: Pace,
    on_accepted: Callable[[int], None],
) -> None:
    """Send CSV rows as telemetry of a connection.

    Args:
        rows: rows in the order in which they are sent.
        telemetry: client that sends telemetry to an open workspace.
        connection: short name of the connection in URLs (lookup).
        pace: batch size, speed and concurrency.
        on_accepted: called with the number of rows of each accepted batch.

    Raises:
        ApiError: the service cannot be reached, or rejects a batch; the message names the rows of the batch. Batches
            that were accepted remain stored.
        ValueError: a file has an invalid row.
    """
    queue: asyncio.Queue[list[CsvRow] | None] = asyncio.Queue(pace.concurrency)

    async def send_batches() -> None:
        while (batch := await queue.get()) is not None:
            on_accepted(await _send_batch_and_count_rows(batch, telemetry, connection))

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(pace.concurrency):
                tasks.create_task(send_batches())
            async for batch in stream_due_batches(rows, pace):
                await queue.put(batch)
            for _ in range(pace.concurrency):
                await queue.put(None)
    except* (ApiError, ValueError) as group:
        raise _get_first_nested_error(group) from None


async def stream_due_batches(rows: Iterable[CsvRow], pace: Pace) -> AsyncIterator[list[CsvRow]]:
    """Group rows into batches, and yield each batch when its rows are due at the speed of ``pace``."""
    clock = _ReplayClock(pace.speed)
    batch: list[CsvRow] = []
    size = 0
    for row in rows:
        wait = clock.compute_wait_seconds(row)
        if batch and (len(batch) == pace.batch or size + len(row.message) > MAX_BYTES or wait > _PACE_SECONDS):
            yield batch
            batch, size = [], 0
            wait = clock.compute_wait_seconds(row)
        if wait > _PACE_SECONDS:
            await asyncio.sleep(wait)
        batch.append(row)
        size += len(row.message) + 1
    if batch:
        yield batch


class _ReplayClock:
    """Clock of a replay that returns when rows are due; the first row is due immediately."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._start: tuple[float, datetime] | None = None

    def compute_wait_seconds(self, row: CsvRow) -> float:
        """Return the seconds until a row is due; 0 or less if the row is already due."""
        if not self._speed:
            return 0.0
        if self._start is None:
            self._start = (time.monotonic(), row.moment)
        started, first = self._start
        return started + (row.moment - first).total_seconds() / self._speed - time.monotonic()


async def _send_batch_and_count_rows(batch: list[CsvRow], telemetry: AsyncTelemetry, connection: str) -> int:
    try:
        return await telemetry.send_lines(connection, [row.message + b"\n" for row in batch])
    except ApiError as error:
        error.prefix_detail(f"{batch[0].place} to {batch[-1].place}")
        raise


def _get_first_nested_error(group: BaseExceptionGroup[ApiError | ValueError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
