"""Which blobs hold the rows of an hour."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.cold_data.names import folder_from_name, hour_from_name, is_merged, list_prefixes, range_from_name
from shared.cold_data.ports import Blob, BlobStore
from shared.cold_data.tables import BlobSummary, footer_size, parse_summary
from shared.errors import Kind, WorkspaceError

FOOTER_BYTES = 64 * 1024
AT_ONCE = 8
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ArchiveBlob:
    """A blob and what it says of itself; ``name`` is that below its hour."""

    name: str
    blob: Blob
    summary: BlobSummary

    @property
    def identity(self) -> str:
        """Tells the blob from every other that is or was called the same: a hub that begins anew repeats names."""
        return f"{self.name}@{self.summary.first_enqueued}"


@dataclass(frozen=True, slots=True)
class ArchiveHour:
    """The blobs of a connection and hour.

    Attributes:
        folder: their prefix.
        hour: UTC.
        live: the blobs that together hold every row, perhaps some rows twice.
        replaced: blobs for which a live one stands.
        inherited: identities of those.
    """

    folder: str
    hour: datetime
    live: tuple[ArchiveBlob, ...]
    replaced: tuple[Blob, ...]
    inherited: frozenset[str]

    @property
    def rows(self) -> int:
        """How many rows there are at most."""
        return sum(held.summary.rows for held in self.live)

    @property
    def size(self) -> int:
        """How many bytes these are."""
        return sum(held.blob.size for held in self.live)

    @property
    def unpacked(self) -> int:
        """About how many bytes the rows take when they are read."""
        return sum(held.summary.unpacked for held in self.live)

    @property
    def longest(self) -> int | None:
        """The most bytes that the long texts of a row take; None where a blob does not say."""
        found = [held.summary.longest for held in self.live]
        return None if None in found else max(filter(None, found), default=0)

    @property
    def overlapping(self) -> bool:
        """Whether a row may stand in more than one blob."""
        return len(self.live) > 1 and not _apart(held.name for held in self.live)


async def hours(store: BlobStore, connection: str, start: datetime, end: datetime) -> list[ArchiveHour]:
    """Return the hours of a connection that begin before ``end`` and end after ``start``, as far as they have blobs.

    Raises:
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    folders: dict[str, list[Blob]] = {}
    for prefix in list_prefixes(connection, start, end):
        async for blob in store.list(prefix):
            hour = hour_from_name(blob.name)
            if hour is not None and start <= hour < end:
                folders.setdefault(folder_from_name(blob.name), []).append(blob)
    return [await _complete(store, folder, blobs) for folder, blobs in folders.items()]


async def load_hour(store: BlobStore, folder: str) -> ArchiveHour:
    """Return the hour below a prefix as it is now; without live blobs when there are none.

    Raises:
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    return await _complete(store, folder, [blob async for blob in store.list(folder)])


async def _complete(store: BlobStore, folder: str, blobs: Sequence[Blob]) -> ArchiveHour:
    """Return the hour that blobs make, listed anew where one of them is gone by now."""
    for _ in range(_TRIES):
        try:
            return await _hour(store, folder, blobs)
        except FileNotFoundError:
            blobs = [blob async for blob in store.list(folder)]
    raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "The archive keeps changing; try again.")


async def _hour(store: BlobStore, folder: str, blobs: Iterable[Blob]) -> ArchiveHour:
    turns = asyncio.Semaphore(AT_ONCE)

    async def held(blob: Blob) -> ArchiveBlob:
        async with turns:
            return ArchiveBlob(blob.name.removeprefix(folder), blob, await summary(store, blob))

    all_held = await asyncio.gather(*map(held, blobs))
    replaced = {source for each in all_held for source in each.summary.sources}
    hour = hour_from_name(folder)
    assert hour is not None, folder  # noqa: S101  the folder comes from a name that has one
    return ArchiveHour(
        folder,
        hour,
        tuple(each for each in all_held if each.identity not in replaced),
        tuple(each.blob for each in all_held if each.identity in replaced),
        frozenset(each.identity for each in all_held if each.identity in replaced),
    )


async def summary(store: BlobStore, blob: Blob) -> BlobSummary:
    """Return what a blob says of itself.

    Raises:
        FileNotFoundError: it is gone.
    """
    end = await store.read_end(blob.name, FOOTER_BYTES)
    if footer_size(end) > len(end):
        end = await store.read_end(blob.name, footer_size(end))
    return parse_summary(end, blob.size)


def _apart(names: Iterable[str]) -> bool:
    """Return whether blobs are batches of which no two share a row."""
    ends: dict[str, int] = {}
    for name in sorted(names):
        run = range_from_name(name)
        if is_merged(name) or run is None or run.first <= ends.get(run.partition, -1):
            return False
        ends[run.partition] = run.last
    return True
