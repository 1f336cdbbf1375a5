"""Telemetry archive: stores each batch of impulses (telemetry messages), and later merges the blobs of past hours.

:class:`Archive` stores one blob per trigger batch, connection and hour. Readers are fastest with one blob per hour and
connection, so a background job, :class:`Compaction`, merges them. A run performs one or both of two steps for each
hour. It may stop at any point; a later run continues.

1. Merge: a new blob contains every row of the hour's live blobs, which are the blobs that no other blob lists as
   sources. The summary of the new blob lists as sources these live blobs and the blobs from which they were merged.
2. Sweep: blobs that another blob lists as sources are deleted. The merged blob must be older than the quiet time, so
   that every reader that lists the hour sees either the merged blob or its sources.

Concurrent runs, late blobs and sources that reappear after deletion leave rows in two blobs. Readers recognise such
rows by partition, sequence number and enqueued time, and a later run merges them again.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data import long_texts
from shared.cold_data.engine import ROW_ORDER, build_read_parquet_sql, build_rows_query, open_engine, quote_sql_text
from shared.cold_data.inventory import CONCURRENT_DOWNLOADS, ArchiveHour, download_blobs, find_summary, load_hour
from shared.cold_data.names import (
    HOUR,
    ROOT,
    SequenceRange,
    build_batch_blob_name,
    build_batch_blob_name_after_hub_reset,
    build_hour_folder,
    build_merged_blob_name,
    folder_from_blob_name,
    hour_from_blob_name,
)
from shared.cold_data.ports import Blob, BlobStore
from shared.cold_data.scratch import require_scratch_space
from shared.cold_data.tables import (
    COLUMNS,
    GROUP_BYTES,
    GROUP_ROWS,
    LONG,
    SUMMARY,
    BlobSummary,
    ReceivedImpulse,
    build_archive_parquet,
    convert_to_archive_schema,
    open_parquet_writer,
    split_into_row_groups,
)
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry import unrouted
from shared.telemetry.impulses import ImpulseTexts, parse_impulse_texts, to_impulse_texts
from shared.telemetry.models import IMPULSES_HUB, HubEvent
from shared.timestamps import from_unix_microseconds, to_unix_microseconds

if TYPE_CHECKING:
    import duckdb

CONCURRENT_WRITES = 4
"""Maximum number of blobs of a batch that are stored concurrently."""

_MICROSECONDS_OF_AN_HOUR = 3_600_000_000
_LOGGER = get_logger("cold_data.archive")


@dataclass(frozen=True, slots=True)
class _NewBlob:
    """Blob to store: the folder of its connection and hour, its name in the folder, its bytes and its summary."""

    folder: str
    name: str
    content: bytes
    summary: BlobSummary


class Archive:
    """Stores impulses (normalised telemetry messages) as Parquet blobs; accepts repeated deliveries of an event."""

    def __init__(self, store: BlobStore, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._runtime = runtime

    async def store_events(self, events: Sequence[HubEvent]) -> None:
        """Store the telemetry messages of an event batch; return after all of them are stored.

        An event without a valid message is stored under ``_unrouted`` with the reason. If the same batch is delivered
        again, nothing changes. If an event is delivered again in another batch, its row is stored again, and readers
        drop the second row.

        Args:
            events: batch in which the sequence numbers of each partition ascend without gaps.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``; the hub must deliver the batch again.
        """
        if not events:
            return
        semaphore = asyncio.Semaphore(CONCURRENT_WRITES)

        async def store_with_concurrency_limit(blob: _NewBlob) -> None:
            async with semaphore:
                await self._store_blob(blob)

        # Decoding and compressing a large batch would block the event loop.
        await asyncio.gather(
            *map(store_with_concurrency_limit, await self._runtime.run_in_thread(lambda: list(_build_blobs(events))))
        )

    async def _store_blob(self, blob: _NewBlob) -> None:
        if await self._store.create_if_missing(blob.folder + blob.name, blob.content):
            return
        stored = await find_summary(self._store, blob.folder + blob.name)
        # A blob that no longer exists was merged into another blob, which has its rows.
        if stored is None or _are_summaries_of_same_batch(stored, blob.summary):
            return
        # The hub was reset and reuses sequence numbers: the name belongs to other events.
        name = blob.folder + build_batch_blob_name_after_hub_reset(blob.name, blob.summary.first_enqueued)
        await self._store.create_if_missing(name, blob.content)


def _build_blobs(events: Sequence[HubEvent]) -> Iterator[_NewBlob]:
    groups: defaultdict[tuple[str, int, str], list[ReceivedImpulse]] = defaultdict(list)
    for event in events:
        impulse = _decode_event(event)
        key = (impulse.connection, impulse.microseconds // _MICROSECONDS_OF_AN_HOUR, event.partition)
        groups[key].append(ReceivedImpulse(impulse, event))
    for (connection, hours, partition), received in groups.items():
        hour = from_unix_microseconds(hours * _MICROSECONDS_OF_AN_HOUR)
        numbers = [each.event.sequence_number for each in received]
        times = [each.event.enqueued_at for each in received]
        summary_of_batch = BlobSummary(
            len(received), 0, to_unix_microseconds(min(times)), to_unix_microseconds(max(times))
        )
        name = build_batch_blob_name(SequenceRange(partition, min(numbers), max(numbers)))
        yield _NewBlob(
            build_hour_folder(connection, hour),
            name,
            build_archive_parquet(received, summary_of_batch),
            summary_of_batch,
        )


def _decode_event(event: HubEvent) -> ImpulseTexts:
    try:
        return parse_impulse_texts(event.body)
    except (ValueError, RecursionError) as error:
        _LOGGER.warning(
            "event is not a valid impulse; stored as unrouted",
            extra=fields(partition=event.partition, sequence=event.sequence_number, reason=str(error)[:300]),
        )
        message = unrouted.parse_json_or_none(event.body)
        reason = f"the event is not a valid telemetry message: {error}"[:500]
        return to_impulse_texts(unrouted.build_unrouted_impulse(IMPULSES_HUB, event, message, reason, ""))


def _are_summaries_of_same_batch(one: BlobSummary, other: BlobSummary) -> bool:
    return (one.rows, one.first_enqueued, one.last_enqueued) == (other.rows, other.first_enqueued, other.last_enqueued)


_COMPACTION_LOGGER = get_logger("cold_data.compaction")


class Compaction:
    """Job that merges the small blobs of a telemetry archive into one blob per hour and connection.

    Args:
        store: container of the archive's blobs.
        quiet: minimum age of an hour's newest blob before the hour is merged, and of a merged blob before its sources
            are deleted.
        scratch: folder for temporary copies of blobs; created on first use. None uses the system's temporary folder.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, store: BlobStore, quiet: timedelta, scratch: Path | None = None, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._store = store
        self._quiet = quiet
        self._scratch = scratch
        self._runtime = runtime

    async def merge_due_hours_and_count_them(self, now: datetime) -> int:
        """Merge the blobs of due hours, delete blobs that were merged earlier, and return the number of merged hours.

        An hour that cannot be merged is logged and remains unchanged.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        merged = 0
        async for folder, blobs in self._iterate_blobs_by_folder():
            if len(blobs) > 1 and self._is_merge_due(folder, blobs, now):
                try:
                    merged += await self._try_merge_and_sweep_hour(await load_hour(self._store, folder), now)
                except Exception as error:
                    if isinstance(error, WorkspaceError) and error.kind is Kind.UNAVAILABLE:
                        raise
                    _COMPACTION_LOGGER.exception("cannot merge an hour of the archive", extra=fields(folder=folder))
        return merged

    async def _iterate_blobs_by_folder(self) -> AsyncIterator[tuple[str, list[Blob]]]:
        """Yield the folder of each connection and hour with its blobs.

        The list of blobs is sorted by folder, so each folder is complete when the next folder begins.
        """
        folder: str = ""
        blobs: list[Blob] = []
        async for blob in self._store.list(f"{ROOT}/"):
            if folder_from_blob_name(blob.name) != folder:
                if blobs:
                    yield folder, blobs
                folder, blobs = folder_from_blob_name(blob.name), []
            blobs.append(blob)
        if blobs:
            yield folder, blobs

    def _is_merge_due(self, folder: str, blobs: list[Blob], now: datetime) -> bool:
        hour = hour_from_blob_name(folder)
        # A sensor with a wrong clock sends future timestamps; such an hour is merged only after it has passed.
        return hour is not None and hour <= now - HOUR and max(blob.written_at for blob in blobs) <= now - self._quiet

    async def _try_merge_and_sweep_hour(self, hour: ArchiveHour, now: datetime) -> bool:
        """Delete the replaced blobs of an hour if they are due, and merge its live blobs.

        Return False if there was nothing to merge, or another run has merged the hour.
        """
        if hour.replaced and all(blob.blob.written_at <= now - self._quiet for blob in hour.live):
            await self._store.delete([blob.name for blob in hour.replaced])
        if len(hour.live) <= 1:
            return False
        async with self._runtime.open_scratch_folder(self._scratch, "merge-") as folder:
            try:
                await self._merge_hour(hour, folder)
            except FileNotFoundError:
                return False  # another run merged this hour first
        return True

    async def _merge_hour(self, hour: ArchiveHour, scratch_folder: Path) -> None:
        files = [scratch_folder / f"{number}.parquet" for number in range(len(hour.live))]
        await self._runtime.run_in_thread(require_scratch_space, scratch_folder, 2 * hour.compressed_bytes)
        await download_blobs(self._store, hour, files, asyncio.Semaphore(CONCURRENT_DOWNLOADS))
        target = scratch_folder / "merged.parquet"
        await self._runtime.run_in_thread(_merge_files, hour, files, target)
        await self._store.upload(hour.folder + build_merged_blob_name([blob.name for blob in hour.live]), target)


def _merge_files(hour: ArchiveHour, files: list[Path], target_path: Path) -> None:
    """Merge the rows of several Parquet files into one sorted file; a row that occurs several times is written once."""
    summary = BlobSummary(
        rows=0,
        size=0,
        first_enqueued=min(blob.summary.first_enqueued for blob in hour.live),
        last_enqueued=max(blob.summary.last_enqueued for blob in hour.live),
        # Keep inherited sources: without them, undeleted sources of a deleted blob would count as live again.
        sources=frozenset(blob.identity for blob in hour.live) | hour.inherited,
        longest=hour.longest_row_bytes,
    )
    engine = open_engine(target_path.parent)
    try:
        can_sort = long_texts.can_sort_in_memory(hour.row_count, hour.longest_row_bytes)
        (_merge_rows_with_short_texts if can_sort else _merge_rows_with_long_texts)(
            engine, hour, files, target_path, summary
        )
    finally:
        engine.close()


def _merge_rows_with_short_texts(
    engine: "duckdb.DuckDBPyConnection", hour: ArchiveHour, files: list[Path], target_path: Path, summary: BlobSummary
) -> None:
    """Merge the files of an hour whose rows, including their texts, DuckDB can sort in memory."""
    rows_query = build_rows_query(build_read_parquet_sql(files), COLUMNS, deduplicate=hour.can_have_duplicate_rows)
    query = f"{rows_query} ORDER BY {ROW_ORDER}"
    rows = min(GROUP_ROWS, GROUP_BYTES // max(1, hour.longest_row_bytes or 0))
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows}"
    metadata = f"KV_METADATA {{{SUMMARY}: {quote_sql_text(summary.to_json())}}}"
    engine.execute(f"COPY ({query}) TO {quote_sql_text(str(target_path))} ({options}, {metadata})")


def _merge_rows_with_long_texts(
    engine: "duckdb.DuckDBPyConnection", hour: ArchiveHour, files: list[Path], target_path: Path, summary: BlobSummary
) -> None:
    """Merge the files of an hour whose rows contain texts that are too long for DuckDB to sort the rows in memory.

    The long texts are written to a file. Then DuckDB sorts short rows, which refer to the texts in the file.
    """
    columns_in_table = long_texts.UNSPILLED_COLUMNS
    with long_texts.LongTextSpill(engine, target_path.parent, LONG, columns_in_table) as spill:
        for file in files:
            spill.add_blob(file, hour.longest_row_bytes)
        columns = [*columns_in_table, *long_texts.list_text_reference_columns(LONG)]
        rows_query = build_rows_query(long_texts.TABLE, columns, deduplicate=hour.can_have_duplicate_rows)
        query = f"{rows_query} ORDER BY {ROW_ORDER}"
        with open_parquet_writer(target_path, replace(summary, longest=spill.longest)) as blob:
            for rows in spill.read_rows(query):
                for group in split_into_row_groups(convert_to_archive_schema(rows)):
                    blob.write_batch(group, row_group_size=group.num_rows)
