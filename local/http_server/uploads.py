"""Uploads of files through signed links to the embedded blob stores; the requests are those of Azure Blob Storage.

A client uploads a file in one request (Put Blob), or in blocks (Put Block), which it then joins (Put Block List). It
can repeat each of these requests after an interruption. Get Block List returns the blocks that are already stored.
"""

import asyncio
import base64
import binascii
import contextlib
import errno
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from local.http_server.body_memory import BodyMemory
from shared.backends.embedded import durable_files
from shared.backends.embedded.blobs import DRAFTS, build_blob_path, build_block_folder
from shared.backends.embedded.file_links import FileLink
from shared.cold_data.scratch import count_free_bytes
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.fair_use.fair_scheduler import FairScheduler
from shared.runtime import SYSTEM_RUNTIME, Runtime, run_in_turn
from shared.timestamps import now

MAX_BYTES: Final = 5 * 1024**3
MAX_BLOCKS: Final = 50_000
MAX_LIST_BYTES: Final = 8 * 1024**2
"""Maximum size in bytes of a block list: :data:`MAX_BLOCKS` blocks with ids of the maximum length."""
MAX_LISTS_BYTES: Final = 4 * MAX_LIST_BYTES
"""Maximum number of counted bytes of all block lists in memory; a parsed list needs about three times as much."""
_MAX_ID_BYTES: Final = 64
_WRITE_BYTES: Final = 1024 * 1024
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_ABANDONED_SECONDS: Final = 48 * 3600
_THREADS: Final = 6
"""Number of worker threads for the files of uploads; the uploads of one principal get half of them."""
_COMMITTED_PREFIX: Final = "committed."
"""Start of the file name of a list of joined blocks; the names of blocks are hexadecimal digits."""
_LIST_START = re.compile(r"\s*+(?:<\?xml[^<>?]*+\?>\s*+)?<BlockList\s*+>")
_LIST_ENTRY = re.compile(r"\s*+<(\w++)>([A-Za-z0-9+/=]++)</\1>")
_LIST_END = re.compile(r"\s*+</BlockList>\s*+")

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type UploadCheck = Callable[[str], Awaitable[str]]
"""Function that returns the principal who may upload the blob with this name.

It raises an error if the blob cannot be uploaded any more.
"""
type UploadReply = tuple[int, bytes]
"""HTTP status and XML document of a reply to an upload request."""


class _Block(NamedTuple):
    """Block of an upload: its file name, its size in bytes, and the inode and modification time of its file."""

    name: str
    size: int
    version: str


class _ListedBlock(NamedTuple):
    """Entry of a block list: the file name of a block, and whether the block may already be joined."""

    name: str
    may_be_committed: bool


class _BlockContent(NamedTuple):
    """Content of a block: the file that contains it, and its position in this file in bytes."""

    block: _Block
    file: Path
    offset: int


class UploadInterruptedError(Exception):
    """Exception raised if the client disconnects before the upload is complete."""


class UploadHandler:
    """Handler of the requests to signed upload links.

    Args:
        folder: folder with one subfolder for each container of files.
        check_upload: checks that a blob can still be uploaded, and returns the principal who may do it.
        runtime: opens the pool of worker threads.
    """

    def __init__(self, folder: Path, check_upload: UploadCheck, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._folder = folder
        self._check_upload = check_upload
        # HTTP clients look up host names in the event loop's default executor, so uploads must not occupy its threads.
        self._pool = runtime.open_pool(_THREADS, "uploads")
        self._turns = FairScheduler(_THREADS, leaves_slots_free=True)
        self._join_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._list_memory = BodyMemory(MAX_LISTS_BYTES)

    async def serve(self, method: str, linked: FileLink, query: Mapping[str, str], receive: Receive) -> UploadReply:
        """Process one request to a valid upload link.

        Args:
            method: HTTP method.
            linked: content of the verified link.
            query: query parameters of the request.
            receive: ASGI function that receives the request body.

        Raises:
            WorkspaceError: INVALID for an invalid parameter or block list; NOT_FOUND ``FILE_NOT_FOUND``; TOO_LARGE
                ``UPLOAD_TOO_LARGE``; STORAGE_FULL ``STORAGE_FULL``; METHOD_NOT_ALLOWED; UNAVAILABLE
                ``OVERLOADED`` if the block lists of concurrent requests need too much memory; the errors of
                ``check_upload``, which is called before and after the body is received.
            UploadInterruptedError: the client disconnected.
        """
        threads = _PrincipalThreads(self._pool, self._turns, await self._check_upload(linked.name))
        try:
            lock = self._join_locks.setdefault((linked.container, linked.name), asyncio.Lock())
            upload = _Upload(self._folder / linked.container, linked.name, self._check_upload, lock, threads)
        except ValueError:
            raise WorkspaceError(Kind.NOT_FOUND, "FILE_NOT_FOUND", "The file no longer exists.") from None
        try:
            # A list is in memory until the request ends, because it can wait for the lock of its blob.
            with self._list_memory.open_body_byte_counter() as count_list_bytes:
                return await _serve_upload(upload, method, query, receive, count_list_bytes)
        except FileNotFoundError:
            # The files of an import are deleted when it ends, also those that a request is using.
            await self._check_upload(linked.name)
            raise
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise _build_disk_full_error() from error
            raise


class _PrincipalThreads:
    """Worker threads in which the uploads of one principal take turns with those of other principals.

    Args:
        pool: worker threads for the files of uploads.
        turns: scheduler of the principals' turns.
        principal_id: member id of the principal.
    """

    def __init__(self, pool: Executor, turns: FairScheduler, principal_id: str) -> None:
        self._pool = pool
        self._turns = turns
        self._principal_id = principal_id

    async def run[**P, T](self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Wait for a turn of the principal, call a blocking function in a worker thread, and return its result."""
        return await run_in_turn(self._turns, self._principal_id, self._pool, function, *args, **kwargs)


class _Upload:
    """Upload of one blob.

    Args:
        folder: folder of the container that will contain the blob.
        name: name of the blob.
        check_upload: checks that the blob can still be uploaded.
        join_lock: lock of this blob, so that requests that replace it, store a block or join its blocks wait for each
            other.
        threads: worker threads for the files.

    Raises:
        ValueError: the name is not valid for a blob.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        check_upload: UploadCheck,
        join_lock: asyncio.Lock,
        threads: _PrincipalThreads,
    ) -> None:
        self._folder = folder
        self._name = name
        # Called again under the lock: the import may have ended meanwhile, and its files are not deleted later.
        self._check_upload = check_upload
        self._path = build_blob_path(folder, name)
        self._blocks = build_block_folder(folder, name)
        self._join_lock = join_lock
        self._threads = threads

    async def store_whole_body(self, receive: Receive) -> None:
        """Store the request body as the blob; replace an earlier blob with the same name."""
        async with self._create_draft() as draft:
            await self._receive_body_into_draft(receive, draft, MAX_BYTES)
            async with self._join_lock:
                await self._check_upload(self._name)
                await self._threads.run(self._replace_blob_and_delete_blocks, draft)

    async def put_block(self, block_name: str, receive: Receive) -> None:
        """Store the request body as a block (part of the blob) with this file name; replace an earlier such block."""
        others = await self._threads.run(self._sum_bytes_of_other_blocks, block_name)
        async with self._create_draft() as draft:
            await self._receive_body_into_draft(receive, draft, MAX_BYTES - others)
            # After a join, all blocks are deleted, also those that arrived during it.
            async with self._join_lock:
                await self._check_upload(self._name)
                await self._threads.run(self._move_draft_to_block, draft, block_name)

    async def join_listed_blocks(self, receive: Receive, count_bytes: Callable[[int], None]) -> None:
        """Join the blocks that the request body lists, in this order, to the blob, and delete all blocks.

        Do nothing if the blob was already joined from these blocks, because a client repeats a request without a reply.

        Args:
            receive: receives the request body.
            count_bytes: counts bytes of the list; raises an error if all lists need too much memory.
        """
        listed = await self._threads.run(_parse_block_list, await _receive_block_list(receive, count_bytes))
        async with self._join_lock:
            if await self._threads.run(self._is_blob_joined_from, [block.name for block in listed]):
                # As on Azure, a list deletes the blocks that it does not name.
                await self._threads.run(self._delete_blocks)
                return
            async with self._create_draft() as draft:
                joined = await self._threads.run(self._write_joined_blocks, listed, draft)
                await self._check_upload(self._name)
                await self._threads.run(self._replace_blob_by_joined_blocks, draft, joined)

    def _is_blob_joined_from(self, block_names: Sequence[str]) -> bool:
        """Return whether the blob was joined from these blocks, and none of them was uploaded again since then."""
        committed = self._read_committed_blocks()
        if [block.name for block in committed] != list(block_names):
            return False
        # A crash possibly interrupted the deletion of joined blocks; their versions are in the list.
        versions = {block.name: block.version for block in committed}
        return all(versions.get(name, version) == version for name, _, version in self._iterate_uncommitted_blocks())

    def _write_joined_blocks(self, listed: Sequence[_ListedBlock], draft: Path) -> list[_Block]:
        """Write the joined blocks to a temporary file; return the blocks with their sizes."""
        parts = list(self._find_listed_blocks(listed))
        remaining = sum(part.block.size for part in parts)
        if remaining > MAX_BYTES:
            raise _build_too_large_error(MAX_BYTES)
        with draft.open("r+b") as target:
            for part in parts:
                # The blocks are copied; the reserve of the disk must remain free for other data.
                _require_disk_space(self._folder, remaining)
                with part.file.open("rb") as source:
                    source.seek(part.offset)
                    _copy_bytes(source, target, part.block.size)
                remaining -= part.block.size
            _flush_file(target)
        return [part.block for part in parts]

    def _find_listed_blocks(self, listed: Sequence[_ListedBlock]) -> Iterator[_BlockContent]:
        """Iterate over the contents of blocks: the uploaded ones, else those from which the blob was joined before."""
        committed: dict[str, _BlockContent] = {}
        offset = 0
        for block in self._read_committed_blocks():
            committed[block.name] = _BlockContent(block, self._path, offset)
            offset += block.size
        uncommitted = {
            block.name: _BlockContent(block, self._blocks / block.name, 0)
            for block in self._iterate_uncommitted_blocks()
        }
        for name, may_be_committed in listed:
            content = uncommitted.get(name) or (committed.get(name) if may_be_committed else None)
            if content is None:
                raise _build_invalid_list_error(f"block {_block_id_from_name(name)} was not uploaded")
            yield content

    async def format_block_list_as_xml(self) -> bytes:
        """Return the stored blocks as the XML document of Get Block List."""
        return await self._threads.run(self._format_stored_blocks)

    def _format_stored_blocks(self) -> bytes:
        if not self._blocks.exists() and not self._path.exists():
            raise WorkspaceError(Kind.NOT_FOUND, "FILE_NOT_FOUND", "No block of the file was uploaded.")
        committed = _format_blocks_as_xml(self._read_committed_blocks())
        uncommitted = _format_blocks_as_xml(sorted(self._iterate_uncommitted_blocks()))
        return (
            '<?xml version="1.0" encoding="utf-8"?><BlockList>'
            f"<CommittedBlocks>{committed}</CommittedBlocks>"
            f"<UncommittedBlocks>{uncommitted}</UncommittedBlocks></BlockList>"
        ).encode()

    def _iterate_uncommitted_blocks(self) -> Iterator[_Block]:
        """Iterate over the stored blocks that are not joined yet."""
        for path in self._blocks.glob("*"):
            # Another request may join and delete the blocks at the same time.
            with contextlib.suppress(FileNotFoundError):
                if not path.name.startswith(_COMMITTED_PREFIX):
                    stat = path.stat()
                    yield _Block(path.name, stat.st_size, f"{stat.st_ino}-{stat.st_mtime_ns}")

    def _delete_blocks(self) -> None:
        """Delete the files of all blocks and the lists of earlier blobs, but not the list of the joined blocks."""
        committed_list = self._build_list_path(self._path)
        for path in self._blocks.glob("*"):
            if path != committed_list:
                path.unlink(missing_ok=True)

    def _read_committed_blocks(self) -> list[_Block]:
        """Return the blocks from which the blob was joined; empty if it was uploaded as a whole, or is missing."""
        try:
            lines = self._build_list_path(self._path).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [_Block(name, int(size), version) for name, size, version in map(str.split, lines)]

    def _build_list_path(self, file: Path) -> Path:
        """Return the path of the list of the blocks from which a file was joined.

        The inode binds a list to one content of the blob. A draft keeps its inode when it replaces the blob.
        """
        return self._blocks / f"{_COMMITTED_PREFIX}{file.stat().st_ino}"

    async def _receive_body_into_draft(self, receive: Receive, draft: Path, max_bytes: int) -> None:
        """Write a request body to a temporary file."""
        with draft.open("r+b") as file:
            await self._write_body_to_file(receive, file, max_bytes)

    async def _write_body_to_file(self, receive: Receive, file: IO[bytes], max_bytes: int) -> None:
        """Write a request body to a file in worker threads; collect small parts of the body into one write."""
        size, waiting = 0, bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise UploadInterruptedError
            waiting += message.get("body", b"")
            more = message.get("more_body", False)
            if size + len(waiting) > max_bytes:
                raise _build_too_large_error(max_bytes)
            if waiting and (len(waiting) >= _WRITE_BYTES or not more):
                await self._threads.run(_write_data_if_disk_has_space, file, bytes(waiting), self._folder)
                size += len(waiting)
                waiting.clear()
        await self._threads.run(_flush_file, file)

    @asynccontextmanager
    async def _create_draft(self) -> AsyncIterator[Path]:
        """Context manager: create a temporary file; delete it at the end of the block unless it was moved."""
        path = self._folder / DRAFTS / "upload"
        draft = await self._threads.run(durable_files.write_temporary_file, path, b"")
        try:
            yield draft
        finally:
            # The deletion of a large file would block the event loop.
            await self._threads.run(draft.unlink, missing_ok=True)

    def _replace_blob_and_delete_blocks(self, draft: Path) -> None:
        # A crash possibly left the list of a deleted file with the same inode.
        self._build_list_path(draft).unlink(missing_ok=True)
        self._replace_blob_by_draft(draft)
        shutil.rmtree(self._blocks, ignore_errors=True)

    def _replace_blob_by_joined_blocks(self, draft: Path, joined: Sequence[_Block]) -> None:
        # The list is stored before the blob is replaced, so that after a crash the request can be repeated.
        lines = "".join(f"{block.name} {block.size} {block.version}\n" for block in joined)
        committed = durable_files.write_temporary_file(draft, lines.encode())
        try:
            committed_list = committed.replace(self._build_list_path(draft))
        finally:
            committed.unlink(missing_ok=True)
        durable_files.fsync_folders_up_to(committed_list, self._folder)
        self._replace_blob_by_draft(draft)
        self._delete_blocks()

    def _replace_blob_by_draft(self, draft: Path) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(self._path)
        durable_files.fsync_folders_up_to(self._path, self._folder)

    def _move_draft_to_block(self, draft: Path, block_name: str) -> None:
        _remove_abandoned_blocks(self._blocks.parent)
        try:
            self._create_block_folder_and_move_draft(draft, block_name)
        except FileNotFoundError:
            # A request for another blob deleted the folder at the same time, because its blocks were abandoned.
            self._create_block_folder_and_move_draft(draft, block_name)

    def _create_block_folder_and_move_draft(self, draft: Path, block_name: str) -> None:
        self._blocks.mkdir(parents=True, exist_ok=True)
        draft.replace(self._blocks / block_name)

    def _sum_bytes_of_other_blocks(self, replaced_block_name: str) -> int:
        """Return the total size in bytes of the stored blocks, without the block that is being replaced."""
        others = [block for block in self._iterate_uncommitted_blocks() if block.name != replaced_block_name]
        if len(others) >= MAX_BLOCKS:
            raise build_invalid_field_error(
                "blockid", f"exceeds the limit of blocks; a file has at most {MAX_BLOCKS} blocks"
            )
        return sum(block.size for block in others)


async def _serve_upload(
    upload: _Upload,
    method: str,
    query: Mapping[str, str],
    receive: Receive,
    count_list_bytes: Callable[[int], None],
) -> UploadReply:
    match method, query.get("comp", ""):
        case "PUT", "":
            await upload.store_whole_body(receive)
        case "PUT", "block":
            await upload.put_block(_block_name_from_id(query.get("blockid", "")), receive)
        case "PUT", "blocklist":
            await upload.join_listed_blocks(receive, count_list_bytes)
        case "GET", "blocklist":
            return 200, await upload.format_block_list_as_xml()
        case "PUT", other:
            raise build_invalid_field_error("comp", f"must be block, blocklist or absent, not {other[:32]!r}")
        case _, part:
            detail = "Upload links support PUT, and GET with comp=blocklist."
            allow = ["GET", "PUT"] if part == "blocklist" else ["PUT"]
            raise WorkspaceError(Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail, allow=allow)
    return 201, b""


def _write_data_if_disk_has_space(file: IO[bytes], data: bytes, folder: Path) -> None:
    _require_disk_space(folder, len(data))
    file.write(data)


def _require_disk_space(folder: Path, byte_count: int) -> None:
    try:
        free = count_free_bytes(folder)
    except WorkspaceError as error:
        raise _build_disk_full_error() from error
    if free < byte_count:
        raise _build_disk_full_error()


def _copy_bytes(source: IO[bytes], target: IO[bytes], byte_count: int) -> None:
    while byte_count:
        data = source.read(min(byte_count, _WRITE_BYTES))
        if not data:
            raise OSError("a stored block was truncated while it was being joined")
        target.write(data)
        byte_count -= len(data)


def _flush_file(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


async def _receive_block_list(receive: Receive, count_bytes: Callable[[int], None]) -> bytes:
    parts = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise UploadInterruptedError
        part = message.get("body", b"")
        if len(parts) + len(part) > MAX_LIST_BYTES:
            raise _build_too_large_error(MAX_LIST_BYTES)
        count_bytes(len(part))
        parts += part
        more = message.get("more_body", False)
    return bytes(parts)


def _parse_block_list(block_list_xml: bytes) -> list[_ListedBlock]:
    """Parse the body of Put Block List; return the blocks in their order in the blob."""
    text = block_list_xml.decode("utf-8-sig", "replace")
    start = _LIST_START.match(text)
    if start is None:
        raise _build_invalid_list_error("must be an XML document <BlockList> with elements <Latest>")
    listed, end = list[_ListedBlock](), start.end()
    # One expression for the whole text would hold the interpreter lock, and so stop the event loop, for its whole time.
    while entry := _LIST_ENTRY.match(text, end):
        if len(listed) == MAX_BLOCKS:
            raise _build_invalid_list_error(f"must name 1 to {MAX_BLOCKS} blocks")
        if entry[1] not in {"Latest", "Uncommitted"}:
            raise _build_invalid_list_error("must name blocks by elements <Latest> or <Uncommitted>")
        listed.append(_ListedBlock(_block_name_from_id(entry[2]), entry[1] == "Latest"))
        end = entry.end()
    if _LIST_END.fullmatch(text, end) is None:
        raise _build_invalid_list_error("must be an XML document <BlockList> with elements <Latest>")
    if not listed:
        raise _build_invalid_list_error(f"must name 1 to {MAX_BLOCKS} blocks")
    return listed


def _block_name_from_id(block_id: str) -> str:
    """Return the file name of a block: the decoded block id as hexadecimal digits."""
    try:
        # A plus sign in a query string means a space.
        identifier = base64.b64decode(block_id.replace(" ", "+"), validate=True)
    except binascii.Error:
        identifier = b""
    if not 1 <= len(identifier) <= _MAX_ID_BYTES:
        raise build_invalid_field_error("blockid", f"must be Base64 of 1 to {_MAX_ID_BYTES} bytes")
    return identifier.hex()


def _block_id_from_name(block_name: str) -> str:
    """Convert the file name of a block to its block id."""
    return base64.b64encode(bytes.fromhex(block_name)).decode()


def _format_blocks_as_xml(blocks: Iterable[_Block]) -> str:
    return "".join(
        f"<Block><Name>{_block_id_from_name(block.name)}</Name><Size>{block.size}</Size></Block>" for block in blocks
    )


def _remove_abandoned_blocks(folder: Path) -> None:
    """Delete the blocks of uploads that did not change for 48 hours; their links have expired."""
    before = now().timestamp() - _ABANDONED_SECONDS
    for blocks in folder.glob("*"):
        # Another request, or the end of an import, may delete the folder at the same time.
        with contextlib.suppress(FileNotFoundError):
            if blocks.stat().st_mtime < before:
                shutil.rmtree(blocks, ignore_errors=True)


def _build_invalid_list_error(message: str) -> WorkspaceError:
    return build_invalid_field_error("body", message, code="INVALID_BLOCK_LIST")


def _build_too_large_error(max_bytes: int) -> WorkspaceError:
    detail = f"A file may have at most {MAX_BYTES} bytes, and the body of this request at most {max_bytes}."
    return WorkspaceError(Kind.TOO_LARGE, "UPLOAD_TOO_LARGE", detail, maxBytes=max_bytes)


def _build_disk_full_error() -> WorkspaceError:
    detail = "The disk of the service has no space for this upload; free space, then continue the upload."
    return WorkspaceError(Kind.STORAGE_FULL, "STORAGE_FULL", detail)
