"""Tests of uploads over HTTP: whole files, repeated blocks, and errors."""

import asyncio
import base64
import errno
import os
import shutil
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import httpx
import pytest

from local.http_server import uploads
from local.http_server.body_memory import FREE_BYTES
from shared.backends.embedded.blobs import FolderBlobStore, build_block_folder
from shared.backends.embedded.file_links import FileLink, FileLinks, LinkPermission
from shared.cold_data.ports import UPLOAD_HEADERS
from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime
from tests.busy_executor import BusyExecutor
from tests.unit.local.serving import accept_upload, serve_files


@pytest.fixture
async def links(tmp_path: Path) -> AsyncIterator[FileLinks]:
    """Return the object that creates upload links of a running server."""
    async with serve_files(tmp_path) as made:
        yield made


@pytest.fixture
def blob_store(tmp_path: Path, links: FileLinks) -> FolderBlobStore:
    """Return the blob store that receives the uploads."""
    return FolderBlobStore(tmp_path / "blobs" / "downloads", links)


@pytest.fixture
async def url(blob_store: FolderBlobStore) -> str:
    """Return a link for the upload of a file."""
    return await blob_store.create_upload_link("job/upload", datetime.now(UTC) + timedelta(minutes=5))


@pytest.fixture
async def anonymous_client() -> AsyncIterator[httpx.AsyncClient]:
    """Return an HTTP client without a token."""
    async with httpx.AsyncClient(headers=UPLOAD_HEADERS) as client:
        yield client


class ObservedLock(asyncio.Lock):
    """Lock of a blob; a test can wait until a request waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._is_awaited = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        """Acquire the lock, and record whether the caller has to wait."""
        if self.locked():
            self._is_awaited.set()
        return await super().acquire()

    async def wait_for_request(self, request: asyncio.Task[uploads.UploadReply]) -> None:
        """Wait until the request waits for the lock, or ends without it."""
        waiting = asyncio.create_task(self._is_awaited.wait())
        await asyncio.wait({request, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()


async def serve_part(handler: uploads.UploadHandler, part: str, body: bytes, **query: str) -> uploads.UploadReply:
    """Process a request that uploads a block, or a list of blocks, of the blob ``job/upload``."""

    async def receive() -> uploads.Message:
        return {"type": "http.request", "body": body}

    linked = FileLink("downloads", "job/upload", "", datetime.now(UTC), LinkPermission.WRITE)
    return await handler.serve("PUT", linked, {"comp": part, **query}, receive)


def build_block_url(url: str, name: bytes) -> str:
    """Return the URL for the upload of a block."""
    return str(httpx.URL(url).copy_merge_params({"comp": "block", "blockid": base64.b64encode(name).decode()}))


async def test_a_block_is_stored_while_other_blocks_are_deleted(
    anonymous_client: httpx.AsyncClient, url: str, tmp_path: Path
) -> None:
    """A block is stored, even if the folder of another upload's blocks disappears meanwhile."""
    folder = tmp_path / "blobs" / "downloads" / ".blocks"
    folder.mkdir(parents=True)
    # The link is listed like a folder that is deleted before its age is read.
    (folder / "deleted").symlink_to(tmp_path / "missing")
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201


async def test_an_incomplete_upload_stores_no_file(blob_store: FolderBlobStore, url: str, tmp_path: Path) -> None:
    """If an upload is incomplete, neither a file nor a temporary file is stored."""
    target = httpx.URL(url)
    reader, writer = await asyncio.open_connection(target.host, target.port)
    head = (
        f"PUT {target.raw_path.decode()} HTTP/1.1\r\nHost: {target.netloc.decode()}\r\nContent-Length: 100\r\n\r\nhalf"
    )
    writer.write(head.encode())
    await writer.drain()
    writer.close()
    await reader.read()
    async with httpx.AsyncClient() as client:
        assert (await client.put(url, content=b"whole")).status_code == 201
    assert await blob_store.read("job/upload") == b"whole"
    assert list((tmp_path / "blobs" / "downloads" / ".drafts").iterdir()) == []


async def test_an_aborted_upload_is_deleted_in_a_worker_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a client disconnects during an upload, a worker thread deletes the temporary file."""
    threads: list[int] = []
    unlink = Path.unlink

    def record_thread(path: Path, *, missing_ok: bool = False) -> None:
        threads.append(threading.get_ident())
        unlink(path, missing_ok=missing_ok)

    async def raise_disconnect() -> uploads.Message:
        return {"type": "http.disconnect"}

    monkeypatch.setattr(Path, "unlink", record_thread)
    linked = FileLink("downloads", "job/upload", "", datetime.now(UTC), LinkPermission.WRITE)
    with pytest.raises(uploads.UploadInterruptedError):
        await uploads.UploadHandler(tmp_path, accept_upload).serve("PUT", linked, {}, raise_disconnect)
    assert list((tmp_path / "downloads" / ".drafts").iterdir()) == []
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_file_over_the_limit_is_rejected(
    monkeypatch: pytest.MonkeyPatch, anonymous_client: httpx.AsyncClient, url: str
) -> None:
    """A file over the size limit is rejected, whole or in blocks; a full disk has another error code."""
    monkeypatch.setattr(uploads, "MAX_BYTES", 10)
    assert (await anonymous_client.put(url, content=b"x" * 11)).json()["code"] == "UPLOAD_TOO_LARGE"
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x" * 6)).status_code == 201
    assert (await anonymous_client.put(build_block_url(url, b"2"), content=b"x" * 6)).status_code == 413
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x" * 10)).status_code == 201
    monkeypatch.setattr(uploads, "count_free_bytes", lambda _: 1)
    reply = await anonymous_client.put(url, content=b"xx")
    assert (reply.status_code, reply.json()["code"]) == (507, "STORAGE_FULL")


async def test_uploads_are_refused_when_their_import_has_ended(tmp_path: Path) -> None:
    """A file, a block, a list of blocks, and a request for the list are refused, and nothing is stored."""

    async def refuse_upload(name: str) -> str:
        raise WorkspaceError(Kind.CONFLICT, "IMPORT_ENDED", name)

    async with serve_files(tmp_path, refuse_upload) as links, httpx.AsyncClient() as client:
        expires_at = datetime.now(UTC) + timedelta(minutes=5)
        url = links.create_signed_url(FileLink("downloads", "job/upload", "", expires_at, LinkPermission.WRITE))
        listed = f"{url}&comp=blocklist"
        for method, address in (("PUT", url), ("PUT", build_block_url(url, b"1")), ("PUT", listed), ("GET", listed)):
            reply = await client.request(method, address, content=b"x" if method == "PUT" else None)
            problem = reply.json()
            assert (reply.status_code, problem["code"], problem["detail"]) == (409, "IMPORT_ENDED", "job/upload")
    assert not (tmp_path / "blobs").exists()


@pytest.mark.parametrize("query", [{}, {"comp": "block", "blockid": "MQ=="}])
async def test_a_deleted_temporary_file_does_not_hide_the_cause_of_a_failure(
    tmp_path: Path, query: dict[str, str]
) -> None:
    """If the temporary file of an upload is deleted meanwhile, the upload still fails with the original error."""

    async def delete_drafts_and_disconnect() -> uploads.Message:
        shutil.rmtree(tmp_path / "downloads")
        return {"type": "http.disconnect"}

    linked = FileLink("downloads", "job/upload", "", datetime.now(UTC), LinkPermission.WRITE)
    with pytest.raises(uploads.UploadInterruptedError):
        await uploads.UploadHandler(tmp_path, accept_upload).serve("PUT", linked, query, delete_drafts_and_disconnect)


async def test_a_cancelled_request_leaves_no_joined_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a request is cancelled while a thread joins blocks, the joined file is deleted; the blocks stay."""
    block = build_block_folder(tmp_path / "downloads", "job/upload") / b"0".hex()
    block.parent.mkdir(parents=True)
    block.write_bytes(b"0")
    is_joining, is_cancelled = threading.Event(), threading.Event()

    def wait_for_cancellation(*_: object) -> None:
        is_joining.set()
        is_cancelled.wait()

    monkeypatch.setattr(uploads, "_copy_bytes", wait_for_cancellation)

    async def send_block_list() -> uploads.Message:
        return {"type": "http.request", "body": b"<BlockList><Latest>MA==</Latest></BlockList>"}

    linked = FileLink("downloads", "job/upload", "", datetime.now(UTC), LinkPermission.WRITE)
    with ThreadPoolExecutor() as threads:
        handler = uploads.UploadHandler(tmp_path, accept_upload, runtime=Runtime(open_pool=lambda *_: threads))
        serving = handler.serve("PUT", linked, {"comp": "blocklist"}, send_block_list)
        task = asyncio.create_task(serving)
        joining = asyncio.create_task(asyncio.to_thread(is_joining.wait))
        try:
            # If the request fails before it joins blocks, the test must fail, not wait.
            await asyncio.wait({joining, task}, return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            is_joining.set()
            is_cancelled.set()
            await joining
    assert [path.name for path in (tmp_path / "downloads").rglob("*") if not path.is_dir()] == [block.name]


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", {"comp": "blocklist"}),
        ("PUT", {"comp": "blocklist"}),
        ("PUT", {"comp": "block", "blockid": "MQ=="}),
        ("PUT", {}),
    ],
)
async def test_uploads_of_one_principal_leave_threads_for_others(
    tmp_path: Path, method: str, query: dict[str, str]
) -> None:
    """While slow uploads of a principal occupy half of the threads, its other uploads wait, those of others do not."""
    threads = BusyExecutor()
    handler = uploads.UploadHandler(tmp_path, accept_upload, runtime=Runtime(open_pool=lambda *_: threads))

    async def send_invalid_list() -> uploads.Message:
        return {"type": "http.request", "body": b"<"}

    async def start_upload(principal: str) -> asyncio.Task[object]:
        linked = FileLink("downloads", f"{principal}/upload", "", datetime.now(UTC), LinkPermission.WRITE)
        task = asyncio.create_task(handler.serve(method, linked, query, send_invalid_list))
        await asyncio.sleep(0)
        return task

    tasks = [await start_upload("ann") for _ in range(10)]
    assert len(threads.jobs) == 3
    tasks.append(await start_upload("bob"))
    assert len(threads.jobs) == 4
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("query", ["", "&comp=block&blockid=MQ==", "&comp=blocklist"])
async def test_an_import_that_ends_during_an_upload_gets_no_file(tmp_path: Path, query: str) -> None:
    """If an import ends while its file is received or joined, neither a file nor a temporary file is stored."""
    checks: list[bool] = []

    async def refuse_second_check(_: str) -> str:
        checks.append(len(checks) % 2 == 0)
        if not checks[-1]:
            raise WorkspaceError(Kind.CONFLICT, "IMPORT_ENDED", "The import has ended.")
        return "ann"

    block = build_block_folder(tmp_path / "blobs" / "downloads", "job/upload") / b"0".hex()
    block.parent.mkdir(parents=True)
    block.write_bytes(b"0")
    async with serve_files(tmp_path, refuse_second_check) as links, httpx.AsyncClient() as client:
        expires_at = datetime.now(UTC) + timedelta(minutes=5)
        url = links.create_signed_url(FileLink("downloads", "job/upload", "", expires_at, LinkPermission.WRITE))
        content = b"<BlockList><Latest>MA==</Latest></BlockList>"
        assert (await client.put(f"{url}{query}", content=content)).json()["code"] == "IMPORT_ENDED"
    assert checks == [True, False]
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == [block]


@pytest.mark.parametrize("query", [{}, {"comp": "block", "blockid": "MQ=="}])
async def test_an_import_that_ends_while_an_upload_waits_gets_no_file(tmp_path: Path, query: dict[str, str]) -> None:
    """If an import ends while a received file or block waits for another request of its blob, it is not stored."""
    has_ended = False

    async def check_upload(_: str) -> str:
        if has_ended:
            raise WorkspaceError(Kind.CONFLICT, "IMPORT_ENDED", "The import has ended.")
        return "ann"

    async def receive() -> uploads.Message:
        return {"type": "http.request", "body": b"x"}

    handler = uploads.UploadHandler(tmp_path, check_upload)
    linked = FileLink("downloads", "job/upload", "", datetime.now(UTC), LinkPermission.WRITE)
    lock = handler._join_locks["downloads", "job/upload"] = ObservedLock()
    async with lock:
        request = asyncio.create_task(handler.serve("PUT", linked, query, receive))
        await lock.wait_for_request(request)
        has_ended = True
    with pytest.raises(WorkspaceError, match="The import has ended"):
        await request
    assert [path for path in (tmp_path / "downloads").rglob("*") if path.is_file()] == []


async def test_files_that_are_deleted_during_an_upload_are_explained_by_the_end_of_the_import(tmp_path: Path) -> None:
    """If the end of an import deletes files that a request is using, the error says that the import has ended."""
    checks: list[str] = []

    async def end_import(name: str) -> str:
        checks.append(name)
        if len(checks) == 2:
            shutil.rmtree(tmp_path / "blobs" / "downloads")
        if len(checks) == 3:
            raise WorkspaceError(Kind.CONFLICT, "IMPORT_ENDED", "The import has ended.")
        return "ann"

    async with serve_files(tmp_path, end_import) as links, httpx.AsyncClient() as client:
        expires_at = datetime.now(UTC) + timedelta(minutes=5)
        url = links.create_signed_url(FileLink("downloads", "job/upload", "", expires_at, LinkPermission.WRITE))
        assert (await client.put(url, content=b"x")).json()["code"] == "IMPORT_ENDED"
    assert len(checks) == 3


async def test_simultaneous_requests_to_join_blocks_succeed(anonymous_client: httpx.AsyncClient, url: str) -> None:
    """If a client repeats the list of blocks while the first request still joins them, both requests succeed."""
    for name in (b"1", b"2"):
        assert (await anonymous_client.put(build_block_url(url, name), content=b"x" * 100_000)).status_code == 201
    content = b"<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>"
    requests = (anonymous_client.put(f"{url}&comp=blocklist", content=content) for _ in range(3))
    assert [reply.status_code for reply in await asyncio.gather(*requests)] == [201] * 3


async def test_block_lists_of_concurrent_requests_have_a_common_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists that wait for a join of the same blob count towards a limit; a list above it is rejected until they end."""
    monkeypatch.setattr(uploads, "MAX_LISTS_BYTES", 1_000)
    handler = uploads.UploadHandler(tmp_path, accept_upload)
    lock = handler._join_locks["downloads", "job/upload"] = ObservedLock()
    await serve_part(handler, "block", b"x", blockid="MQ==")
    content = b"<BlockList><Latest>MQ==</Latest></BlockList>".ljust(FREE_BYTES + 600)
    async with lock:
        waiting = asyncio.create_task(serve_part(handler, "blocklist", content))
        await lock.wait_for_request(waiting)
        with pytest.raises(WorkspaceError) as caught:
            # Without a limit, this request would wait for the lock, too.
            async with asyncio.timeout(30):
                await serve_part(handler, "blocklist", content)
        assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "OVERLOADED")
    assert await waiting == (201, b"")
    assert await serve_part(handler, "blocklist", content) == (201, b"")


async def test_a_block_that_arrives_while_others_are_joined_is_stored(tmp_path: Path) -> None:
    """A block that arrives while a request joins others is stored after the others were deleted."""
    tasks: list[asyncio.Task[uploads.UploadReply]] = []
    is_old_block_stored = False

    async def send_new_block_while_joining(_: str) -> str:
        if is_old_block_stored and lock.locked() and not tasks:
            tasks.append(asyncio.create_task(serve_part(handler, "block", b"new", blockid="Mg==")))
            await lock.wait_for_request(tasks[0])
        return "ann"

    handler = uploads.UploadHandler(tmp_path, send_new_block_while_joining)
    lock = handler._join_locks["downloads", "job/upload"] = ObservedLock()
    await serve_part(handler, "block", b"old", blockid="MQ==")
    is_old_block_stored = True
    await serve_part(handler, "blocklist", b"<BlockList><Latest>MQ==</Latest></BlockList>")
    assert await tasks[0] == (201, b"")
    blocks = build_block_folder(tmp_path / "downloads", "job/upload")
    assert {path.name.partition(".")[0] for path in blocks.iterdir()} == {"committed", b"2".hex()}


async def test_blocks_that_are_uploaded_again_are_joined_again(
    anonymous_client: httpx.AsyncClient, blob_store: FolderBlobStore, url: str
) -> None:
    """If a block of a joined file is uploaded again, the same list joins it with the earlier content of the others.

    A delayed duplicate of a block therefore does not prevent that a client repeats the list after a lost reply.
    """
    listed = f"{url}&comp=blocklist"
    content = b"<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>"
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"old")).status_code == 201
    reply = await anonymous_client.put(listed, content=content)
    assert (reply.status_code, reply.json()["errors"][0]["message"]) == (400, "block Mg== was not uploaded")
    assert (await anonymous_client.put(build_block_url(url, b"2"), content=b".")).status_code == 201
    assert (await anonymous_client.put(listed, content=content)).status_code == 201
    for block, expected in ((b"1", b"block 1."), (b"2", b"block 1block 2"), (b"2", b"block 1block 2")):
        assert (await anonymous_client.put(build_block_url(url, block), content=b"block " + block)).status_code == 201
        assert (await anonymous_client.put(listed, content=content)).status_code == 201
        assert await blob_store.read("job/upload") == expected


@pytest.mark.parametrize("left", [b"1", b"2"])
async def test_a_list_can_be_repeated_after_an_interrupted_deletion_of_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes
) -> None:
    """If a crash interrupted the deletion of joined blocks, the repeated list deletes the others and copies nothing."""

    def crash_at_a_block(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == left.hex():
            raise RuntimeError("crash")
        unlink(path, missing_ok=missing_ok)

    def reject_copies(*_: object) -> None:
        raise AssertionError("the blocks are joined already")

    handler = uploads.UploadHandler(tmp_path, accept_upload)
    listed, unlink = b"<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>", Path.unlink
    await serve_part(handler, "block", b"1", blockid="MQ==")
    await serve_part(handler, "block", b"2", blockid="Mg==")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", crash_at_a_block)
        with pytest.raises(RuntimeError, match="crash"):
            await serve_part(handler, "blocklist", listed)
    monkeypatch.setattr(uploads, "_copy_bytes", reject_copies)
    assert await serve_part(handler, "blocklist", listed) == (201, b"")
    assert (tmp_path / "downloads" / "job" / "upload").read_bytes() == b"12"
    assert len(list(build_block_folder(tmp_path / "downloads", "job/upload").iterdir())) == 1


@pytest.mark.parametrize("is_blob_replaced", [False, True])
async def test_a_list_of_joined_blocks_can_be_repeated_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_blob_replaced: bool
) -> None:
    """If a crash interrupts a list with blocks that exist only in the blob, the repeated list succeeds."""

    def crash_at_the_blob(path: Path, target: Path) -> Path:
        if target != blob:
            return replace(path, target)
        if is_blob_replaced:
            replace(path, target)
        raise RuntimeError("crash")

    handler = uploads.UploadHandler(tmp_path, accept_upload)
    blob, replace = tmp_path / "downloads" / "job" / "upload", Path.replace
    listed = b"<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>"
    for block_id in ("MQ==", "Mg=="):
        await serve_part(handler, "block", b"old", blockid=block_id)
    await serve_part(handler, "blocklist", listed)
    await serve_part(handler, "block", b"new", blockid="MQ==")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", crash_at_the_blob)
        with pytest.raises(RuntimeError, match="crash"):
            await serve_part(handler, "blocklist", listed)
    assert await serve_part(handler, "blocklist", listed) == (201, b"")
    assert blob.read_bytes() == b"newold"
    assert len(list(build_block_folder(tmp_path / "downloads", "job/upload").iterdir())) == 1


async def test_blocks_that_are_deleted_meanwhile_do_not_count(
    anonymous_client: httpx.AsyncClient, url: str, tmp_path: Path
) -> None:
    """A block is stored and blocks are listed, even if another request deletes other blocks at the same time."""
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201
    blocks = build_block_folder(tmp_path / "blobs" / "downloads", "job/upload")
    # The link is listed like a block that is deleted before its size is read.
    (blocks / b"3".hex()).symlink_to(tmp_path / "missing")
    assert (await anonymous_client.put(build_block_url(url, b"2"), content=b"x")).status_code == 201
    reply = await anonymous_client.get(f"{url}&comp=blocklist")
    assert (reply.status_code, reply.text.count("<Block>")) == (200, 2)


async def test_a_block_is_stored_while_its_folder_is_deleted_as_abandoned(
    anonymous_client: httpx.AsyncClient, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block is stored, even if a request for another blob deletes its folder as abandoned at this moment."""
    blocks = build_block_folder(tmp_path / "blobs" / "downloads", "job/upload")
    replace, deletions = Path.replace, iter([blocks])

    def delete_folder_once(path: Path, target: Path) -> Path:
        for folder in deletions:
            folder.rmdir()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", delete_folder_once)
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201
    assert (blocks / b"1".hex()).read_bytes() == b"x"


async def test_an_uncommitted_block_of_a_list_is_never_a_joined_one(
    anonymous_client: httpx.AsyncClient, blob_store: FolderBlobStore, url: str
) -> None:
    """A list finds a joined block by ``Latest``, but not by ``Uncommitted``."""
    listed = f"{url}&comp=blocklist"
    for block in (b"1", b"2"):
        content = b"<BlockList><Uncommitted>%b</Uncommitted></BlockList>" % base64.b64encode(block)
        assert (await anonymous_client.put(build_block_url(url, block), content=block)).status_code == 201
        if block == b"2":
            both = content.replace(b"</BlockList>", b"<Uncommitted>MQ==</Uncommitted></BlockList>")
            reply = await anonymous_client.put(listed, content=both)
            assert (reply.status_code, reply.json()["code"]) == (400, "INVALID_BLOCK_LIST")
            content = content.replace(b"</BlockList>", b"<Latest>MQ==</Latest></BlockList>")
        assert (await anonymous_client.put(listed, content=content)).status_code == 201
    assert await blob_store.read("job/upload") == b"21"


async def test_a_whole_file_replaces_the_list_of_joined_blocks(anonymous_client: httpx.AsyncClient, url: str) -> None:
    """After a joined file is replaced by a whole file, its blocks cannot be joined or listed any more."""
    listed = f"{url}&comp=blocklist"
    content = b"<BlockList><Latest>MQ==</Latest></BlockList>"
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201
    assert (await anonymous_client.put(listed, content=content)).status_code == 201
    assert (await anonymous_client.put(url, content=b"whole")).status_code == 201
    assert "<Block>" not in (await anonymous_client.get(listed)).text
    assert (await anonymous_client.put(listed, content=content)).json()["code"] == "INVALID_BLOCK_LIST"


async def test_joining_blocks_leaves_the_reserve_of_the_disk_free(
    monkeypatch: pytest.MonkeyPatch, anonymous_client: httpx.AsyncClient, blob_store: FolderBlobStore, url: str
) -> None:
    """If the disk has no space for the joined file, the reply is 507; the blocks stay, and can be joined later."""
    for name in (b"1", b"2"):
        assert (await anonymous_client.put(build_block_url(url, name), content=b"xx")).status_code == 201
    listed = f"{url}&comp=blocklist"
    content = b"<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>"
    with monkeypatch.context() as patch:
        patch.setattr(uploads, "count_free_bytes", lambda _: 3)
        reply = await anonymous_client.put(listed, content=content)
        assert (reply.status_code, reply.json()["code"]) == (507, "STORAGE_FULL")
    assert (await anonymous_client.put(listed, content=content)).status_code == 201
    assert await blob_store.read("job/upload") == b"xxxx"


@pytest.mark.parametrize("query", ["", "&comp=block&blockid=MQ==", "&comp=blocklist"])
async def test_a_disk_that_becomes_full_during_an_upload_is_reported(
    monkeypatch: pytest.MonkeyPatch, anonymous_client: httpx.AsyncClient, url: str, query: str
) -> None:
    """If another process fills the disk during an upload, the reply is 507, also if only the flush fails."""
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201

    def raise_disk_full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(uploads, "_flush_file", raise_disk_full)
    content = b"<BlockList><Latest>MQ==</Latest></BlockList>"
    reply = await anonymous_client.put(f"{url}{query}", content=content)
    assert (reply.status_code, reply.json()["code"]) == (507, "STORAGE_FULL")


async def test_the_deletion_of_a_blob_deletes_its_blocks(
    anonymous_client: httpx.AsyncClient, blob_store: FolderBlobStore, url: str
) -> None:
    """The deletion of a blob deletes the blocks that are not joined, also if they are all that is uploaded."""
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201
    await blob_store.delete(["job/other"])
    assert (await anonymous_client.get(f"{url}&comp=blocklist")).status_code == 200
    await blob_store.delete(["job/upload"])
    assert (await anonymous_client.get(f"{url}&comp=blocklist")).status_code == 404
    assert (await anonymous_client.put(build_block_url(url, b"1"), content=b"x")).status_code == 201


@pytest.mark.parametrize(
    ("method", "query", "allow"),
    [
        ("GET", "", ["PUT"]),
        ("POST", "", ["PUT"]),
        ("DELETE", "&comp=block&blockid=MQ==", ["PUT"]),
        ("DELETE", "&comp=blocklist", ["GET", "PUT"]),
    ],
)
async def test_a_refused_method_names_the_methods_of_the_upload_link(
    anonymous_client: httpx.AsyncClient, url: str, method: str, query: str, allow: list[str]
) -> None:
    """The reply 405 to an upload link lists the methods that the link supports with the same query."""
    reply = await anonymous_client.request(method, f"{url}{query}")
    assert (reply.status_code, reply.json()["allow"]) == (405, allow)


async def test_wrong_upload_links_and_requests_are_rejected(
    anonymous_client: httpx.AsyncClient, links: FileLinks, blob_store: FolderBlobStore, url: str
) -> None:
    """An upload link cannot read, a read link cannot upload, and malformed upload requests are rejected."""
    await blob_store.create_if_missing("job/rig.csv", b"content")
    readable = await blob_store.create_download_link("job/rig.csv", "rig.csv", datetime.now(UTC) + timedelta(minutes=5))
    over = links.create_signed_url(
        FileLink("downloads", "job/upload", "", datetime.now(UTC) - timedelta(days=1), LinkPermission.WRITE)
    )
    listed = f"{url}&comp=blocklist"
    for method, address, body, status, code in (
        ("PUT", readable, b"x", 405, "METHOD_NOT_ALLOWED"),
        ("GET", url, b"", 405, "METHOD_NOT_ALLOWED"),
        ("GET", listed, b"", 404, "FILE_NOT_FOUND"),
        ("PUT", over, b"x", 403, "LINK_EXPIRED"),
        ("PUT", url.replace("perm=w", "perm=r"), b"x", 403, "LINK_INVALID"),
        ("PUT", readable + "&perm=w", b"x", 403, "LINK_INVALID"),
        ("PUT", f"{url}&comp=page", b"x", 400, "INVALID_REQUEST"),
        ("PUT", f"{url}&comp=block&blockid=***", b"x", 400, "INVALID_REQUEST"),
        ("PUT", f"{url}&comp=block", b"x", 400, "INVALID_REQUEST"),
        ("PUT", listed, b"<BlockList><Latest>AAAA</Latest></BlockList>", 400, "INVALID_BLOCK_LIST"),
        ("PUT", listed, b"<BlockList></BlockList>", 400, "INVALID_BLOCK_LIST"),
        ("PUT", listed, b"<BlockList><Latest>MA==</Latest>", 400, "INVALID_BLOCK_LIST"),
        ("PUT", listed, b"<BlockList>%s</BlockList>" % (b"<Latest>MA==</Latest>" * 50_001), 400, "INVALID_BLOCK_LIST"),
        ("PUT", listed, b"<!DOCTYPE x [<!ENTITY a 'b'>]><BlockList/>", 400, "INVALID_BLOCK_LIST"),
        ("PUT", listed, b"<BlockList><Committed>AAAA</Committed></BlockList>", 400, "INVALID_BLOCK_LIST"),
    ):
        reply = await anonymous_client.request(method, address, content=body)
        assert (reply.status_code, reply.json()["code"]) == (status, code), address
