"""Blob store of the embedded backend: each blob is a file in a folder."""

import asyncio
import contextlib
import itertools
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from shared.backends.embedded import durable_files
from shared.backends.embedded.file_links import FileLink, FileLinks
from shared.cold_data.observed_blobs import open_blob_span
from shared.cold_data.ports import Blob
from shared.errors import Kind, WorkspaceError

DRAFTS = ".drafts"
"""Folder of unfinished files; names of blobs never begin with a full stop."""

_PAGE_SIZE = 1000
_DRAFT_SECONDS = 3600
"""Age at which an unfinished file is regarded as abandoned."""
_MAX_SEGMENT_BYTES = 255


class FolderBlobStore:
    """The BlobStore port over a folder; several processes may use one.

    Args:
        folder: folder of the container, created on first use. Its name is the name of the container.
        links: creates links to files, which the local host serves.
    """

    def __init__(self, folder: Path, links: FileLinks) -> None:
        self._folder = folder
        self._links = links
        self._swept = False

    async def create(self, name: str, content: bytes) -> bool:
        path = blob_path(self._folder, name)
        return await _convert_errors(lambda: self._create(path, content))

    async def upload(self, name: str, source: Path) -> None:
        path = blob_path(self._folder, name)
        await _convert_errors(lambda: self._upload(path, source))

    async def read(self, name: str) -> bytes:
        path = blob_path(self._folder, name)
        return await _convert_errors(path.read_bytes)

    async def read_end(self, name: str, size: int) -> bytes:
        path = blob_path(self._folder, name)
        return await _convert_errors(lambda: _read_end(path, size))

    async def fetch(self, name: str, target: Path) -> None:
        path = blob_path(self._folder, name)
        await _convert_errors(lambda: shutil.copyfile(path, target))

    async def list(self, prefix: str) -> AsyncIterator[Blob]:
        found = _list_blobs(self._folder, "", prefix)

        async def next_page() -> "list[Blob]":
            with open_blob_span("list", self._folder.name):
                return await _convert_errors(lambda: list(itertools.islice(found, _PAGE_SIZE)))

        while page := await next_page():
            for blob in page:
                yield blob

    async def delete(self, names: Collection[str]) -> None:
        paths = [blob_path(self._folder, name) for name in names]
        await _convert_errors(lambda: _remove(paths))

    async def link(self, name: str, file_name: str, expires_at: datetime) -> str:
        link = FileLink(self._folder.name, name, file_name, expires_at)
        return await _convert_errors(lambda: self._links.create(link))

    async def check(self) -> None:
        def attempt() -> None:
            durable_files.write_draft(self._create_draft_path("check"), b"").unlink()

        await _convert_errors(attempt)

    async def close(self) -> None:
        """Do nothing, because no file stays open."""

    def _create(self, path: Path, content: bytes) -> bool:
        if path.exists():
            return False
        draft = durable_files.write_draft(self._create_draft_path(path.name), content)
        path.parent.mkdir(parents=True, exist_ok=True)
        return durable_files.create(path, draft, self._folder)

    def _upload(self, path: Path, source: Path) -> None:
        draft = durable_files.write_draft(self._create_draft_path(path.name), b"")
        with draft.open("r+b") as file, source.open("rb") as content:
            shutil.copyfileobj(content, file, 1024 * 1024)
            file.flush()
            os.fsync(file.fileno())
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(path)
        durable_files.sync_folders(path, self._folder)

    def _create_draft_path(self, name: str) -> Path:
        if not self._swept:
            self._swept = True
            _remove_drafts(self._folder / DRAFTS)
        # The name is shortened, because file systems limit the length, and drafts have a random suffix.
        return self._folder / DRAFTS / name[-64:].lstrip(".")


def blob_path(folder: Path, name: str) -> Path:
    """Return the file of a blob, which is always below the folder.

    Raises:
        ValueError: the name is empty or absolute, has a segment that is empty, too long or begins with a full stop, or
            has a character with a special meaning in file systems.
    """
    segments = name.split("/")
    if not all(map(_is_segment, segments)):
        raise ValueError(f"invalid name of a blob: {name!r}")
    return folder.joinpath(*segments)


def _is_segment(text: str) -> bool:
    if not text or text.startswith(".") or "\\" in text or not text.isprintable():
        return False
    return len(text.encode(errors="replace")) <= _MAX_SEGMENT_BYTES


def _list_blobs(folder: Path, above: str, prefix: str) -> Iterator[Blob]:
    """Yield the blobs below a folder whose names begin with a prefix, in order of their full names."""
    try:
        with os.scandir(folder) as scanned:
            entries = [(f"{above}{each.name}/" if each.is_dir() else f"{above}{each.name}", each) for each in scanned]
    except FileNotFoundError:
        return
    for name, entry in sorted(entries, key=lambda pair: pair[0]):
        if entry.name.startswith("."):
            continue
        if name.endswith("/"):
            if name.startswith(prefix) or prefix.startswith(name):
                yield from _list_blobs(folder / entry.name, name, prefix)
        elif name.startswith(prefix):
            yield from _read_blob_entry(name, entry)


def _read_blob_entry(name: str, entry: "os.DirEntry[str]") -> Iterator[Blob]:
    try:
        found = entry.stat()
    except FileNotFoundError:
        return  # deleted since the folder was read
    yield Blob(name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _remove(paths: Collection[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _remove_drafts(drafts: Path) -> None:
    """Delete unfinished files that are so old that their process has ended. Newer ones may be in use."""
    before = time.time() - _DRAFT_SECONDS
    for draft in drafts.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if draft.stat().st_mtime < before:
                draft.unlink()


def _read_end(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read()


async def _convert_errors[T](work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except FileNotFoundError:
        raise
    except OSError as error:
        detail = "The store of cold data does not respond; retry later."
        raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", detail) from error
