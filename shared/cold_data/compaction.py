"""Merges the blobs of hours that are over, and removes those that were merged.

One blob per hour and connection is what readers want; one per trigger batch is what the archive can write. A run does
whichever of two steps an hour is ready for, and may end anywhere: what is left is done by a later run.

1. Merge: a new blob holds every row of the live ones and names them, and those that it inherits, as its sources.
2. Sweep: blobs that another one names are removed, no sooner than that one has been there for the quiet time, so that
   whoever lists an hour sees it, or still finds what it stands for.

Two runs at once, blobs that come late, and sources that come back after their removal leave rows that stand in two
blobs; readers tell them by their place in the hub, and a later run merges again.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from shared.cold_data import long_texts
from shared.cold_data.engine import ROW_ORDER, open_engine, parquet_source, quote_text, select_rows_once
from shared.cold_data.inventory import ArchiveHour, load_hour
from shared.cold_data.names import HOUR, ROOT, folder_from_name, hour_from_name, merged_name
from shared.cold_data.ports import Blob, BlobStore
from shared.cold_data.scratch import require_space
from shared.cold_data.tables import (
    COLUMNS,
    GROUP_BYTES,
    GROUP_ROWS,
    LONG,
    SUMMARY,
    BlobSummary,
    conform_rows,
    open_writer,
    split_row_groups,
)
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, logger

if TYPE_CHECKING:
    import duckdb

_AT_ONCE = 8
_LOGGER = logger("cold_data.compaction")


class Compaction:
    """Merges the blobs of one archive.

    Args:
        store: of its blobs.
        quiet: how long an hour must have got no blob, and a merged blob have been there, before it is touched.
        scratch: folder for copies of blobs while they are merged; made on first use, the system's own where None.
    """

    def __init__(self, store: BlobStore, quiet: timedelta, scratch: Path | None = None) -> None:
        self._store = store
        self._quiet = quiet
        self._scratch = scratch

    async def run(self, at: datetime) -> int:
        """Do what is due at an instant, and return how many hours were merged.

        An hour that cannot be merged is told to the log and left as it is.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        merged = 0
        async for folder, blobs in self._folders():
            if len(blobs) > 1 and self._is_due(folder, blobs, at):
                try:
                    merged += await self._settle(await load_hour(self._store, folder), at)
                except Exception as error:
                    if isinstance(error, WorkspaceError) and error.kind is Kind.UNAVAILABLE:
                        raise
                    _LOGGER.exception("an hour of the archive cannot be merged", extra=fields(folder=folder))
        return merged

    async def _folders(self) -> AsyncIterator[tuple[str, list[Blob]]]:
        """Yield the blobs of each connection and hour; a listing has them side by side."""
        folder: str = ""
        blobs: list[Blob] = []
        async for blob in self._store.list(f"{ROOT}/"):
            if folder_from_name(blob.name) != folder:
                if blobs:
                    yield folder, blobs
                folder, blobs = folder_from_name(blob.name), []
            blobs.append(blob)
        if blobs:
            yield folder, blobs

    def _is_due(self, folder: str, blobs: list[Blob], at: datetime) -> bool:
        hour = hour_from_name(folder)
        # An hour with timestamps of the future, a sensor's clock being wrong, waits until it is over.
        return hour is not None and hour <= at - HOUR and max(blob.written_at for blob in blobs) <= at - self._quiet

    async def _settle(self, hour: ArchiveHour, at: datetime) -> int:
        if hour.replaced and all(held.blob.written_at <= at - self._quiet for held in hour.live):
            await self._store.delete([blob.name for blob in hour.replaced])
        if len(hour.live) <= 1:
            return 0
        if self._scratch is not None:
            await asyncio.to_thread(self._scratch.mkdir, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="merge-", dir=self._scratch, ignore_cleanup_errors=True) as folder:
            try:
                await self._merge(hour, Path(folder))
            except FileNotFoundError:
                return 0  # another run was quicker
        return 1

    async def _merge(self, hour: ArchiveHour, folder: Path) -> None:
        files = [folder / f"{number}.parquet" for number in range(len(hour.live))]
        await asyncio.to_thread(require_space, folder, 2 * hour.size)
        for first in range(0, len(files), _AT_ONCE):
            pairs = zip(hour.live[first : first + _AT_ONCE], files[first : first + _AT_ONCE], strict=True)
            await asyncio.gather(*(self._store.fetch(held.blob.name, file) for held, file in pairs))
        target = folder / "merged.parquet"
        await asyncio.to_thread(_write, hour, files, target)
        await self._store.upload(hour.folder + merged_name([held.name for held in hour.live]), target)


def _write(hour: ArchiveHour, files: list[Path], target: Path) -> None:
    """Write the rows of some files, each once, in order."""
    said = BlobSummary(
        rows=0,
        size=0,
        first_enqueued=min(held.summary.first_enqueued for held in hour.live),
        last_enqueued=max(held.summary.last_enqueued for held in hour.live),
        # What was replaced before and is still there would come back to life with the blob that names it gone.
        sources=frozenset(held.identity for held in hour.live) | hour.inherited,
        longest=hour.longest,
    )
    engine = open_engine(target.parent)
    try:
        (_write_short if long_texts.is_short(hour.longest) else _write_long)(engine, hour, files, target, said)
    finally:
        engine.close()


def _write_short(
    engine: "duckdb.DuckDBPyConnection", hour: ArchiveHour, files: list[Path], target: Path, said: BlobSummary
) -> None:
    """Write rows that the engine may hold."""
    query = f"{select_rows_once(parquet_source(files), COLUMNS, overlapping=hour.overlapping)} ORDER BY {ROW_ORDER}"
    rows = min(GROUP_ROWS, GROUP_BYTES // max(1, hour.longest or 0))
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows}"
    metadata = f"KV_METADATA {{{SUMMARY}: {quote_text(said.text())}}}"
    engine.execute(f"COPY ({query}) TO {quote_text(str(target))} ({options}, {metadata})")


def _write_long(
    engine: "duckdb.DuckDBPyConnection", hour: ArchiveHour, files: list[Path], target: Path, said: BlobSummary
) -> None:
    """Write rows that are too long for the engine, which only tells their order."""
    kept = long_texts.ALL_KEPT
    with long_texts.LongTextSpill(engine, target.parent, LONG, kept) as aside:
        for file in files:
            aside.add(file, hour.longest)
        columns = [*kept, *long_texts.reference_columns(LONG)]
        query = f"{select_rows_once(long_texts.TABLE, columns, overlapping=hour.overlapping)} ORDER BY {ROW_ORDER}"
        with open_writer(target, replace(said, longest=aside.longest)) as blob:
            for rows in aside.rows(query):
                for group in split_row_groups(conform_rows(rows)):
                    blob.write_batch(group, row_group_size=group.num_rows)
