"""Inventory of the telemetry archive: the blobs that contain the rows of each connection and hour."""

import asyncio
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from shared.cold_data.concurrent_calls import call_for_each
from shared.cold_data.names import (
    folder_from_blob_name,
    hour_from_blob_name,
    is_merged_blob,
    iterate_blob_prefixes,
    sequence_range_from_blob_name,
)
from shared.cold_data.ports import Blob, BlobReplacedError, BlobStore
from shared.cold_data.tables import BlobSummary, parse_footer_size, parse_summary_from_blob_end
from shared.errors import Kind, WorkspaceError

FOOTER_BYTES = 64 * 1024
CONCURRENT_READS = 16
"""Maximum number of footers that one listing reads at a time, of all its hours together."""
CONCURRENT_DOWNLOADS = 8
"""Maximum number of blobs that a reader downloads at a time; each needs memory."""
_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class ArchiveBlob:
    """Blob of the telemetry archive with the summary of its rows; ``name`` is relative to the folder of its hour."""

    name: str
    blob: Blob
    summary: BlobSummary

    @property
    def identity(self) -> str:
        """Unique name of the blob.

        It contains a time, because after a reset of the hub, sequence numbers and blob names repeat.
        """
        return f"{self.name}@{self.summary.first_enqueued}"


@dataclass(frozen=True, slots=True)
class ArchiveHour:
    """Archive blobs of one connection and hour.

    Attributes:
        folder: prefix of the blobs' names.
        hour: start of the hour, UTC.
        live: blobs that together contain every row of the hour; some rows can occur twice.
        replaced: blobs that still exist although their rows were merged into another blob.
        inherited: identities of the blobs in ``replaced``; the next merge lists them as sources of its blob, too.
    """

    folder: str
    hour: datetime
    live: tuple[ArchiveBlob, ...]
    replaced: tuple[Blob, ...]
    inherited: frozenset[str]

    @property
    def row_count(self) -> int:
        """Number of rows in the hour's live blobs; a row that is stored in two blobs counts twice."""
        return sum(each.summary.rows for each in self.live)

    @property
    def compressed_bytes(self) -> int:
        """Total size in bytes of the hour's live blobs, which are compressed."""
        return sum(each.blob.size for each in self.live)

    @property
    def unpacked_bytes(self) -> int:
        """Approximate size in bytes of the hour's rows in memory, after decompression."""
        return sum(each.summary.unpacked for each in self.live)

    @property
    def longest_row_bytes(self) -> int | None:
        """Maximum size in bytes of a row's long texts, such as its payload; None if a blob's maximum is unknown."""
        found = [each.summary.longest for each in self.live]
        return None if None in found else max(filter(None, found), default=0)

    @property
    def can_have_duplicate_rows(self) -> bool:
        """True if a row can occur in more than one blob."""
        return len(self.live) > 1 and not _is_each_row_in_one_blob(each.name for each in self.live)


async def list_hours(
    store: BlobStore, connection: str, start: datetime, end: datetime, wanted_hours: Container[datetime] | None = None
) -> list[ArchiveHour]:
    """Return the hours of a connection that start in a time range and have archive blobs.

    Args:
        store: container of the archive's blobs.
        connection: lookup (id in URLs) of the connection.
        start: start of the time range, inclusive.
        end: end of the time range, exclusive.
        wanted_hours: starts of the hours to return; None for all hours of the range.

    Raises:
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    folders: dict[str, list[Blob]] = {}
    for prefix in iterate_blob_prefixes(connection, start, end):
        async for blob in store.list(prefix):
            hour = hour_from_blob_name(blob.name)
            if hour is not None and start <= hour < end and (wanted_hours is None or hour in wanted_hours):
                folders.setdefault(folder_from_blob_name(blob.name), []).append(blob)
    reads = asyncio.Semaphore(CONCURRENT_READS)

    async def load_listed_hour(folder_and_blobs: tuple[str, Sequence[Blob]]) -> ArchiveHour:
        return await _load_hour_with_retry(store, *folder_and_blobs, reads)

    return await call_for_each(load_listed_hour, folders.items(), CONCURRENT_READS)


async def load_hour(store: BlobStore, hour_folder: str) -> ArchiveHour:
    """Read the summaries of the blobs in one hour's folder; ``live`` is empty if the folder has no blobs.

    Raises:
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    blobs = [blob async for blob in store.list(hour_folder)]
    return await _load_hour_with_retry(store, hour_folder, blobs, asyncio.Semaphore(CONCURRENT_READS))


async def _load_hour_with_retry(
    store: BlobStore, hour_folder: str, blobs: Sequence[Blob], read_limit: asyncio.Semaphore
) -> ArchiveHour:
    """Read the summaries of an hour's blobs; list the blobs again if one of them was deleted or replaced meanwhile."""
    for _ in range(_MAX_ATTEMPTS):
        try:
            return await _load_blobs_of_hour(store, hour_folder, blobs, read_limit)
        except (FileNotFoundError, BlobReplacedError):
            blobs = [blob async for blob in store.list(hour_folder)]
    raise WorkspaceError(
        Kind.UNAVAILABLE,
        "BLOB_STORE_UNAVAILABLE",
        "The telemetry archive changed during each attempt to read it; try again.",
    )


async def _load_blobs_of_hour(
    store: BlobStore, hour_folder: str, blobs: Sequence[Blob], read_limit: asyncio.Semaphore
) -> ArchiveHour:
    async def load_blob_summary(blob: Blob) -> ArchiveBlob:
        async with read_limit:
            return ArchiveBlob(blob.name.removeprefix(hour_folder), blob, await read_summary(store, blob))

    archive_blobs = await call_for_each(load_blob_summary, blobs, min(len(blobs), CONCURRENT_READS))
    replaced = {source for each in archive_blobs for source in each.summary.sources}
    hour = hour_from_blob_name(hour_folder)
    assert hour is not None, hour_folder  # noqa: S101  the folder name contains an hour
    return ArchiveHour(
        hour_folder,
        hour,
        tuple(each for each in archive_blobs if each.identity not in replaced),
        tuple(each.blob for each in archive_blobs if each.identity in replaced),
        frozenset(each.identity for each in archive_blobs if each.identity in replaced),
    )


async def read_summary(store: BlobStore, blob: Blob) -> BlobSummary:
    """Read the summary in the footer of a listed archive blob.

    Raises:
        FileNotFoundError: the blob does not exist.
        BlobReplacedError: the blob was replaced after the listing.
    """
    end = await _read_last_bytes(store, blob, FOOTER_BYTES)
    if parse_footer_size(end) > len(end):
        end = await _read_last_bytes(store, blob, parse_footer_size(end))
    return parse_summary_from_blob_end(end, blob.size)


async def find_summary(store: BlobStore, blob_name: str) -> BlobSummary | None:
    """Read the summary in the footer of an archive blob; return None if the blob does not exist."""
    try:
        async for blob in store.list(blob_name):
            return await read_summary(store, blob)
    except FileNotFoundError:
        pass
    return None


async def _read_last_bytes(store: BlobStore, blob: Blob, size: int) -> bytes:
    return await store.read_range(blob.name, max(0, blob.size - size), size, blob.etag or None)


async def download_blobs(
    store: BlobStore, hour: ArchiveHour, target_paths: Sequence[Path], download_limit: asyncio.Semaphore
) -> None:
    """Download the live blobs of an hour to one file each.

    Args:
        store: container of the archive's blobs.
        hour: the hour.
        target_paths: the new files, one for each live blob.
        download_limit: semaphore of :data:`CONCURRENT_DOWNLOADS`, which downloads of other hours can share.

    Raises:
        FileNotFoundError: a blob does not exist any more.
    """

    async def download_blob(blob_and_path: tuple[ArchiveBlob, Path]) -> None:
        blob, file = blob_and_path
        async with download_limit:
            await store.download_to_file(blob.blob.name, file)

    await call_for_each(download_blob, zip(hour.live, target_paths, strict=True), CONCURRENT_DOWNLOADS)


def _is_each_row_in_one_blob(blob_names: Iterable[str]) -> bool:
    """Return whether no row can be in two blobs: no blob is merged, and the sequence ranges do not overlap."""
    ends: dict[str, int] = {}
    for name in sorted(blob_names):
        run = sequence_range_from_blob_name(name)
        if is_merged_blob(name) or run is None or run.first <= ends.get(run.partition, -1):
            return False
        ends[run.partition] = run.last
    return True
