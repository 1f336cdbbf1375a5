"""Tests of file downloads over HTTP: ranges, ETags and errors."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from local.http_server.application import Message
from local.http_server.files import SignedLinkHandler
from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLink, FileLinks
from shared.errors import Kind, WorkspaceError
from tests.unit.local.serving import accept_upload, serve_files

CONTENT = bytes(range(256)) * 4000


@pytest.fixture
async def links(tmp_path: Path) -> AsyncIterator[FileLinks]:
    """Return the object that creates links to files of a running server."""
    async with serve_files(tmp_path) as made:
        yield made


@pytest.fixture
async def file_link(tmp_path: Path, links: FileLinks) -> str:
    """Return a link to a stored file."""
    store = FolderBlobStore(tmp_path / "blobs" / "downloads", links)
    await store.create_if_missing("job/rig.csv", CONTENT)
    return await store.create_download_link("job/rig.csv", "rig.csv", datetime.now(UTC) + timedelta(minutes=5))


@pytest.fixture
async def anonymous_client() -> AsyncIterator[httpx.AsyncClient]:
    """Return an HTTP client without a token."""
    async with httpx.AsyncClient() as client:
        yield client


@pytest.mark.parametrize(
    ("wanted", "status", "first", "end"),
    [
        ("bytes=0-0", 206, 0, 1),
        ("bytes=10-", 206, 10, len(CONTENT)),
        ("bytes=-10", 206, len(CONTENT) - 10, len(CONTENT)),
        (f"bytes=5-{10**15}", 206, 5, len(CONTENT)),
        (f"bytes=-{10**15}", 206, 0, len(CONTENT)),
        ("bytes=5-4", 200, 0, len(CONTENT)),
        ("bytes=0-1,4-5", 200, 0, len(CONTENT)),
        ("lines=0-1", 200, 0, len(CONTENT)),
        ("bytes=-", 200, 0, len(CONTENT)),
        (f"bytes={len(CONTENT)}-", 416, 0, 0),
        ("bytes=-0", 416, 0, 0),
    ],
)
async def test_a_valid_range_is_returned(
    anonymous_client: httpx.AsyncClient, file_link: str, wanted: str, status: int, first: int, end: int
) -> None:
    """A valid range is returned, an invalid range is ignored, and a range after the end of the file is rejected."""
    reply = await anonymous_client.get(file_link, headers={"Range": wanted})
    assert (reply.status_code, reply.content) == (status, CONTENT[first:end])
    if status == 416:
        assert reply.headers["content-range"] == f"bytes */{len(CONTENT)}"


async def test_an_unchanged_file_gets_304(anonymous_client: httpx.AsyncClient, file_link: str) -> None:
    """An unchanged file gets 304; a range request for an older version of the file gets the whole new file."""
    etag = (await anonymous_client.get(file_link)).headers["etag"]
    assert (await anonymous_client.get(file_link, headers={"If-None-Match": f'"x", {etag}'})).status_code == 304
    assert (await anonymous_client.get(file_link, headers={"Range": "bytes=0-1", "If-Range": etag})).status_code == 206
    assert (await anonymous_client.get(file_link, headers={"Range": "bytes=0-1", "If-Range": '"x"'})).status_code == 200
    head = await anonymous_client.head(file_link)
    assert (head.content, head.headers["content-length"]) == (b"", str(len(CONTENT)))
    assert (await anonymous_client.head(file_link, headers={"Range": "bytes=0-9"})).status_code == 200


async def test_each_rejected_file_request_has_its_error_code(
    anonymous_client: httpx.AsyncClient, links: FileLinks, file_link: str
) -> None:
    """Each kind of rejected request for a file has its own error code."""
    later = datetime.now(UTC) + timedelta(minutes=5)
    gone = links.create_signed_url(FileLink("downloads", "job/gone.csv", "gone.csv", later))
    base = file_link.partition("/files/")[0]
    over = links.create_signed_url(FileLink("downloads", "job/rig.csv", "rig.csv", later - timedelta(days=1)))
    for address, method, status, code in (
        (gone, "GET", 404, "FILE_NOT_FOUND"),
        (over, "GET", 403, "LINK_EXPIRED"),
        (file_link + "0", "GET", 403, "LINK_INVALID"),
        (f"{base}/files/", "GET", 403, "LINK_INVALID"),
        (f"{base}/files/downloads/job/rig.csv", "GET", 403, "LINK_INVALID"),
        (file_link, "POST", 405, "METHOD_NOT_ALLOWED"),
    ):
        reply = await anonymous_client.request(method, address)
        assert (reply.status_code, reply.json()["code"]) == (status, code), address


async def test_a_download_ends_when_its_client_disconnects(tmp_path: Path, file_link: str) -> None:
    """If the client of a download disconnects, the rest of the file is not read."""
    is_gone = asyncio.Event()
    sizes = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            sizes.append(len(message["body"]))
            is_gone.set()

    async def receive() -> Message:
        await is_gone.wait()
        return {"type": "http.disconnect"}

    path, _, query = file_link.partition("/files/")[2].partition("?")
    scope = {"method": "GET", "raw_path": f"/files/{path}".encode(), "query_string": query.encode(), "headers": []}
    files = SignedLinkHandler(tmp_path / "blobs", FileLinks("", tmp_path / "files-key"), accept_upload)
    await files.serve(scope, receive, send, "id")
    assert 0 < sum(sizes) < len(CONTENT)


async def test_no_link_can_be_verified_while_the_key_is_damaged(tmp_path: Path) -> None:
    """If the file with the key of links is cut, a request gets an error that it can be repeated later."""

    async def send_or_receive(*_: Any) -> Any:
        raise AssertionError

    link = FileLink("downloads", "job/rig.csv", "rig.csv", datetime.now(UTC) + timedelta(minutes=5))
    path, _, query = FileLinks("", tmp_path / "other-key").create_signed_url(link).partition("?")
    (tmp_path / "files-key").write_bytes(b"cut")
    files = SignedLinkHandler(tmp_path / "blobs", FileLinks("", tmp_path / "files-key"), accept_upload)
    scope = {"method": "GET", "raw_path": path.encode(), "query_string": query.encode(), "headers": []}
    with pytest.raises(WorkspaceError) as caught:
        await files.serve(scope, send_or_receive, send_or_receive, "id")
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE")


@pytest.mark.parametrize(
    ("container", "name"),
    [("..", "files-key"), ("downloads", "../../files-key"), (".", "files-key"), ("downloads/..", "x"), ("", "cold/x")],
)
async def test_a_signed_link_reads_only_blobs(
    anonymous_client: httpx.AsyncClient, links: FileLinks, file_link: str, container: str, name: str
) -> None:
    """With a validly signed link, only files in the folder of blobs can be read."""
    signed = links.create_signed_url(FileLink(container, name, "x", datetime.now(UTC) + timedelta(minutes=5)))
    path = f"/files/{quote(container, safe='')}/{quote(name, safe='')}?{signed.partition('?')[2]}"
    assert (await anonymous_client.get(file_link.partition("/files/")[0] + path)).status_code in {403, 404}
