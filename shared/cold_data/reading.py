"""Reader of archived telemetry: the hours of a connection, and its rows in order, each message once.

Reads are complete even while compaction merges blobs. A merged blob lists the blobs that it replaces, and readers
ignore the replaced blobs, which are deleted long after the merge. If a blob disappears during a read, its hour is
listed again. A row in several blobs is returned once; partition, sequence number and enqueued time identify it.

A message that was sent again within a day is a duplicate and is returned once. The query table follows the same rule.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from shared.cold_data import long_texts
from shared.cold_data.concurrent_calls import call_for_each
from shared.cold_data.engine import (
    ROW_ORDER,
    build_query_excluding_listed_rows,
    build_read_parquet_sql,
    build_repeated_id_hashes_query,
    build_rows_query,
    build_rows_with_id_hashes_query,
    open_engine,
    quote_sql_text,
)
from shared.cold_data.inventory import CONCURRENT_DOWNLOADS, ArchiveHour, download_blobs, list_hours, load_hour
from shared.cold_data.names import HOUR, floor_to_hour
from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import require_scratch_space, translate_resource_errors
from shared.cold_data.tables import COLUMNS
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

DUPLICATE_WINDOW = 24 * 3600 * 1_000_000
"""Microseconds after the first arrival of a message id in which further arrivals are duplicates."""
TABLE = "copies"
"""Temporary table of duplicate rows: partition, sequence and enqueued time in microseconds."""
BATCH_ROWS = 49_152
"""Maximum rows of a batch; a multiple of the rows that downloads convert together."""
BATCH_BYTES = 16 * 1024 * 1024
"""Maximum size of a batch's texts in the columns ``LONG``, estimated from the longest row; one row may exceed it."""
BLOCK_HOURS = 24
AROUND = timedelta(hours=24)
"""Hours before and after an hour that are searched for duplicates of its messages.

The rule for ids that recur within a day is exact only if their first message is within these hours, because each
message of such an id decides about the next one. Reading the archive from its start would take too long.
"""

_MAX_ATTEMPTS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, 23, tzinfo=UTC) + timedelta(minutes=59)
_NAMES = {"timestamp": "timestamp", "device_id": "deviceId", "message_id": "messageId"}
_SHORT_COLUMNS = ("timestamp", "device_id", "message_id", "partition", "sequence", "enqueued_at")


class DuplicateFinder:
    """Finder of duplicate messages, for consecutive blocks of hours, with one DuckDB engine.

    The first message with an id that the hub received is an original. Messages with this id that arrive within a day of
    it are duplicates; the first one after that day is an original again. Only ids that occur more than once are
    examined.
    """

    def __init__(self, engine: "duckdb.DuckDBPyConnection") -> None:
        self._engine = engine
        self._execute_and_fetch_rows(
            f'CREATE TEMP TABLE {TABLE} ("partition" VARCHAR, "sequence" BIGINT, enqueued BIGINT)'
        )

    def add_duplicates_of_block_and_count_all(self, files: Sequence[Path], block_end_microseconds: int) -> int:
        """Add the duplicate rows of a block of hours to the table of duplicates; return the table's number of rows.

        Args:
            files: Parquet files of a block of hours and of the adjacent hours.
            block_end_microseconds: end of the block, since 1970; later rows are examined with later blocks.
        """
        if files:
            self._execute_and_fetch_rows(
                f"CREATE OR REPLACE TEMP TABLE repeated AS {build_repeated_id_hashes_query(files)}"
            )
            # A duplicate from an earlier block must not count as an original here, where its own original is missing.
            new = f'ANTI JOIN {TABLE} USING ("partition", "sequence", enqueued)'
            self._execute_and_fetch_rows(
                f"CREATE OR REPLACE TEMP TABLE suspects AS {build_rows_with_id_hashes_query(files, 'repeated')} {new}"
            )
            self._add_duplicates_within_a_day(block_end_microseconds)
            self._add_duplicates_beyond_a_day(block_end_microseconds)
        [(count,)] = self._execute_and_fetch_rows(f"SELECT count(*) FROM {TABLE}")  # noqa: S608  constant names
        return int(count)

    def _add_duplicates_within_a_day(self, block_end_microseconds: int) -> None:
        """Add to the table the duplicates of each id whose messages all arrived within one day: all except the first.

        Rows after the block, which ends at ``block_end_microseconds``, are not added.
        """
        self._execute_and_fetch_rows(
            f'INSERT INTO {TABLE} SELECT "partition", "sequence", enqueued FROM (SELECT *, '  # noqa: S608  constant names
            'row_number() OVER (PARTITION BY message_id ORDER BY enqueued, "partition", "sequence") AS nth, '
            "max(enqueued) OVER by_id - min(enqueued) OVER by_id AS spread "
            "FROM suspects WINDOW by_id AS (PARTITION BY message_id)) "
            f"WHERE nth > 1 AND spread <= {DUPLICATE_WINDOW} AND happened < {block_end_microseconds}"
        )

    def _add_duplicates_beyond_a_day(self, block_end_microseconds: int) -> None:
        """Add to the table the duplicates of each id whose messages arrived over more than one day.

        The first message is an original. Messages within a day after it are duplicates; the next message is an original
        again. Rows after the block, which ends at ``block_end_microseconds``, are not added.
        """
        rows = self._execute_and_fetch_rows(
            'SELECT message_id, enqueued, "partition", "sequence", happened FROM suspects '  # noqa: S608  constant names
            "WHERE message_id IN (SELECT message_id FROM suspects GROUP BY message_id "
            f"HAVING max(enqueued) - min(enqueued) > {DUPLICATE_WINDOW}) ORDER BY ALL"
        )
        duplicates: list[tuple[str, int, int]] = []
        for _, arrivals in groupby(rows, key=itemgetter(0)):
            original: int | None = None
            for _, enqueued, partition, sequence, happened in arrivals:
                if original is None or enqueued - original > DUPLICATE_WINDOW:
                    original = enqueued
                elif happened < block_end_microseconds:
                    duplicates.append((partition, sequence, enqueued))
        if duplicates:
            self._engine.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", duplicates)  # noqa: S608  constant names

    def _execute_and_fetch_rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._engine.execute(query).fetchall()


@dataclass(frozen=True, slots=True)
class HourSummary:
    """Hour in which a connection has archived rows.

    Attributes:
        start: start of the hour, UTC.
        rows: number of stored rows; the number of messages is smaller if there are duplicates.
        size: compressed size in bytes.
        unpacked: approximate size in memory, in bytes.
    """

    start: datetime
    rows: int
    size: int
    unpacked: int = 0


class ColdReader:
    """Reader of archived rows of connections that returns each message once.

    Args:
        store: container of the archive's blobs.
        scratch: folder for temporary copies of blobs; created on first use. None uses the system's temporary folder.
        runtime: clock, randomness and threads.
    """

    def __init__(self, store: BlobStore, scratch: Path | None = None, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._scratch = scratch
        self._runtime = runtime

    async def list_hours(self, connection: str, start: datetime, end: datetime) -> Sequence[HourSummary]:
        """Return the hours of a time range that have rows, in order; only the footers of blobs are read.

        Args:
            connection: lookup (id in URLs) of the connection, or ``_unrouted`` for messages without a connection.
            start: start of the time range, inclusive, with time zone.
            end: end of the time range, exclusive, with time zone.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        found = await list_hours(self._store, connection, floor_to_hour(start), end)
        in_order = sorted(found, key=lambda each: each.hour)
        return [HourSummary(each.hour, each.row_count, each.compressed_bytes, each.unpacked_bytes) for each in in_order]

    async def stream_rows(self, connection: str, start: datetime, end: datetime) -> AsyncIterator["pa.RecordBatch"]:
        """Yield a connection's rows in a time range, in order of timestamp, partition and sequence number.

        The rows satisfy ``start <= timestamp < end``. Duplicates within 24 hours of the first arrival are dropped, as
        in the query table, even if the first arrival has a timestamp in another hour. Memory is limited; blobs of up to
        three days are copied to the scratch folder.

        The batches have ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).

        Args:
            connection: lookup (id in URLs) of the connection, or ``_unrouted`` for messages without a connection.
            start: start of the time range, inclusive, with time zone.
            end: end of the time range, exclusive, with time zone.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` if the archive does not respond; UNPROCESSABLE
                ``SCRATCH_FULL`` if the scratch disk is full, ``DOWNLOAD_OUT_OF_MEMORY`` if the memory is not enough.
        """
        async with self._runtime.open_scratch_folder(self._scratch, "cold-") as folder:
            engine = _SharedEngine(await self._runtime.run_in_thread(open_engine, folder), self._runtime)
            try:
                reading = _RangeReader(self._store, connection, start, end, engine, folder, runtime=self._runtime)
                with translate_resource_errors(folder):
                    async for batch in reading.read_batches():
                        yield batch
            finally:
                await engine.close()


class _SharedEngine:
    """DuckDB engine for worker threads, which use it one after the other.

    After a cancellation a thread may still execute a query, and DuckDB refuses another call meanwhile.
    """

    def __init__(self, engine: "duckdb.DuckDBPyConnection", runtime: Runtime) -> None:
        self.engine = engine
        self._runtime = runtime
        self._lock = Lock()

    async def run[**P, T](self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses the engine in a worker thread, and return its result.

        A cancellation interrupts the query of the function; the next call waits until the function has ended.
        """
        try:
            return await self._runtime.run_in_thread(self._call_alone, partial(function, *args, **kwargs))
        except asyncio.CancelledError:
            self.engine.interrupt()
            raise

    async def close(self) -> None:
        """Close the engine after the function that a thread still executes."""
        await self._runtime.run_in_thread(self._call_alone, self.engine.close)

    def _call_alone[T](self, function: Callable[[], T]) -> T:
        with self._lock:
            return function()


@dataclass(frozen=True, slots=True)
class _FetchedHour:
    """Archive hour whose blobs were copied to the scratch folder."""

    hour: ArchiveHour
    files: tuple[Path, ...]

    def is_sorting_required(self, *, exclude_duplicates: bool) -> bool:
        """Return whether a query for the hour must sort its rows.

        Args:
            exclude_duplicates: True if the query excludes the messages that are duplicates of others.
        """
        # A single blob is already sorted, but the join that excludes duplicates loses the order.
        return exclude_duplicates or len(self.files) > 1


class _RangeReader:
    """Reader of the archived rows of one connection in a time range."""

    def __init__(
        self,
        store: BlobStore,
        connection: str,
        start: datetime,
        end: datetime,
        engine: _SharedEngine,
        folder: Path,
        *,
        runtime: Runtime,
    ) -> None:
        self._store = store
        self._connection = connection
        self._start = start
        self._end = end
        self._engine = engine
        self._folder = folder
        self._local: dict[datetime, _FetchedHour] = {}
        self._fetched = 0
        self._downloads = asyncio.Semaphore(CONCURRENT_DOWNLOADS)
        self._runtime = runtime

    async def read_batches(self) -> AsyncIterator["pa.RecordBatch"]:
        first = floor_to_hour(self._start)
        listed = await list_hours(
            self._store,
            self._connection,
            _add_timedelta_and_clamp(first, -AROUND),
            _add_timedelta_and_clamp(self._end, AROUND),
        )
        known = {each.hour: each for each in listed}
        wanted = sorted(hour for hour in known if first <= hour < self._end)
        duplicates = await self._engine.run(DuplicateFinder, self._engine.engine)
        while wanted:
            block = [hour for hour in wanted if hour - wanted[0] < BLOCK_HOURS * HOUR]
            wanted = wanted[len(block) :]
            await self._fetch_block_and_adjacent_hours(block, known)
            files = [file for local in self._local.values() for file in local.files]
            until = (block[-1] - _EPOCH + HOUR) // timedelta(microseconds=1)
            found = await self._engine.run(duplicates.add_duplicates_of_block_and_count_all, files, until)
            for hour in block:
                async for batch in self._read_rows_of_hour(self._local[hour], exclude_duplicates=found > 0):
                    yield batch

    async def _fetch_block_and_adjacent_hours(
        self, block: Sequence[datetime], known_hours: dict[datetime, ArchiveHour]
    ) -> None:
        """Download the blobs of a block of hours and of its adjacent hours.

        Delete the local copies of all earlier hours.
        """
        first, last = (
            _add_timedelta_and_clamp(block[0], -AROUND),
            _add_timedelta_and_clamp(block[-1], AROUND),
        )
        passed = [file for hour in [*self._local] if hour < first for file in self._local.pop(hour).files]
        if passed:
            await self._runtime.run_in_thread(_delete_files, passed)
        missing = [known_hours[each] for each in sorted(known_hours) if first <= each <= last]
        missing = [hour for hour in missing if hour.hour not in self._local]
        await self._runtime.run_in_thread(
            require_scratch_space, self._folder, sum(hour.compressed_bytes for hour in missing)
        )
        for fetched in await call_for_each(self._fetch_hour, missing, CONCURRENT_DOWNLOADS):
            self._local[fetched.hour.hour] = fetched

    async def _fetch_hour(self, hour: ArchiveHour) -> _FetchedHour:
        for _ in range(_MAX_ATTEMPTS):
            self._fetched += 1
            folder = self._folder / str(self._fetched)
            await self._runtime.run_in_thread(folder.mkdir)
            files = tuple(folder / f"{number}.parquet" for number in range(len(hour.live)))
            try:
                await download_blobs(self._store, hour, files, self._downloads)
            except FileNotFoundError:
                hour = await load_hour(self._store, hour.folder)
            else:
                return _FetchedHour(hour, files)
        raise WorkspaceError(
            Kind.UNAVAILABLE,
            "BLOB_STORE_UNAVAILABLE",
            "The telemetry archive changed during each attempt to read it; try again.",
        )

    async def _read_rows_of_hour(
        self, fetched_hour: _FetchedHour, *, exclude_duplicates: bool
    ) -> AsyncIterator["pa.RecordBatch"]:
        if not fetched_hour.files:
            return
        hour = fetched_hour.hour
        if fetched_hour.is_sorting_required(exclude_duplicates=exclude_duplicates):
            reads_texts = long_texts.can_sort_in_memory(hour.row_count, hour.longest_row_bytes)
        else:
            reads_texts = long_texts.can_stream_in_memory(hour.longest_row_bytes)
        rows = (self._read_rows_with_short_texts if reads_texts else self._read_rows_with_long_texts)(
            fetched_hour, exclude_duplicates=exclude_duplicates
        )
        try:
            while (batch := await self._engine.run(next, rows, None)) is not None:
                yield batch
        finally:
            await self._engine.run(rows.close)

    def _read_rows_with_short_texts(
        self, fetched_hour: _FetchedHour, *, exclude_duplicates: bool
    ) -> "Generator[pa.RecordBatch]":
        """Yield the rows of an hour whose texts are so short that DuckDB can read and, if necessary, sort the rows.

        ``exclude_duplicates`` must be True if the table of duplicates has rows.
        """
        query = self._build_hour_query(
            fetched_hour,
            build_read_parquet_sql(fetched_hour.files),
            COLUMNS,
            ["payload"],
            exclude_duplicates=exclude_duplicates,
        )
        most = BATCH_BYTES // max(1, fetched_hour.hour.longest_row_bytes or 0)
        yield from self._engine.engine.sql(query).to_arrow_reader(min(BATCH_ROWS, most))

    def _read_rows_with_long_texts(
        self, fetched_hour: _FetchedHour, *, exclude_duplicates: bool
    ) -> "Generator[pa.RecordBatch]":
        """Yield the rows of an hour whose texts are too long for DuckDB to read or sort the rows in memory.

        The long texts are written to a file, and DuckDB sorts short rows that refer to them. ``exclude_duplicates``
        must be True if the table of duplicates has rows.
        """
        spilled = ["payload"]
        with long_texts.LongTextSpill(self._engine.engine, self._folder, spilled, _SHORT_COLUMNS) as spill:
            for file in fetched_hour.files:
                spill.add_blob(file, fetched_hour.hour.longest_row_bytes)
            references = long_texts.list_text_reference_columns(spilled)
            yield from spill.read_rows(
                self._build_hour_query(
                    fetched_hour,
                    long_texts.TABLE,
                    [*_SHORT_COLUMNS, *references],
                    references,
                    exclude_duplicates=exclude_duplicates,
                )
            )

    def _build_hour_query(
        self,
        fetched_hour: _FetchedHour,
        source_sql: str,
        columns: Sequence[str],
        text_columns: Sequence[str],
        *,
        exclude_duplicates: bool,
    ) -> str:
        """Build the SQL query for the rows of an hour that are in the requested time range and are not duplicates.

        Args:
            fetched_hour: hour whose rows the query reads.
            source_sql: name of a table, or a table function, with the rows of the hour.
            columns: columns that the query reads from the source.
            text_columns: columns of the result in addition to time and ids: the payload, or the references to its text.
            exclude_duplicates: True if the query excludes the rows in the table of duplicates.
        """
        rows = build_rows_query(source_sql, columns, deduplicate=fetched_hour.hour.can_have_duplicate_rows)
        if exclude_duplicates:
            rows = build_query_excluding_listed_rows(rows, TABLE)
        wanted = ", ".join([*(f'{name} AS "{shown}"' for name, shown in _NAMES.items()), *text_columns])
        query = f"SELECT {wanted} FROM ({rows}) WHERE {self._build_time_range_condition(fetched_hour.hour.hour)}"  # noqa: S608  constant names
        return (
            f"{query} ORDER BY {ROW_ORDER}"
            if fetched_hour.is_sorting_required(exclude_duplicates=exclude_duplicates)
            else query
        )

    def _build_time_range_condition(self, hour: datetime) -> str:
        """Return an SQL condition for the rows of an hour that lie in the requested time range."""
        since = f"timestamp >= {_instant_to_sql(self._start)}" if self._start > hour else "true"
        until = f"timestamp < {_instant_to_sql(self._end)}" if self._end - hour < HOUR else "true"
        return f"{since} AND {until}"


def _delete_files(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink()


def _instant_to_sql(instant: datetime) -> str:
    return f"TIMESTAMPTZ {quote_sql_text(instant.astimezone(UTC).isoformat())}"


def _add_timedelta_and_clamp(instant: datetime, by: timedelta) -> datetime:
    try:
        return instant + by
    except OverflowError:
        return _EARLIEST if by < timedelta(0) else _LATEST
