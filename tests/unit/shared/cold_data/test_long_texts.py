"""Tests that long messages are archived, compacted and read in limited memory."""

import io
import random
import string
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.backends.embedded.blobs import FolderBlobStore
from shared.cold_data import long_texts, tables
from shared.cold_data.archive import Archive, Compaction
from shared.cold_data.inventory import list_hours
from shared.cold_data.reading import ColdReader
from shared.telemetry.models import HubEvent
from shared.timestamps import now
from tests.random_examples import scale_examples
from tests.unit.shared.cold_data.archived import (
    NOON,
    build_event,
    open_folder_store,
    read_contents,
    read_rows,
    split_into_batches,
)

QUIET = timedelta(minutes=10)
HOUR = timedelta(hours=1)
LENGTH = 256 * 1024 - 100
TEXT = "".join(random.Random(7).choices(string.ascii_letters, k=LENGTH))
COUNT = 400


def build_long_event(number: int, sequence: int | None = None) -> HubEvent:
    """Return an event of maximum size; an event with a repeated number is a duplicate."""
    at = NOON + timedelta(seconds=number * 7919 % 3600)
    return build_event(sequence or number, f"m-{number}", at=at, payload={"n": number, "x": TEXT[number % 97 :]})


async def read_lengths(store: FolderBlobStore) -> list[tuple[str, int]]:
    """Return ids and payload lengths from a read, and check that its batches have a limited size."""
    found: list[tuple[str, int]] = []
    async for batch in ColdReader(store).stream_rows("rig", NOON, NOON + HOUR):
        assert batch.nbytes <= tables.GROUP_BYTES + LENGTH
        lengths = [len(payload.as_py()) for payload in batch.column("payload")]
        found += zip(batch.column("messageId").to_pylist(), lengths, strict=True)
    return found


async def compact_all(store: FolderBlobStore) -> int:
    """Run the compaction and return the number of merged hours."""
    return await Compaction(store, QUIET).merge_due_hours_and_count_them(now() + 2 * HOUR)


async def test_hundreds_of_longest_messages_are_read_and_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All messages are read and merged, although only a third of them fits into the engine's memory."""
    monkeypatch.setattr("shared.cold_data.engine.MEMORY_PER_THREAD_MB", 16)
    monkeypatch.setattr("shared.cold_data.engine._MOST_THREADS", 2)
    store = open_folder_store(tmp_path)
    events = [build_long_event(number) for number in range(1, COUNT + 1)]
    events += [build_long_event(number, COUNT + number) for number in range(1, 20)]
    for batch in [*split_into_batches(events, 30), events[10:50]]:
        await Archive(store).store_events(batch)
    in_order = sorted(range(1, COUNT + 1), key=lambda number: (number * 7919 % 3600, number))
    expected = [(f"m-{number}", len(f'{{"n":{number},"x":""}}') + LENGTH - number % 97) for number in in_order]
    assert await read_lengths(store) == expected
    assert await compact_all(store) == 1
    [name] = [name for name in await read_contents(store) if "merged" in name]
    blob = pq.read_metadata(tmp_path / "cold" / name)
    assert blob.num_rows == COUNT + 19
    assert max(blob.row_group(number).total_byte_size for number in range(blob.num_row_groups)) <= tables.GROUP_BYTES
    [hour] = await list_hours(store, "rig", NOON, NOON + HOUR)
    assert hour.longest_row_bytes == max(length for _, length in expected) + len('{}["hall"]')
    assert await read_lengths(store) == expected


async def test_many_messages_of_medium_length_are_read_and_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that DuckDB could process one by one, but not sort in its memory, are read and merged."""
    monkeypatch.setattr("shared.cold_data.engine.MEMORY_PER_THREAD_MB", 16)
    monkeypatch.setattr("shared.cold_data.engine._MOST_THREADS", 2)
    monkeypatch.setattr(long_texts, "MAX_SORTED_BYTES", 8 * 1024 * 1024)
    store = open_folder_store(tmp_path)
    numbers = range(1, 60_001)
    events = [
        build_event(number, at=NOON + timedelta(milliseconds=number * 7919 % 3_600_000), payload={"x": TEXT[:900]})
        for number in numbers
    ]
    for batch in split_into_batches(events, 20_000):
        await Archive(store).store_events(batch)
    expected = [f"m-0-{number}" for number in sorted(numbers, key=lambda number: number * 7919 % 3_600_000)]
    assert [message_id for message_id, _ in await read_lengths(store)] == expected
    assert await compact_all(store) == 1
    assert [message_id for message_id, _ in await read_lengths(store)] == expected


async def test_blob_without_the_longest_row_is_read_and_merged(tmp_path: Path) -> None:
    """A blob that lacks the length of its longest row is read and merged; the merged blob states this length."""
    store = open_folder_store(tmp_path)
    for batch in split_into_batches([build_long_event(number) for number in range(1, 41)], 20):
        await Archive(store).store_events(batch)
    expected = await read_lengths(store)
    for name, content in (await read_contents(store)).items():
        table = pq.read_table(io.BytesIO(content))
        said = table.schema.metadata[b"oi"].decode()
        unsaid = said[: said.rindex(",")] + "]"
        pq.write_table(table.replace_schema_metadata({"oi": unsaid}), tmp_path / "cold" / name)
    [hour] = await list_hours(store, "rig", NOON, NOON + HOUR)
    assert hour.longest_row_bytes is None
    assert await read_lengths(store) == expected
    assert await compact_all(store) == 1
    [hour] = await list_hours(store, "rig", NOON, NOON + HOUR)
    assert hour.longest_row_bytes is not None
    assert hour.longest_row_bytes > LENGTH
    assert await read_lengths(store) == expected


@settings(max_examples=scale_examples(15), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 90), st.text(max_size=5)), min_size=1, max_size=20),
    st.lists(st.integers(1, 20), min_size=1, max_size=3),
)
async def test_reads_of_long_and_short_rows_return_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, messages: list[tuple[str, int, str]], sizes: Sequence[int]
) -> None:
    """The code for long rows and the code for short rows return the same rows, before and after a merge."""
    store = open_folder_store(tmp_path_factory.mktemp("alike"))
    events = [
        build_event(number, message_id, at=NOON + timedelta(minutes=minutes), payload={"n": number, "text": text})
        for number, (message_id, minutes, text) in enumerate(messages, 1)
    ]
    for size in sizes:
        for batch in split_into_batches(events, size):
            await Archive(store).store_events(batch)
    short = await read_rows(store)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(long_texts, "MAX_SHORT_BYTES", -1)
        patched.setattr(long_texts, "ROWS", 2)
        patched.setattr(long_texts, "BATCH_BYTES", 40)
        assert await read_rows(store) == short
        await compact_all(store)
        assert await read_rows(store) == short
    assert await read_rows(store) == short


def test_rows_are_sorted_with_their_texts_only_if_these_are_short_or_few() -> None:
    """Rows of up to 128 bytes are sorted in memory, longer ones up to 32 MiB in all, and those over 1 KiB never."""
    assert long_texts.can_sort_in_memory(10**9, 128)
    assert long_texts.can_sort_in_memory(32 * 1024, 1024)
    assert not long_texts.can_sort_in_memory(32 * 1024 + 1, 1024)
    assert not long_texts.can_sort_in_memory(1, 1025)
    assert not long_texts.can_sort_in_memory(1, None)
    assert long_texts.can_stream_in_memory(1024)
    assert not long_texts.can_stream_in_memory(1025)
    assert not long_texts.can_stream_in_memory(None)


async def test_large_batch_is_split_into_row_groups(tmp_path: Path) -> None:
    """The archive divides a batch of long messages into row groups of limited size."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_long_event(number) for number in range(1, 101)])
    [content] = (await read_contents(store)).values()
    blob = pq.read_metadata(io.BytesIO(content))
    sizes = [blob.row_group(number).total_byte_size for number in range(blob.num_row_groups)]
    assert len(sizes) > 1
    assert max(sizes) <= tables.GROUP_BYTES
