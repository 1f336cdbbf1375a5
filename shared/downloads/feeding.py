"""Rows that coroutines read, for a thread that converts them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Event
from typing import Final

import pyarrow as pa

LOOK_SECONDS: Final = 0.5


class Stopped(Exception):  # noqa: N818  nothing went wrong
    """The rows are not wanted any more."""


class Feed:
    """Reads rows on the event loop, one batch ahead of the thread that takes them.

    Args:
        loop: where the coroutines run.
        read: begins to read from the first row, each time it is called.
        stop: when set, the thread gets ``Stopped``.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, read: Callable[[], AsyncIterator[pa.RecordBatch]], stop: Event
    ) -> None:
        self._loop = loop
        self._read = read
        self._stop = stop

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches; call it in a thread other than the loop's.

        Raises:
            Stopped: the rows are not wanted any more.
        """
        rows = self._read()
        upcoming = self._submit(_next(rows))
        try:
            while (batch := self._wait(upcoming)) is not None:
                upcoming = self._submit(_next(rows))
                yield batch
        finally:
            upcoming.cancel()

    def _submit(self, coroutine: Coroutine[None, None, pa.RecordBatch | None]) -> Future[pa.RecordBatch | None]:
        if self._stop.is_set():
            coroutine.close()
            raise Stopped
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _wait(self, upcoming: Future[pa.RecordBatch | None]) -> pa.RecordBatch | None:
        # The loop may end while this waits; then nothing ever comes.
        while not self._stop.is_set():
            with suppress(TimeoutError):
                return upcoming.result(LOOK_SECONDS)
        raise Stopped


async def _next(rows: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return await anext(rows, None)
