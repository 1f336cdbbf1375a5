"""Tests of passing archive rows from the event loop to worker threads."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from threading import Event

import pyarrow as pa
import pytest

from shared.downloads.row_feed import (
    JOINED_ROWS,
    SLICE_BYTES,
    SLICE_ROWS,
    FeedStopped,
    RowFeed,
    call_in_threads,
    format_timestamps,
    resize_batches,
)


def build_batch(first: int, count: int, width: int = 1) -> pa.RecordBatch:
    """Return a batch of consecutive numbers, each with a text of ``width`` characters."""
    numbers = pa.array(range(first, first + count), pa.int64())
    return pa.record_batch([numbers, pa.array(["x" * width] * count)], names=["n", "text"])


def list_numbers(batches: list[pa.RecordBatch]) -> list[int]:
    """Return the numbers in all rows of the batches."""
    return [number for batch in batches for number in batch.column("n").to_pylist()]


def test_small_batches_are_joined_and_large_ones_divided() -> None:
    """Small batches are joined and large batches divided; the rows and their order stay the same."""
    batches = [build_batch(n * 10, 10) for n in range(5)] + [build_batch(50, SLICE_ROWS + 5)]
    sliced = list(resize_batches(batches))
    assert [batch.num_rows for batch in sliced] == [50, SLICE_ROWS, 5]
    assert list_numbers(sliced) == list(range(SLICE_ROWS + 55))


def test_long_rows_are_divided_by_size() -> None:
    """Batches with long rows are divided by size; a single row may exceed the limit."""
    sliced = list(resize_batches([build_batch(0, 8, SLICE_BYTES // 3)]))
    assert [batch.num_rows for batch in sliced] == [2, 2, 2, 2]
    [row] = resize_batches([build_batch(0, 1, SLICE_BYTES + 1)])
    assert row.num_rows == 1


def test_empty_batches_are_skipped() -> None:
    """Batches without rows are skipped."""
    assert list(resize_batches([build_batch(0, 0)] * 3)) == []
    assert [each.num_rows for each in resize_batches([build_batch(0, 1), build_batch(1, JOINED_ROWS)])] == [
        1,
        JOINED_ROWS,
    ]


def test_formatted_row_times_have_microseconds() -> None:
    """A formatted time has microseconds and no zone, which the file writer adds."""
    times = pa.array([datetime(2026, 1, 5, 8, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert format_timestamps(times).to_pylist() == ["2026-01-05T08:00:00.000000", "0001-01-01T00:00:00.000000"]


def test_results_are_in_the_order_of_the_items() -> None:
    """Items are processed concurrently, and the results are in the order of the items."""
    second = Event()

    def process_item(item: int) -> int:
        if item == 0:
            assert second.wait(60)
        if item == 1:
            second.set()
        return item * 2

    assert list(call_in_threads(process_item, iter(range(10)))) == [item * 2 for item in range(10)]


def test_an_error_in_an_item_is_raised() -> None:
    """If processing an item raises an error, the caller gets it."""
    with pytest.raises(ZeroDivisionError):
        list(call_in_threads(lambda item: 1 // item, iter([1, 0, 1])))


async def read_batches() -> AsyncIterator[pa.RecordBatch]:
    """Yield three batches."""
    for number in range(3):
        yield build_batch(number, 1)


async def test_a_thread_reads_all_batches() -> None:
    """A worker thread reads all batches; each call of the feed begins at the first row."""
    feed = RowFeed(asyncio.get_running_loop(), read_batches, Event())
    for _ in range(2):
        assert list_numbers(await asyncio.to_thread(lambda: list(feed()))) == [0, 1, 2]


async def test_a_stopped_feed_ends_its_thread() -> None:
    """If a job is cancelled, its thread ends instead of waiting for the next batch."""
    stop = Event()
    feed = RowFeed(asyncio.get_running_loop(), read_batches, stop)

    def read_one_and_stop() -> list[int]:
        rows = feed()
        first = next(rows)
        stop.set()
        with pytest.raises(FeedStopped):
            list(rows)
        return list_numbers([first])

    assert await asyncio.to_thread(read_one_and_stop) == [0]
