"""Storage of imported messages that are new: in the telemetry archive, and in files for the query table."""

import asyncio
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shared.cold_data.concurrent_calls import call_for_each
from shared.cold_data.engine import build_read_parquet_sql, open_engine, quote_sql_text
from shared.cold_data.inventory import ArchiveHour, list_hours, load_hour
from shared.cold_data.names import SequenceRange, build_batch_blob_name, build_hour_folder
from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import require_scratch_space
from shared.cold_data.tables import (
    COLUMNS,
    BlobSummary,
    build_archive_schema,
    measure_longest_row_bytes,
    open_parquet_writer,
    split_into_row_groups,
)
from shared.errors import Kind, WorkspaceError
from shared.imports.step_rows import SCHEMA
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import to_unix_microseconds

if TYPE_CHECKING:
    import duckdb

_CONCURRENT: Final = 8
_MAX_BUILT_HOURS: Final = 16
"""Maximum number of hours of a step whose blobs are built in advance, because these blobs are all in memory."""
_HOUR: Final = timedelta(hours=1)
_HOUR_MICROSECONDS: Final = 3_600_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOURS_BEFORE_EPOCH: Final = 20_000_000
"""More than the number of hours between the year 1, in which times begin, and 1970."""
_MAX_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Import, with the values that all its rows in the telemetry archive share.

    Attributes:
        job_id: id of the import; it is part of the name of the rows' partition.
        connection: lookup (id in URLs) of the connection.
        surfaces: lookups (ids in URLs) of the surfaces (groups of connections) that contain the connection.
        ingested_at: time of the import; retention counts from it.
    """

    job_id: str
    connection: str
    surfaces: Sequence[str]
    ingested_at: datetime

    @property
    def partition(self) -> str:
        """Partition name of the rows in the archive; a row's sequence number is its row number in the imported file."""
        return f"import{self.job_id}"


class UnstoredBlob(NamedTuple):
    """Archive blob that is not stored yet."""

    name: str
    content: bytes


class QueryTableFile(NamedTuple):
    """Content of a file for the query table.

    Attributes:
        surfaces: lookups (ids in URLs) of the surfaces that the rows name.
        messages: messages with the columns ``step_rows.SCHEMA``.
    """

    surfaces: Sequence[str]
    messages: pa.Table


class HistoryArchive:
    """Writer of imported messages to the telemetry archive.

    Args:
        store: container of the archive's blobs.
        scratch: folder of temporary copies of blobs.
        runtime: runs work in threads.
    """

    def __init__(self, store: BlobStore, scratch: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._scratch = scratch
        self._runtime = runtime

    async def select_new_messages(self, source: ImportSource, first_row_number: int, messages: pa.Table) -> pa.Table:
        """Return the messages whose ids are not in the archive yet, one message for each id.

        The messages are those of one step (part of the imported file). Their ids are compared with the stored ids of
        the same connection in the hours of the messages.

        Args:
            source: the import. Its own rows from ``first_row_number`` on are treated as not stored, because an earlier
                attempt of the same step may have stored them.
            first_row_number: number of the first row of the step, in the file.
            messages: messages of the step.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` if the archive does not respond; UNPROCESSABLE
                ``SCRATCH_FULL`` if the disk of the scratch folder is full.
        """
        if not messages.num_rows:
            return messages
        wanted = await self._runtime.run_in_thread(_compute_hour_starts, messages)
        hours = await list_hours(self._store, source.connection, min(wanted), max(wanted) + _HOUR, wanted)
        async with self._runtime.open_scratch_folder(self._scratch, "import-") as folder:
            files = await self._download_blobs_of_hours(hours, folder)
            return await self._runtime.run_in_thread(
                _remove_stored_messages, messages, files, folder, source.partition, first_row_number
            )

    async def build_blobs_unless_too_many(self, source: ImportSource, messages: pa.Table) -> list[UnstoredBlob] | None:
        """Build the blobs that :meth:`store_messages` stores, one for each hour of the messages.

        Return None if there are too many hours to keep all blobs in memory; :meth:`store_messages` then builds them.
        """

        def build_blobs() -> list[UnstoredBlob] | None:
            hours = list(islice(_split_messages_by_hour(messages), _MAX_BUILT_HOURS + 1))
            if len(hours) > _MAX_BUILT_HOURS:
                return None
            return [_build_blob(source, hour, rows) for hour, rows in hours]

        return await self._runtime.run_in_thread(build_blobs)

    async def store_messages(
        self, source: ImportSource, messages: pa.Table, blobs: Sequence[UnstoredBlob] | None = None
    ) -> None:
        """Store messages in one blob for each hour; a repeated call changes nothing.

        Args:
            source: the import.
            messages: messages of a step (part of the imported file); not used if ``blobs`` is given.
            blobs: result of :meth:`build_blobs_unless_too_many` for the same import and messages.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        built = iter(blobs or ())
        hours = await self._runtime.run_in_thread(_split_messages_by_hour, messages) if blobs is None else iter(())

        async def store_blobs() -> None:
            for blob in built:
                await self._store.create_if_missing(*blob)
            for hour, rows in hours:
                blob = await self._runtime.run_in_thread(_build_blob, source, hour, rows)
                await self._store.create_if_missing(*blob)

        # All writes end before an error is raised, because afterwards another import may search the archive.
        results = await asyncio.gather(*(store_blobs() for _ in range(_CONCURRENT)), return_exceptions=True)
        for result in results:
            if result is not None:
                raise result

    async def _download_blobs_of_hours(self, hours: Sequence[ArchiveHour], folder: Path) -> list[Path]:
        """Download the archive blobs of the given hours to a local folder; return the files."""
        await self._runtime.run_in_thread(require_scratch_space, folder, sum(hour.compressed_bytes for hour in hours))

        async def download_numbered_hour(number_and_hour: tuple[int, ArchiveHour]) -> list[Path]:
            number, hour = number_and_hour
            return await self._download_blobs_of_hour(hour, folder / str(number))

        found = await call_for_each(download_numbered_hour, enumerate(hours), _CONCURRENT)
        return [file for files in found for file in files]

    async def _download_blobs_of_hour(self, hour: ArchiveHour, folder: Path) -> list[Path]:
        """Download the archive blobs of an hour; list them again if compaction deletes one of them meanwhile."""
        for attempt in range(_MAX_ATTEMPTS):
            target = folder / str(attempt)
            await self._runtime.run_in_thread(target.mkdir, parents=True)
            files = [target / f"{number}.parquet" for number in range(len(hour.live))]
            try:
                for blob, file in zip(hour.live, files, strict=True):
                    await self._store.download_to_file(blob.blob.name, file)
            except FileNotFoundError:
                hour = await load_hour(self._store, hour.folder)
            else:
                return files
        detail = "The telemetry archive changed during each attempt to read it; try again."
        raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", detail)


def _compute_hour_starts(messages: pa.Table) -> set[datetime]:
    """Return the starts of the hours that contain the time of at least one of the imported messages."""
    return {_EPOCH + number * _HOUR for number in _compute_hours_since_1970(messages).unique().to_pylist()}


def _compute_hours_since_1970(messages: pa.Table) -> pa.ChunkedArray:
    """Return the hour of each message, as the number of hours since 1970."""
    # Arrow's function that rounds times down takes forty times as long as integer arithmetic.
    microseconds = messages.column("timestamp").cast(pa.int64())
    # Integer division rounds towards zero, so it needs positive numbers to round down.
    positive = pc.add(microseconds, _HOURS_BEFORE_EPOCH * _HOUR_MICROSECONDS)
    return pc.subtract(pc.divide(positive, _HOUR_MICROSECONDS), _HOURS_BEFORE_EPOCH)


def _remove_stored_messages(
    messages: pa.Table, archive_files: Sequence[Path], scratch_folder: Path, own_partition: str, first_row_number: int
) -> pa.Table:
    engine = open_engine(scratch_folder)
    try:
        engine.register("messages", messages.select(["number", "message_id"]))
        if _has_only_new_ids(engine, archive_files):
            return messages
        query = "SELECT min(number) AS number, message_id FROM messages GROUP BY message_id"
        if archive_files:
            own = f'"partition" = {quote_sql_text(own_partition)} AND "sequence" >= {first_row_number}'
            stored = f"SELECT message_id FROM {build_read_parquet_sql(archive_files)} WHERE NOT ({own})"  # noqa: S608  quoted
            query = f"SELECT number FROM ({query}) ANTI JOIN ({stored}) USING (message_id)"  # noqa: S608  as above
        numbers = engine.sql(f"SELECT number FROM ({query}) ORDER BY number").to_arrow_table()  # noqa: S608  as above
    finally:
        engine.close()
    if numbers.num_rows == messages.num_rows:
        return messages
    return messages.filter(pc.is_in(messages.column("number"), numbers.column("number").combine_chunks()))


def _has_only_new_ids(engine: "duckdb.DuckDBPyConnection", archive_files: Sequence[Path]) -> bool:
    """Return True if the ids in table ``messages`` certainly differ from each other and from those in the files.

    The function compares hashes, which takes half the time of comparing ids. If two hashes are equal, the result is
    False, although the ids can differ.
    """
    query = "SELECT count(*) = count(DISTINCT hash(message_id)) FROM messages"
    [(are_different,)] = engine.execute(query).fetchall()
    if not are_different or not archive_files:
        return bool(are_different)
    stored = f"SELECT hash(message_id) AS id_hash FROM {build_read_parquet_sql(archive_files)}"  # noqa: S608  quoted
    new = "SELECT hash(message_id) AS id_hash FROM messages"
    [(repeated,)] = engine.execute(f"SELECT count(*) FROM ({stored}) SEMI JOIN ({new}) USING (id_hash)").fetchall()  # noqa: S608  as above
    return not repeated


def _split_messages_by_hour(messages: pa.Table) -> Iterator[tuple[datetime, pa.Table]]:
    """Yield each hour with its messages; both the hours and the messages within an hour are sorted by time.

    The call itself sorts the messages. The iterator then builds the table of one hour at a time, because the tables of
    very many hours take much memory.
    """
    if not messages.num_rows:
        return iter(())
    if not _is_sorted_by_time(messages):
        messages = messages.sort_by([("timestamp", "ascending"), ("number", "ascending")])
    # The texts of the messages are not combined, because a copy of them takes long.
    encoded = pc.run_end_encode(_compute_hours_since_1970(messages).combine_chunks())
    starts = [0, *encoded.run_ends.to_pylist()[:-1]]
    return (
        (_EPOCH + number * _HOUR, messages.slice(start, end - start))
        for number, start, end in zip(encoded.values.to_pylist(), starts, encoded.run_ends.to_pylist(), strict=True)
    )


def _is_sorted_by_time(messages: pa.Table) -> bool:
    """Return whether messages are already sorted by time and by row number, so that no sorting is necessary."""
    pairs = [(column.slice(0, len(column) - 1), column.slice(1)) for column in messages.select(["timestamp", "number"])]
    return all(pc.all(pc.less_equal(earlier, later)).as_py() for earlier, later in pairs)


def _build_blob(source: ImportSource, hour: datetime, messages: pa.Table) -> UnstoredBlob:
    """Build the archive blob with the imported messages of one hour."""
    rows = pa.table(_build_columns(source, messages), schema=build_archive_schema())
    enqueued = to_unix_microseconds(source.ingested_at)
    numbers = pc.min_max(messages.column("number")).as_py()
    summary = BlobSummary(rows.num_rows, 0, enqueued, enqueued, longest=measure_longest_row_bytes(rows))
    target = io.BytesIO()
    with open_parquet_writer(target, summary) as file:
        for group in split_into_row_groups(rows):
            file.write_table(group, row_group_size=group.num_rows)
    name = build_batch_blob_name(SequenceRange(source.partition, numbers["min"], numbers["max"]))
    return UnstoredBlob(build_hour_folder(source.connection, hour) + name, target.getvalue())


def _build_columns(source: ImportSource, messages: pa.Table) -> list[pa.Array | pa.ChunkedArray]:
    """Build the columns of an archive blob from imported messages."""
    count = messages.num_rows
    constants = {
        "connection": source.connection,
        "headers": "{}",
        "surfaces": orjson.dumps(list(source.surfaces)).decode(),
        "partition": source.partition,
    }
    columns = []
    for name in COLUMNS:
        if name in constants:
            columns.append(pa.repeat(pa.scalar(constants[name], pa.string()), count))
        elif name == "enqueued_at":
            columns.append(pa.repeat(pa.scalar(source.ingested_at, pa.timestamp("us", "UTC")), count))
        else:
            columns.append(messages.column("number" if name == "sequence" else name))
    return columns


def write_query_table_file(path: Path, source: ImportSource, messages: pa.Table, compression: str = "snappy") -> None:
    """Write imported messages to a Parquet file for the KQL table ``Telemetry``; dynamic values are JSON texts.

    :func:`read_query_table_file` needs the column ``RowNumber``. The query engine ignores this column, because the
    table has no column with this name.

    Args:
        path: the new file.
        source: the import.
        messages: messages with the columns ``step_rows.SCHEMA``.
        compression: compression method of the file, by its name in Arrow.
    """
    count = messages.num_rows
    table = pa.table(
        {
            "Timestamp": messages.column("timestamp"),
            "ConnectionLookup": pa.repeat(pa.scalar(source.connection, pa.string()), count),
            "SurfaceLookups": pa.repeat(pa.scalar(orjson.dumps(list(source.surfaces)).decode(), pa.string()), count),
            "DeviceId": messages.column("device_id"),
            "MessageId": messages.column("message_id"),
            "Payload": messages.column("payload"),
            "RowNumber": messages.column("number"),
        }
    )
    # Ids and payloads rarely repeat, and the engine that reads the file once uses no statistics.
    repeating = [name for name in table.column_names if name not in {"MessageId", "Payload", "RowNumber"}]
    pq.write_table(table, path, compression=compression, use_dictionary=repeating, write_statistics=False)


def read_query_table_file(path: Path) -> QueryTableFile:
    """Return the surfaces and the messages that :func:`write_query_table_file` wrote; the file must have a message."""
    with pq.ParquetFile(path) as file:
        surfaces = next(file.iter_batches(1, columns=["SurfaceLookups"])).column(0)[0].as_py()
    names = ["RowNumber", "Timestamp", "DeviceId", "MessageId", "Payload"]
    messages = pq.read_table(path, columns=names).select(names).rename_columns(SCHEMA.names).cast(SCHEMA)
    return QueryTableFile(orjson.loads(surfaces), messages)
