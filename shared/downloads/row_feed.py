"""Transfer of Arrow record batches from coroutines to worker threads, in batches of similar size."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Final

import pyarrow as pa

SLICE_ROWS: Final = 16_384
SLICE_BYTES: Final = 16 * 1024 * 1024
JOINED_ROWS: Final = 8_192
JOINED_BYTES: Final = SLICE_BYTES // 16
"""Size in bytes below which record batches are joined."""
FIXED_COLUMNS: Final = ("timestamp", "connection", "deviceId", "messageId")
"""Columns before the payload in every format."""


def resize_batches(batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
    """Yield the same rows in batches of similar, limited size: split large batches, and join small batches."""
    for batch in _join_small_batches(batches):
        for first in range(0, batch.num_rows, SLICE_ROWS):
            yield from _halve_large_batch(batch.slice(first, SLICE_ROWS))


def _join_small_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches, because each batch has a fixed cost and an hour can have only a few rows."""
    small: list[pa.RecordBatch] = []
    for batch in batches:
        if small and sum(each.num_rows for each in small) + batch.num_rows > SLICE_ROWS:
            yield pa.concat_batches(small)
            small.clear()
        if batch.num_rows >= JOINED_ROWS or batch.nbytes >= JOINED_BYTES:
            if small:
                yield pa.concat_batches(small)
                small.clear()
            yield batch
        elif batch.num_rows:
            small.append(batch)
    if small:
        yield pa.concat_batches(small)


def _halve_large_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows < 2 or batch.nbytes <= SLICE_BYTES:  # noqa: PLR2004  one row cannot be halved
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halve_large_batch(batch.slice(0, middle))
    yield from _halve_large_batch(batch.slice(middle))


def format_timestamps(timestamps: pa.Array) -> pa.Array:
    """Return an Arrow array of timestamps as RFC 3339 text with microseconds, but without the final ``Z``."""
    import pyarrow.compute as pc  # noqa: PLC0415  loaded where it is needed

    texts = timestamps.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_replace_slice(texts, 10, 11, "T")


POLL_SECONDS: Final = 0.5


class FeedStopped(Exception):  # noqa: N818  not an error
    """Raised in the thread that reads rows, to end the thread when the rows are no longer needed."""


class RowFeed:
    """Passes record batches from coroutines on the event loop to a worker thread; reads one batch in advance.

    Args:
        loop: event loop of the coroutines.
        read_batches: returns an iterator of batches; each call starts to read from the first row.
        stop_event: when set, the thread receives ``FeedStopped``.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        read_batches: Callable[[], AsyncIterator[pa.RecordBatch]],
        stop_event: Event,
    ) -> None:
        self._loop = loop
        self._read = read_batches
        self._stop = stop_event

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield all record batches; call this in a worker thread, not in the thread of the event loop.

        Raises:
            FeedStopped: the rows are no longer required.
        """
        rows = self._read()
        upcoming = self._submit_read(_read_next_batch(rows))
        try:
            while (batch := self._wait_for_batch(upcoming)) is not None:
                upcoming = self._submit_read(_read_next_batch(rows))
                yield batch
        finally:
            upcoming.cancel()

    def _submit_read(self, coroutine: Coroutine[None, None, pa.RecordBatch | None]) -> Future[pa.RecordBatch | None]:
        if self._stop.is_set():
            coroutine.close()
            raise FeedStopped
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _wait_for_batch(self, upcoming: Future[pa.RecordBatch | None]) -> pa.RecordBatch | None:
        # The loop can end during the wait, and then the future never completes.
        while not self._stop.is_set():
            with suppress(TimeoutError):
                return upcoming.result(POLL_SECONDS)
        raise FeedStopped


async def _read_next_batch(rows: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(rows, None)


WORKERS: Final = min(4, os.cpu_count() or 1)


def call_in_threads[T, R](function: Callable[[T], R], items: Iterator[T]) -> Iterator[R]:
    """Call a function with each item in a few threads; yield the results in the order of the items.

    The function must release the interpreter lock, as pyarrow and DuckDB do.
    """
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="convert") as pool:
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) > WORKERS:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
