"""Inventory of the archive: the blobs that contain the rows of each hour."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.cold_data.names import folder_from_name, hour_from_name, is_merged, list_prefixes, range_from_name
from shared.cold_data.ports import Blob, BlobStore
from shared.cold_data.tables import BlobSummary, parse_summary, read_footer_size
from shared.errors import Kind, WorkspaceError

FOOTER_BYTES = 64 * 1024
CONCURRENT_READS = 8
_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class ArchiveBlob:
    """A blob of the archive with its summary; ``name`` is relative to the folder of its hour."""

    name: str
    blob: Blob
    summary: BlobSummary

    @property
    def identity(self) -> str:
        """Name that stays unique when a reset hub reuses blob names."""
        return f"{self.name}@{self.summary.first_enqueued}"


@dataclass(frozen=True, slots=True)
class ArchiveHour:
    """The blobs of one connection and hour.

    Attributes:
        folder: prefix of the blobs.
        hour: start of the hour, UTC.
        live: blobs that together contain every row; some rows may occur twice.
        replaced: blobs whose rows were merged into a live blob.
        inherited: identities of the replaced blobs.
    """

    folder: str
    hour: datetime
    live: tuple[ArchiveBlob, ...]
    replaced: tuple[Blob, ...]
    inherited: frozenset[str]

    @property
    def rows(self) -> int:
        """Maximum number of rows."""
        return sum(load_blob.summary.rows for load_blob in self.live)

    @property
    def size(self) -> int:
        """Total size of the live blobs in bytes."""
        return sum(load_blob.blob.size for load_blob in self.live)

    @property
    def unpacked(self) -> int:
        """Approximate size of the rows in memory, in bytes."""
        return sum(load_blob.summary.unpacked for load_blob in self.live)

    @property
    def longest(self) -> int | None:
        """Largest total of a row's long texts in bytes; None if a blob does not record it."""
        found = [load_blob.summary.longest for load_blob in self.live]
        return None if None in found else max(filter(None, found), default=0)

    @property
    def overlapping(self) -> bool:
        """True if a row may occur in more than one blob."""
        return len(self.live) > 1 and not _are_disjoint(load_blob.name for load_blob in self.live)


async def list_hours(store: BlobStore, connection: str, start: datetime, end: datetime) -> list[ArchiveHour]:
    """Return the hours of a connection that overlap a range and have blobs.

    Raises:
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    folders: dict[str, list[Blob]] = {}
    for prefix in list_prefixes(connection, start, end):
        async for blob in store.list(prefix):
            hour = hour_from_name(blob.name)
            if hour is not None and start <= hour < end:
                folders.setdefault(folder_from_name(blob.name), []).append(blob)
    return [await _load_with_retry(store, folder, blobs) for folder, blobs in folders.items()]


async def load_hour(store: BlobStore, folder: str) -> ArchiveHour:
    """Return the current state of an hour's folder; ``live`` is empty if there are no blobs.

    Raises:
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    return await _load_with_retry(store, folder, [blob async for blob in store.list(folder)])


async def _load_with_retry(store: BlobStore, folder: str, blobs: Sequence[Blob]) -> ArchiveHour:
    """Return the hour of some blobs; list it again if one of them was deleted meanwhile."""
    for _ in range(_MAX_ATTEMPTS):
        try:
            return await _load(store, folder, blobs)
        except FileNotFoundError:
            blobs = [blob async for blob in store.list(folder)]
    raise WorkspaceError(
        Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "The archive changed during every attempt to read it; try again."
    )


async def _load(store: BlobStore, folder: str, blobs: Iterable[Blob]) -> ArchiveHour:
    semaphore = asyncio.Semaphore(CONCURRENT_READS)

    async def load_blob(blob: Blob) -> ArchiveBlob:
        async with semaphore:
            return ArchiveBlob(blob.name.removeprefix(folder), blob, await read_summary(store, blob))

    archive_blobs = await asyncio.gather(*map(load_blob, blobs))
    replaced = {source for each in archive_blobs for source in each.summary.sources}
    hour = hour_from_name(folder)
    assert hour is not None, folder  # noqa: S101  the folder name contains an hour
    return ArchiveHour(
        folder,
        hour,
        tuple(each for each in archive_blobs if each.identity not in replaced),
        tuple(each.blob for each in archive_blobs if each.identity in replaced),
        frozenset(each.identity for each in archive_blobs if each.identity in replaced),
    )


async def read_summary(store: BlobStore, blob: Blob) -> BlobSummary:
    """Return the summary from a blob's footer.

    Raises:
        FileNotFoundError: the blob does not exist.
    """
    end = await store.read_end(blob.name, FOOTER_BYTES)
    if read_footer_size(end) > len(end):
        end = await store.read_end(blob.name, read_footer_size(end))
    return parse_summary(end, blob.size)


def _are_disjoint(names: Iterable[str]) -> bool:
    """Return whether all blobs are batches and no two of them share a row."""
    ends: dict[str, int] = {}
    for name in sorted(names):
        run = range_from_name(name)
        if is_merged(name) or run is None or run.first <= ends.get(run.partition, -1):
            return False
        ends[run.partition] = run.last
    return True
