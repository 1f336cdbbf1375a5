"""Tests of grouping imported messages by hour, and of the files for the query table."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.errors import Kind, WorkspaceError
from shared.imports.archive_writer import (
    HistoryArchive,
    ImportSource,
    _split_messages_by_hour,
    read_query_table_file,
    write_query_table_file,
)
from shared.imports.step_rows import SCHEMA

HOUR = datetime(2026, 1, 5, 8, tzinfo=UTC)
NEXT_HOUR = datetime(2026, 1, 5, 9, tzinfo=UTC)


def build_messages(*rows: tuple[int, datetime]) -> pa.Table:
    """Return messages with the given row numbers and times, in two chunks."""
    tables = [
        pa.Table.from_pylist(
            [
                {"number": number, "timestamp": time, "device_id": "d", "message_id": str(number), "payload": "{}"}
                for number, time in part
            ],
            schema=SCHEMA,
        )
        for part in (rows[:2], rows[2:])
    ]
    return pa.concat_tables(tables)


@pytest.mark.parametrize(
    "rows",
    [
        ((1, HOUR), (2, HOUR), (3, HOUR.replace(minute=5)), (4, NEXT_HOUR)),
        ((4, NEXT_HOUR), (1, HOUR), (3, HOUR.replace(minute=5)), (2, HOUR)),
        ((2, HOUR), (1, HOUR), (3, HOUR.replace(minute=5)), (4, NEXT_HOUR)),
        ((1, HOUR), (2, HOUR), (4, NEXT_HOUR), (3, HOUR.replace(minute=5))),
    ],
)
def test_imported_messages_are_grouped_by_hour_and_sorted(rows: tuple[tuple[int, datetime], ...]) -> None:
    """Imported messages are grouped by hour, and sorted by time and row number in each hour."""
    grouped = [
        (hour, part.column("number").to_pylist()) for hour, part in _split_messages_by_hour(build_messages(*rows))
    ]
    assert grouped == [(HOUR, [1, 2, 3]), (NEXT_HOUR, [4])]


def test_without_imported_messages_no_hour_is_written() -> None:
    """If there are no messages, no hour is written."""
    assert list(_split_messages_by_hour(build_messages())) == []
    assert len(list(_split_messages_by_hour(build_messages((1, HOUR))))) == 1


@pytest.mark.parametrize("compression", ["snappy", "lz4"])
def test_messages_are_read_from_a_file_for_the_query_table(tmp_path: Path, compression: str) -> None:
    """The messages of a step and their surfaces can be read again from the file that the query table gets."""
    messages = build_messages((7, HOUR), (9, HOUR.replace(minute=5)), (12, NEXT_HOUR))
    write_query_table_file(tmp_path / "rows.parquet", ImportSource("a1", "pump", ["hall"], HOUR), messages, compression)
    assert read_query_table_file(tmp_path / "rows.parquet") == (["hall"], messages)


@pytest.mark.parametrize("moment", [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1, 1, 1, tzinfo=UTC)])
def test_hours_before_1970_are_rounded_down(moment: datetime) -> None:
    """The hour of a message from before 1970 begins before its time, not after it."""
    [(hour, _)] = _split_messages_by_hour(build_messages((1, moment)))
    assert hour == moment.replace(minute=0, second=0, microsecond=0)


@pytest.mark.parametrize("hours", [1, 16, 17, 40])
async def test_messages_of_many_hours_are_stored_once_and_found_again(tmp_path: Path, hours: int) -> None:
    """Each hour of a step becomes one blob with all its messages, whether blobs are built in advance or not."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks("http://127.0.0.1", tmp_path / "key"))
    archive = HistoryArchive(store, tmp_path / "scratch")
    source = ImportSource("a1", "pump", ["hall"], NEXT_HOUR)
    rows = [(number, HOUR + timedelta(hours=number // 2)) for number in range(2 * hours)]
    messages = build_messages(*rows)
    for _ in range(2):
        blobs = await archive.build_blobs_unless_too_many(source, messages)
        assert (blobs is None) == (hours > 16)
        await archive.store_messages(source, messages, blobs)
    await archive.store_messages(source, messages)
    assert len([blob async for blob in store.list("")]) == hours
    again = await archive.select_new_messages(ImportSource("b2", "pump", [], NEXT_HOUR), 0, messages)
    assert again.num_rows == 0
    # A repeated attempt of the step finds the rows that it stored before, which do not count as stored.
    assert (await archive.select_new_messages(source, 0, messages)).num_rows == 2 * hours


async def test_an_id_that_repeats_within_a_step_is_found_beside_other_stored_messages(tmp_path: Path) -> None:
    """Of two messages with the same id in one step, the first one is new, also if the hour has other messages."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks("http://127.0.0.1", tmp_path / "key"))
    archive = HistoryArchive(store, tmp_path / "scratch")
    source = ImportSource("a1", "pump", ["hall"], NEXT_HOUR)
    await archive.store_messages(source, build_messages((1, HOUR), (2, HOUR)))
    step = build_messages((3, HOUR), (4, HOUR), (5, HOUR))
    ids = step.schema.get_field_index("message_id")
    step = step.set_column(ids, "message_id", pa.array(["x", "y", "x"]))
    assert (await archive.select_new_messages(source, 3, step)).column("number").to_pylist() == [3, 4]


async def test_a_failed_download_stops_the_others_before_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one hour cannot be downloaded, the search ends without files, and no download continues after the error."""
    store = FolderBlobStore(tmp_path / "cold", FileLinks("http://127.0.0.1", tmp_path / "key"))
    archive = HistoryArchive(store, tmp_path / "scratch")
    messages = build_messages(*((number, HOUR + timedelta(hours=number)) for number in range(60)))
    await archive.store_messages(ImportSource("a1", "pump", [], NEXT_HOUR), messages)
    download, started, ended = store.download_to_file, 0, 0

    async def fail_second_download(name: str, target: Path) -> None:
        nonlocal started, ended
        started += 1
        try:
            if started == 2:
                raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "down")
            await download(name, target)
        finally:
            ended += 1

    monkeypatch.setattr(store, "download_to_file", fail_second_download)
    with pytest.raises(WorkspaceError, match="down"):
        await archive.select_new_messages(ImportSource("b2", "pump", [], NEXT_HOUR), 0, messages)
    assert started == ended < 60
    assert list((tmp_path / "scratch").iterdir()) == []
