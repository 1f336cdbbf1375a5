"""Tests of the archive reader: ranges, order and duplicates."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.cold_data.archive import Archive
from shared.cold_data.inventory import CONCURRENT_DOWNLOADS
from shared.cold_data.reading import ColdReader, DuplicateFinder
from shared.telemetry.models import HubEvent
from tests.random_examples import scale_examples
from tests.unit.shared.cold_data.archived import (
    NOON,
    build_event,
    open_folder_store,
    read_ids,
    read_rows,
    split_into_batches,
)

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


async def test_a_read_range_includes_its_start_and_excludes_its_end(tmp_path: Path) -> None:
    """A read returns rows from the start up to, but excluding, the end, in time order."""
    store = open_folder_store(tmp_path)
    micro = timedelta(microseconds=1)
    times = [NOON + HOUR, NOON - micro, NOON, NOON + HOUR - micro, NOON + 2 * HOUR]
    await Archive(store).store_events([build_event(number, at=at) for number, at in enumerate(times, 1)])
    assert [row["timestamp"] for row in await read_rows(store, "rig", NOON, NOON + HOUR)] == [NOON, NOON + HOUR - micro]
    assert [row["timestamp"] for row in await read_rows(store)] == sorted(times)
    assert await read_rows(store, "rig", NOON + 3 * HOUR, NOON + DAY) == []
    assert await read_rows(store, "nobody") == []


async def test_a_read_range_may_end_at_the_limits_of_the_calendar(tmp_path: Path) -> None:
    """A range can begin and end at the limits of the calendar."""
    store = open_folder_store(tmp_path)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    micro = timedelta(microseconds=1)
    times = [first, first + DAY, last - DAY, last - HOUR, last - micro, last]
    await Archive(store).store_events([build_event(number, at=at) for number, at in enumerate(times, 1)])
    assert [row["timestamp"] for row in await read_rows(store, "rig", first, last)] == times[:-1]
    assert [row["timestamp"] for row in await read_rows(store, "rig", last - HOUR, last)] == times[3:5]
    assert [row["timestamp"] for row in await read_rows(store, "rig", first, first + DAY)] == [first]


async def test_list_hours_returns_rows_and_sizes(tmp_path: Path) -> None:
    """Each hour with rows is listed with its number of rows and the size of its data."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(1), build_event(2), build_event(3, at=NOON + 30 * HOUR)])
    found = await ColdReader(store).list_hours("rig", NOON + timedelta(minutes=30), NOON + 31 * HOUR)
    assert [(each.start, each.rows) for each in found] == [(NOON, 2), (NOON + 30 * HOUR, 1)]
    assert all(each.size > 0 for each in found)
    assert await ColdReader(store).list_hours("rig", NOON + HOUR, NOON + 30 * HOUR) == []


@pytest.mark.parametrize(
    ("arrivals", "kept"),
    [
        ([0, 0], [0]),
        ([0, 24], [0]),
        ([0, 24.01], [0, 24.01]),
        ([0, 23, 26], [0, 26]),
        ([0, 23, 26, 49, 51], [0, 26, 51]),
        ([5, 0], [0]),
    ],
)
@pytest.mark.parametrize("same_hour", [True, False])
async def test_messages_with_the_same_id_within_a_day_are_duplicates(
    tmp_path: Path, arrivals: Sequence[float], kept: Sequence[float], *, same_hour: bool
) -> None:
    """A message with the id of an earlier message is a duplicate within 24 hours, also in another hour."""
    store = open_folder_store(tmp_path)
    archive = Archive(store)
    for number, hours in enumerate(arrivals, 1):
        arrived = NOON + timedelta(hours=hours)
        at = NOON if same_hour else arrived
        await archive.store_events(
            [build_event(number, "same", at=at, enqueued_at=arrived, payload={"h": hours}), build_event(100 + number)]
        )
    found = [row["payload"] for row in await read_rows(store) if row["messageId"] == "same"]
    assert sorted(found) == sorted(f'{{"h":{hours}}}' for hours in kept)


async def test_messages_of_two_connections_are_no_duplicates(tmp_path: Path) -> None:
    """Messages of two connections with the same id are no duplicates."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(1, "same"), build_event(2, "same", connection="press")])
    assert (await read_ids(store), await read_ids(store, "press")) == (["same"], ["same"])


async def test_range_of_many_days_is_read_in_order(tmp_path: Path) -> None:
    """A range of many days is read in order, and duplicates are also found in different blocks of days."""
    store = open_folder_store(tmp_path)
    at = [NOON + number * 7 * HOUR for number in range(60)]
    events = [build_event(number, f"m-{number // 2}", at=at, enqueued_at=at) for number, at in enumerate(at, 1)]
    await Archive(store).store_events(events)
    assert await read_ids(store) == list(dict.fromkeys(f"m-{number // 2}" for number in range(1, 61)))


async def test_blobs_of_several_hours_are_downloaded_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limited number of blobs is downloaded at a time, of one hour or of several hours together."""
    store = open_folder_store(tmp_path)
    for first in (0, 100):
        await Archive(store).store_events([build_event(first + each, at=NOON + each * HOUR) for each in range(20)])
    download, running, most = store.download_to_file, 0, 0
    is_limit_reached = asyncio.Event()

    async def download_when_limit_is_reached(name: str, target: Path) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == CONCURRENT_DOWNLOADS:
            is_limit_reached.set()
        await is_limit_reached.wait()
        await download(name, target)
        running -= 1

    monkeypatch.setattr(store, "download_to_file", download_when_limit_is_reached)
    assert len(await read_ids(store)) == 40
    assert most == CONCURRENT_DOWNLOADS


async def test_local_copies_are_deleted_in_worker_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local copies and their folders are created and deleted only in worker threads."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(number, at=NOON + number * DAY) for number in range(1, 6)])
    calls: list[tuple[str, int]] = []

    def record_thread_of(name: str) -> None:
        method = getattr(Path, name)

        def record(self: Path, *args: Any, **kwargs: Any) -> None:
            calls.append((name, threading.get_ident()))
            method(self, *args, **kwargs)

        monkeypatch.setattr(Path, name, record)

    record_thread_of("unlink")
    record_thread_of("mkdir")
    assert len(await read_ids(store)) == 5
    assert {name for name, _ in calls} == {"unlink", "mkdir"}
    assert threading.get_ident() not in {thread for _, thread in calls}


async def test_a_cancelled_read_ends_its_query_and_closes_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a read is cancelled during a query, the query is interrupted, and then the engine is closed."""
    store, is_querying, engines = open_folder_store(tmp_path), threading.Event(), []
    await Archive(store).store_events([build_event(1)])

    def query_for_years(self: DuplicateFinder, *_: object) -> int:
        engines.append(self._engine)
        is_querying.set()
        return len(self._engine.execute("SELECT count(*) FROM range(1000000000000000)").fetchall())

    monkeypatch.setattr(DuplicateFinder, "add_duplicates_of_block_and_count_all", query_for_years)
    read = asyncio.create_task(read_ids(store))
    await asyncio.to_thread(is_querying.wait)
    read.cancel()
    with pytest.raises(asyncio.CancelledError):
        await read
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        engines[0].execute("SELECT 1")


def find_expected_rows(events: Sequence[HubEvent], given_ids: Sequence[str]) -> list[int]:
    """Return the sequence numbers of the expected rows: for each id, one message within a day."""
    kept: dict[str, datetime] = {}
    found = []
    for each, message_id in zip(events, given_ids, strict=True):
        first = kept.get(message_id)
        if first is None or each.enqueued_at - first > DAY:
            kept[message_id] = each.enqueued_at
            found.append(each.sequence_number)
    return found


@settings(max_examples=scale_examples(25), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 6)), min_size=1, max_size=25),
    st.lists(st.integers(1, 25), min_size=1, max_size=3),
)
async def test_any_batches_are_read_like_the_query_table(
    tmp_path_factory: pytest.TempPathFactory, messages: list[tuple[str, int]], sizes: list[int]
) -> None:
    """For any batches and repeated deliveries, the archive returns the same rows as the query table."""
    store = open_folder_store(tmp_path_factory.mktemp("any"))
    events, at = [], NOON
    for number, (message_id, gap) in enumerate(messages, 1):
        at += gap * HOUR
        events.append(build_event(number, message_id, at=at, enqueued_at=at, payload={"n": number}))
    for size in sizes:
        for batch in split_into_batches(events, size):
            await Archive(store).store_events(batch)
    found = [int(row["payload"][5:-1]) for row in await read_rows(store)]
    assert sorted(found) == find_expected_rows(events, [message_id for message_id, _ in messages])
