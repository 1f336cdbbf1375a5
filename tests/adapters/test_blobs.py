"""Tests that every blob store meets the same contract."""

import asyncio
import base64
import os
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from azure.identity.aio import DefaultAzureCredential
from azure.storage.blob.aio import BlobServiceClient

from shared.backends.azure.blobs import AzureBlobStore, BlobAccount
from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.cold_data.ports import UPLOAD_HEADERS, BlobReplacedError, BlobStore
from shared.errors import WorkspaceError
from tests.azurite.running import find_missing_requirement, run_azurite
from tests.unit.local.serving import serve_files

NAMES = ["a-b", "a/b", "a/c.parquet", "a/c/d", "a0", "b/_unrouted/2026/01/05/08/0-1-2.parquet"]
SOON = timedelta(minutes=15)


@pytest.fixture(scope="module")
def account() -> Iterator[str]:
    """Yield the connection string of an Azurite server."""
    if find_missing_requirement():
        pytest.skip(find_missing_requirement())
    with run_azurite() as connection_string:
        yield connection_string


ENDPOINT = os.environ.get("BLOB_ENDPOINT", "")


@pytest.fixture(params=["folder", "azurite", *(["blob endpoint"] if ENDPOINT else [])])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    """Yield an empty store; each test runs with each kind of store."""
    opener = open_folder_store(tmp_path)
    if request.param != "folder":
        opener = (
            open_azurite_store(request.getfixturevalue("account"))
            if request.param == "azurite"
            else open_endpoint_store()
        )
    async with opener as opened:
        yield opened


@asynccontextmanager
async def open_folder_store(path: Path) -> AsyncIterator[BlobStore]:
    """Open the embedded store, with a server for its links."""
    async with serve_files(path) as links:
        yield FolderBlobStore(path / "blobs" / "cold", links)


@asynccontextmanager
async def open_azurite_store(connection_string: str) -> AsyncIterator[BlobStore]:
    """Open the Azure store with a new container."""
    name = f"c{uuid.uuid4().hex}"
    async with BlobServiceClient.from_connection_string(connection_string) as client:
        await client.create_container(name)
    opened = AzureBlobStore(BlobAccount("", connection_string=connection_string), name)
    yield opened
    await opened.close()


@asynccontextmanager
async def open_endpoint_store() -> AsyncIterator[BlobStore]:
    """Open the Azure store with a new container in the account BLOB_ENDPOINT; delete the container afterwards."""
    name = f"contract-{uuid.uuid4().hex}"
    async with DefaultAzureCredential() as credential, BlobServiceClient(ENDPOINT, credential=credential) as client:
        await client.create_container(name)
        opened = AzureBlobStore(BlobAccount(ENDPOINT), name)
        try:
            yield opened
        finally:
            await opened.close()
            await client.delete_container(name)


async def list_blob_names(store: BlobStore, prefix: str = "") -> list[str]:
    return [blob.name async for blob in store.list(prefix)]


async def test_a_blob_is_created_once(store: BlobStore) -> None:
    """If several callers create the same blob, the first caller succeeds and the others change nothing."""
    won = await asyncio.gather(*(store.create_if_missing("a/b", b"%d" % number) for number in range(8)))
    assert won.count(True) == 1
    assert await store.read("a/b") == b"%d" % won.index(True)
    assert not await store.create_if_missing("a/b", b"later")
    assert await store.read("a/b") == b"%d" % won.index(True)


async def test_an_upload_replaces_a_blob(store: BlobStore, tmp_path: Path) -> None:
    """Uploading a file, empty or large, replaces the previous content of the blob."""
    source = tmp_path / "source"
    for content in (b"first", b"", bytes(range(256)) * 40_000):
        source.write_bytes(content)
        await store.upload("x/y", source)
        assert await store.read("x/y") == content
        target = tmp_path / "target"
        await store.download_to_file("x/y", target)
        assert target.read_bytes() == content
        assert await store.read_range("x/y", 100, 50) == content[100:150]
        assert await store.read_range("x/y", 9, len(content)) == content[9:]
        assert await store.read_range("x/y", len(content), 1) == b""


async def test_a_range_of_a_replaced_blob_is_not_read(store: BlobStore, tmp_path: Path) -> None:
    """A range that is read with an ETag belongs to the blob of this ETag, not to a blob that replaced it."""
    source = tmp_path / "source"
    etags = []
    for content in (b"first", b"other"):
        source.write_bytes(content)
        await store.upload("x/y", source)
        [blob] = [blob async for blob in store.list("x/")]
        assert await store.read_range("x/y", 1, 3, blob.etag) == content[1:4]
        etags.append(blob.etag)
    for start in (0, 5):
        with pytest.raises(BlobReplacedError):
            await store.read_range("x/y", start, 3, etags[0])


async def test_blob_names_are_listed_in_order(store: BlobStore) -> None:
    """Blob names are sorted as whole texts; the prefix of a list may end within a folder or file name."""
    for name in reversed(NAMES):
        assert await store.create_if_missing(name, name.encode())
    assert await list_blob_names(store) == sorted(NAMES)
    assert await list_blob_names(store, "a/c") == ["a/c.parquet", "a/c/d"]
    assert await list_blob_names(store, "a/c/") == ["a/c/d"]
    assert await list_blob_names(store, "nothing/") == []
    [blob] = [blob async for blob in store.list("a0")]
    assert blob.size == 2
    assert abs(blob.written_at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_blob_listings_of_several_pages_are_complete(store: BlobStore) -> None:
    """A listing that needs several pages contains every blob once."""
    names = [f"p/{number:04d}" for number in range(1_100)]
    for first in range(0, len(names), 50):
        await asyncio.gather(*(store.create_if_missing(name, b"") for name in names[first : first + 50]))
    assert await list_blob_names(store, "p/") == names


async def test_deleted_blobs_cannot_be_read(store: BlobStore, tmp_path: Path) -> None:
    """Reading a deleted blob fails; deleting a missing blob succeeds."""
    for name in NAMES:
        await store.create_if_missing(name, b"x")
    await store.delete([*NAMES[:-1], "never/there"])
    assert await list_blob_names(store) == NAMES[-1:]
    with pytest.raises(FileNotFoundError):
        await store.read(NAMES[0])
    with pytest.raises(FileNotFoundError):
        await store.read_range(NAMES[0], 0, 8)
    with pytest.raises(FileNotFoundError):
        await store.download_to_file(NAMES[0], tmp_path / "target")
    assert await store.create_if_missing(NAMES[0], b"again")


async def test_an_upload_link_accepts_a_whole_file(store: BlobStore) -> None:
    """With an upload link, anyone can upload its blob, also repeatedly, but no other blob."""
    url = await store.create_upload_link("j/upload", datetime.now(UTC) + SOON)
    async with httpx.AsyncClient(headers=UPLOAD_HEADERS) as anyone:
        for content in (b"first", b"second" * 300_000):
            assert (await anyone.put(url, content=content)).status_code == 201
            assert await store.read("j/upload") == content
        assert (await anyone.put(url.replace("j/upload", "j/other"), content=b"x")).status_code == 403


async def test_an_upload_link_accepts_blocks(store: BlobStore) -> None:
    """Blocks may be uploaded in any order and repeatedly; the list of blocks, also repeated, defines the file."""
    url = await store.create_upload_link("j/upload", datetime.now(UTC) + SOON)
    blocks = {name: base64.b64encode(name.encode()).decode() for name in ("a", "b", "c")}

    def build_url(**query: str) -> str:
        return str(httpx.URL(url).copy_merge_params(query))

    async with httpx.AsyncClient(headers=UPLOAD_HEADERS) as anyone:
        for name, content in (("b", b"cut"), ("c", b"3"), ("b", b"22"), ("a", b"1")):
            reply = await anyone.put(build_url(comp="block", blockid=blocks[name]), content=content)
            assert reply.status_code == 201, reply.text
        assert await list_blob_names(store) == []
        listed = await anyone.get(build_url(comp="blocklist", blocklisttype="uncommitted"))
        assert f"<Name>{blocks['b']}</Name><Size>2</Size>" in listed.text.replace("\n", "")
        names = "".join(f"<Latest>{block}</Latest>" for block in blocks.values())
        document = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{names}</BlockList>'
        del anyone.headers["x-ms-blob-type"]
        for _ in ("first request", "repetition after a lost reply"):
            joined = await anyone.put(build_url(comp="blocklist"), content=document)
            assert joined.status_code == 201, joined.text
            assert await store.read("j/upload") == b"1223"
        listed = await anyone.get(build_url(comp="blocklist", blocklisttype="committed"))
        assert re.findall("<Size>([0-9]+)</Size>", listed.text) == ["1", "2", "1"]
    assert await list_blob_names(store) == ["j/upload"]


async def test_a_blob_that_was_leased_with_its_upload_link_is_deleted(store: BlobStore) -> None:
    """The holder of an upload link cannot prevent the deletion of the blob by a lease without end or a snapshot."""
    url = await store.create_upload_link("j/upload", datetime.now(UTC) + SOON)
    lease = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
    for operation, headers in (("lease", lease), ("snapshot", {})):
        async with httpx.AsyncClient() as anyone:
            assert (await anyone.put(url, content=b"x", headers=UPLOAD_HEADERS)).status_code == 201
            # The reply is not checked, because the embedded store supports neither leases nor snapshots.
            await anyone.put(httpx.URL(url).copy_merge_params({"comp": operation}), headers=headers)
        await store.delete(["j/upload"])
        assert await list_blob_names(store) == []


async def test_a_download_link_grants_access_without_sign_in(store: BlobStore) -> None:
    """With a download link, anyone can download the blob or ranges of it; the link sets the file name."""
    await store.create_if_missing("j/rig ü.csv", b"0123456789")
    url = await store.create_download_link("j/rig ü.csv", 'rig "ü".csv', datetime.now(UTC) + SOON)
    async with httpx.AsyncClient() as anyone:
        whole = await anyone.get(url)
        assert (whole.status_code, whole.content) == (200, b"0123456789")
        named = whole.headers["content-disposition"]
        assert named == "attachment; filename=\"rig ___.csv\"; filename*=UTF-8''rig%20%22%C3%BC%22.csv"
        part = await anyone.get(url, headers={"Range": "bytes=2-4"})
        assert (part.status_code, part.content) == (206, b"234")
        assert part.headers["content-range"] == "bytes 2-4/10"
        head = await anyone.head(url)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "10")
        assert head.headers["etag"] == whole.headers["etag"]


async def test_a_blob_link_is_valid_for_one_blob_only(store: BlobStore) -> None:
    """A link that was changed, has expired, or belongs to another blob is rejected."""
    await store.create_if_missing("j/one", b"%one%")
    await store.create_if_missing("j/two", b"%two%")
    url = await store.create_download_link("j/one", "one.csv", datetime.now(UTC) + SOON)
    over = await store.create_download_link("j/one", "one.csv", datetime.now(UTC) - timedelta(seconds=2))
    async with httpx.AsyncClient() as anyone:
        for bad in (over, url.replace("j/one", "j/two"), url[:-3] + "AAA", url.partition("?")[0]):
            reply = await anyone.get(bad)
            assert reply.status_code in {403, 404, 409}, bad
            assert b"%one%" not in reply.content
            assert b"%two%" not in reply.content


async def test_an_available_blob_store_passes_its_health_check(store: BlobStore) -> None:
    """The health check of an available store succeeds and stores nothing."""
    await store.require_available()
    assert await list_blob_names(store) == []


async def test_each_call_of_an_unavailable_blob_store_fails(tmp_path: Path) -> None:
    """If the store is unavailable, each call raises an error, including calls that list blobs."""
    (tmp_path / "file").write_text("")
    nowhere = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:9/a;"
    broken: list[BlobStore] = [FolderBlobStore(tmp_path / "file", FileLinks("", tmp_path / "key"))]
    for each in broken:
        with pytest.raises(WorkspaceError) as caught:
            await each.create_if_missing("a", b"")
        assert caught.value.code == "BLOB_STORE_UNAVAILABLE"
        with pytest.raises(WorkspaceError):
            await list_blob_names(each)
    account = AzureBlobStore(BlobAccount("", connection_string=nowhere, retries=0), "c")
    with pytest.raises(WorkspaceError) as caught:
        await account.require_available()
    assert caught.value.code == "BLOB_STORE_UNAVAILABLE"
    await account.close()
