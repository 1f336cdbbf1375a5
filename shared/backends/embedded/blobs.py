"""Blob store of the embedded backend: each blob is a file in a folder."""

import contextlib
import hashlib
import itertools
import math
import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from shared.backends.embedded import durable_files
from shared.backends.embedded.file_links import FileLink, FileLinks, LinkPermission
from shared.cold_data.observed_blobs import open_blob_span
from shared.cold_data.ports import Blob, BlobReplacedError
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime

DRAFTS = ".drafts"
"""Folder of unfinished files; names of blobs never begin with a full stop."""

_BLOCKS = ".blocks"
"""Folder of uploaded blocks that are not joined to a blob yet."""
_PAGE_SIZE = 1000
_DRAFT_SECONDS = 3600
"""Age at which an unfinished file is regarded as abandoned, and seconds between two deletions of such files."""
_MAX_SEGMENT_BYTES = 255
_PLACE_REPEATS = 10


class FolderBlobStore:
    """Implementation of BlobStore: stores blobs as files in a folder, which several processes may use.

    Args:
        folder: folder with the blobs of one container, created on first use and named like the container.
        links: creates signed links to the files; the local host serves the files.
        runtime: clock, randomness and threads.
    """

    def __init__(self, folder: Path, links: FileLinks, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._folder = folder
        self._links = links
        self._next_sweep = -math.inf

    async def create_if_missing(self, name: str, content: bytes) -> bool:
        path = build_blob_path(self._folder, name)
        return await self._run_in_thread(lambda: self._try_create_blob(path, content))

    async def upload(self, name: str, source: Path) -> None:
        path = build_blob_path(self._folder, name)
        await self._run_in_thread(lambda: self._copy_file_to_blob(path, source))

    async def read(self, name: str) -> bytes:
        path = build_blob_path(self._folder, name)
        return await self._run_in_thread(path.read_bytes)

    async def read_range(self, name: str, start: int, size: int, etag: str | None = None) -> bytes:
        path = build_blob_path(self._folder, name)
        return await self._run_in_thread(lambda: _read_byte_range(path, start, size, etag))

    async def download_to_file(self, name: str, target: Path) -> None:
        path = build_blob_path(self._folder, name)
        await self._run_in_thread(lambda: shutil.copyfile(path, target))

    async def list(self, name_prefix: str) -> AsyncIterator[Blob]:
        found = _iterate_blobs(self._folder, "", name_prefix)

        async def fetch_next_page() -> "list[Blob]":
            with open_blob_span("list", self._folder.name):
                return await self._run_in_thread(lambda: list(itertools.islice(found, _PAGE_SIZE)))

        while page := await fetch_next_page():
            for blob in page:
                yield blob

    async def delete(self, names: Collection[str]) -> None:
        paths = [build_blob_path(self._folder, name) for name in names]
        blocks = [build_block_folder(self._folder, name) for name in names]
        await self._run_in_thread(lambda: _remove_blobs_and_empty_folders(paths, blocks, self._folder))

    async def create_download_link(self, name: str, file_name: str, expires_at: datetime) -> str:
        link = FileLink(self._folder.name, name, file_name, expires_at)
        return await self._run_in_thread(lambda: self._links.create_signed_url(link))

    async def create_upload_link(self, name: str, expires_at: datetime) -> str:
        link = FileLink(self._folder.name, name, "", expires_at, LinkPermission.WRITE)
        return await self._run_in_thread(lambda: self._links.create_signed_url(link))

    async def require_available(self) -> None:
        def write_and_delete_file() -> None:
            durable_files.write_temporary_file(self._create_draft_path("check"), b"").unlink()

        await self._run_in_thread(write_and_delete_file)

    async def close(self) -> None:
        """Do nothing; the store keeps no file open."""

    async def _run_in_thread[T](self, function: Callable[[], T]) -> T:
        try:
            return await self._runtime.run_in_thread(function)
        except FileNotFoundError:
            raise
        except OSError as error:
            detail = "The blob store does not respond; retry later."
            raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", detail) from error

    def _try_create_blob(self, blob_path: Path, content: bytes) -> bool:
        if blob_path.exists():
            return False

        def try_create_from_draft() -> bool:
            draft = durable_files.write_temporary_file(self._create_draft_path(blob_path.name), content)
            return durable_files.try_move_temporary_file_to_new_path(blob_path, draft, self._folder)

        return _create_folder_and_move_file(blob_path.parent, try_create_from_draft)

    def _copy_file_to_blob(self, blob_path: Path, source: Path) -> None:
        draft = durable_files.write_temporary_file(self._create_draft_path(blob_path.name), b"")
        try:
            with draft.open("r+b") as file, source.open("rb") as content:
                shutil.copyfileobj(content, file, 1024 * 1024)
                file.flush()
                os.fsync(file.fileno())
            _create_folder_and_move_file(blob_path.parent, lambda: draft.replace(blob_path))
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        durable_files.fsync_folders_up_to(blob_path, self._folder)

    def _create_draft_path(self, name: str) -> Path:
        """Return a path for a new unfinished file; delete abandoned files, at most once per hour."""
        if self._runtime.monotonic() >= self._next_sweep:
            self._next_sweep = self._runtime.monotonic() + _DRAFT_SECONDS
            _delete_abandoned_drafts(self._folder / DRAFTS, self._runtime.now())
        # The name is shortened, because file systems limit the length, and drafts have a random suffix.
        return self._folder / DRAFTS / name[-64:].lstrip(".")


def build_blob_path(store_folder: Path, blob_name: str) -> Path:
    """Return the path of the file that stores a blob; the path is always below the store's folder.

    Raises:
        ValueError: the name is empty or absolute, has a segment that is empty, too long or begins with a full stop, or
            has a character with a special meaning in file systems.
    """
    segments = blob_name.split("/")
    if not all(map(_is_valid_path_segment, segments)):
        raise ValueError(
            f"{blob_name!r} is not a valid name of a blob; each segment must have 1 to {_MAX_SEGMENT_BYTES} bytes of "
            "printable text, no backslash, and no full stop at its start"
        )
    return store_folder.joinpath(*segments)


def build_block_folder(store_folder: Path, blob_name: str) -> Path:
    """Return the folder of a blob's uploaded blocks. It is deleted with the blob."""
    return store_folder / _BLOCKS / hashlib.sha256(blob_name.encode()).hexdigest()[:32]


def _is_valid_path_segment(text: str) -> bool:
    if not text or text.startswith(".") or "\\" in text or not text.isprintable():
        return False
    return len(text.encode(errors="replace")) <= _MAX_SEGMENT_BYTES


def _iterate_blobs(folder: Path, folder_name: str, name_prefix: str) -> Iterator[Blob]:
    """Yield the blobs below a folder whose names begin with a prefix, in order of their full names."""
    try:
        with os.scandir(folder) as scanned:
            entries = [
                (f"{folder_name}{each.name}/" if each.is_dir() else f"{folder_name}{each.name}", each)
                for each in scanned
            ]
    except FileNotFoundError:
        return
    for name, entry in sorted(entries, key=lambda pair: pair[0]):
        if entry.name.startswith("."):
            continue
        if name.endswith("/"):
            if name.startswith(name_prefix) or name_prefix.startswith(name):
                yield from _iterate_blobs(folder / entry.name, name, name_prefix)
        elif name.startswith(name_prefix):
            blob = _find_blob_of_entry(name, entry)
            if blob is not None:
                yield blob


def _find_blob_of_entry(blob_name: str, entry: "os.DirEntry[str]") -> Blob | None:
    """Return size, time and ETag of the blob in a directory entry; None if the file was deleted meanwhile."""
    try:
        found = entry.stat()
    except FileNotFoundError:
        return None
    return Blob(blob_name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC), _build_etag(found))


def _create_folder_and_move_file[T](folder: Path, move_file: Callable[[], T]) -> T:
    """Create a folder, and call the function ``move_file``, which moves a file into the folder.

    If another process removed the folder meanwhile, create it and call the function again.

    Raises:
        FileNotFoundError: the function fails although the folder exists, or the folder was removed each time.
    """
    for is_last in (*[False] * _PLACE_REPEATS, True):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return move_file()
        except FileNotFoundError:
            if is_last or folder.exists():
                raise
    raise AssertionError("unreachable: the last attempt returns a result or raises its error")


def _remove_blobs_and_empty_folders(
    blob_paths: Collection[Path], block_folders: Collection[Path], top_folder: Path
) -> None:
    """Delete the files and blocks of blobs, and then the folders below ``top_folder`` that have become empty."""
    for path in blob_paths:
        path.unlink(missing_ok=True)
    if (top_folder / _BLOCKS).exists():
        for blocks in block_folders:
            shutil.rmtree(blocks, ignore_errors=True)
    for folder in {path.parent for path in blob_paths}:
        _remove_empty_folders(folder, top_folder)


def _remove_empty_folders(folder: Path, top_folder: Path) -> None:
    with contextlib.suppress(OSError):  # it has files, or another process has removed it
        while folder != top_folder:
            folder.rmdir()
            folder = folder.parent


def _delete_abandoned_drafts(draft_folder: Path, at: datetime) -> None:
    """Delete unfinished files that earlier processes left.

    Files that changed within the last hour stay, because a process may still be writing them.
    """
    before = at.timestamp() - _DRAFT_SECONDS
    for draft in draft_folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if draft.stat().st_mtime < before:
                draft.unlink()


def _build_etag(file_status: os.stat_result) -> str:
    # The number of the file would change with a copy of the folder, for example from a backup.
    return f"{file_status.st_mtime_ns:x}-{file_status.st_size:x}"


def _read_byte_range(path: Path, start: int, size: int, required_etag: str | None) -> bytes:
    with path.open("rb") as file:
        if required_etag is not None and required_etag != _build_etag(os.fstat(file.fileno())):
            raise BlobReplacedError
        file.seek(start)
        return file.read(size)
