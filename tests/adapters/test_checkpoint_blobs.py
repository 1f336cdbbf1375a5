"""Tests that every checkpoint store meets the same contract."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.identity.aio import DefaultAzureCredential
from azure.storage.blob.aio import BlobServiceClient

from shared.backends.azure.blobs import BlobAccount
from shared.backends.azure.checkpoint_blobs import BlobCheckpointStore
from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.errors import WorkspaceError
from shared.provenance.checkpoint_ports import CheckpointStore, StoredCheckpoint
from shared.timestamps import parse_rfc3339
from tests.azurite.running import find_missing_requirement, run_azurite

PREFIX = "PlatformConfig/workspace/"
FOLDER, AZURITE, ENDPOINT = "folder", "azurite", "blob endpoint"
BLOB_KINDS = [AZURITE, *([ENDPOINT] if os.environ.get("BLOB_ENDPOINT") else [])]
KINDS = [FOLDER, *BLOB_KINDS]
type Opener = Callable[[], CheckpointStore]


@pytest.fixture(scope="module")
def connection_string() -> Iterator[str]:
    """Provide the connection string of an Azurite server."""
    if find_missing_requirement():
        pytest.skip(find_missing_requirement())
    with run_azurite() as started:
        yield started


@pytest.fixture(params=KINDS)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        if request.param == FOLDER:
            yield lambda: FileCheckpointStore(tmp_path / "checkpoints")
            return
        if request.param == AZURITE:
            started = request.getfixturevalue("connection_string")
            client = await stack.enter_async_context(BlobServiceClient.from_connection_string(started))
        else:
            started, address = "", os.environ["BLOB_ENDPOINT"]
            credential = await stack.enter_async_context(DefaultAzureCredential())
            client = await stack.enter_async_context(BlobServiceClient(address, credential=credential))
        names = [f"n{uuid.uuid4().hex}", f"s{uuid.uuid4().hex}"]
        for name in names:
            await client.create_container(name)
            stack.push_async_callback(client.delete_container, name)

        def open_another() -> CheckpointStore:
            account = BlobAccount(os.environ.get("BLOB_ENDPOINT", ""), connection_string=started)
            stack.push_async_callback(account.close)
            return BlobCheckpointStore(account, note_container=names[0], state_container=names[1])

        yield open_another


@pytest.fixture
def store(open_store: Opener) -> CheckpointStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


def build_checkpoint_name(size: int, prefix: str = PREFIX) -> str:
    return f"{prefix}{size:012d}"


async def create_foreign_note(store: CheckpointStore, path: str) -> None:
    """Create a file or blob at any path, as another program with access to the store can do."""
    if isinstance(store, BlobCheckpointStore):
        await store._account.open_client().get_blob_client(store._notes, path).upload_blob(b"junk")
    elif isinstance(store, FileCheckpointStore):
        file = store._folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"junk")


async def test_a_checkpoint_is_created_once(open_store: Opener) -> None:
    """If several callers store the same checkpoint, the signed text of the first caller stays stored."""
    stores = [open_store() for _ in range(3)]
    won = await asyncio.gather(
        *(stores[n % 3].create_if_missing(build_checkpoint_name(7), b"note %d" % n) for n in range(6))
    )
    assert won.count(True) == 1
    assert not await stores[0].create_if_missing(build_checkpoint_name(7), b"later")
    stored = await stores[1].find_checkpoint(build_checkpoint_name(7))
    assert stored is not None
    assert (stored.name, stored.note) == (build_checkpoint_name(7), b"note %d" % won.index(True))
    assert abs(parse_rfc3339(stored.created_at) - datetime.now(UTC)) < timedelta(minutes=1)


async def test_the_newest_checkpoint_has_the_largest_size(store: CheckpointStore) -> None:
    """The newest checkpoint has the largest size, compared as a number, whatever the order of creation."""
    assert await store.find_newest(PREFIX) is None
    sizes = [5, 999, 1_000, 1_001, 999_999, 1_000_000, 1_002_003, 123_456_789_012, 12]
    highest = 0
    for size in sizes:
        assert await store.create_if_missing(build_checkpoint_name(size), b"%d" % size)
        highest = max(highest, size)
        newest = await store.find_newest(PREFIX)
        assert newest is not None
        assert (newest.name, newest.note) == (build_checkpoint_name(highest), b"%d" % highest)


async def test_all_checkpoints_are_found_from_the_newest_to_the_oldest(store: CheckpointStore) -> None:
    """The newest checkpoint below another one is the next smaller one."""
    sizes = [5, 999, 1_000, 1_001, 999_999, 1_000_000, 1_002_003]
    for size in sizes:
        await store.create_if_missing(build_checkpoint_name(size), b"%d" % size)
    found: list[str] = []
    newest = await store.find_newest(PREFIX)
    while newest is not None:
        found.append(newest.name)
        newest = await store.find_newest(PREFIX, older_than_name=newest.name)
    assert found == [build_checkpoint_name(size) for size in reversed(sizes)]


@pytest.mark.parametrize("path", ["999999/999/000000000001", "000000/001/000000000004", "999999", "000000/999"])
async def test_a_misplaced_note_does_not_hide_the_newest_checkpoint(store: CheckpointStore, path: str) -> None:
    """A note in place of a folder, or in the folder of other sizes, does not hide the newest checkpoint."""
    for size in (1, 4):
        await store.create_if_missing(build_checkpoint_name(size), b"%d" % size)
    await create_foreign_note(store, f"{PREFIX}{path}")
    newest = await store.find_newest(PREFIX)
    assert newest is not None
    assert (newest.name, newest.note) == (build_checkpoint_name(4), b"4")


@pytest.mark.parametrize("open_store", BLOB_KINDS, indirect=True)
async def test_a_folder_with_the_name_of_a_checkpoint_does_not_hide_the_newest_checkpoint(
    store: CheckpointStore,
) -> None:
    """A blob whose folder has the name of a checkpoint does not hide the newest checkpoint."""
    await store.create_if_missing(build_checkpoint_name(4), b"4")
    for path in ("000000/000/000000000004/a", "999999/999/999999999999/a"):
        await create_foreign_note(store, f"{PREFIX}{path}")
    newest = await store.find_newest(PREFIX)
    assert newest is not None
    assert (newest.name, newest.note) == (build_checkpoint_name(4), b"4")


@pytest.mark.parametrize("open_store", BLOB_KINDS, indirect=True)
async def test_a_checkpoint_that_disappears_after_it_is_listed_is_unreadable(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the newest blob is deleted after it is listed, an unreadable checkpoint is returned instead of none."""
    await store.create_if_missing(build_checkpoint_name(4), b"4")

    async def find_nothing(_: str) -> None:
        return None

    monkeypatch.setattr(store, "find_checkpoint", find_nothing)
    assert await store.find_newest(PREFIX) == StoredCheckpoint.build_unreadable(build_checkpoint_name(4))


async def test_checkpoints_of_chains_with_a_common_name_prefix_are_separate(store: CheckpointStore) -> None:
    """A chain's newest checkpoint is found even if another chain's name begins with the chain's name."""
    await store.create_if_missing(build_checkpoint_name(9, "DomainEvents/abc/"), b"other")
    await store.create_if_missing(build_checkpoint_name(8, "DomainEvents/abcd/"), b"longer")
    newest = await store.find_newest("DomainEvents/abc/")
    assert newest is not None
    assert newest.note == b"other"
    assert await store.find_newest("DomainEvents/ab/") is None
    assert await store.find_newest(PREFIX) is None


async def test_the_folders_of_all_chains_of_a_target_are_listed(store: CheckpointStore) -> None:
    """Each chain of a target with a checkpoint has a folder in the list, also with several checkpoints."""
    assert await store.list_name_prefixes("DomainEvents") == []
    for size, prefix in ((1, "DomainEvents/a/"), (2_000_000, "DomainEvents/a/"), (1, "DomainEvents/ab/"), (1, PREFIX)):
        await store.create_if_missing(build_checkpoint_name(size, prefix), b"note")
    assert sorted(await store.list_name_prefixes("DomainEvents")) == ["DomainEvents/a/", "DomainEvents/ab/"]


async def test_reading_a_missing_checkpoint_or_signer_state_returns_none(store: CheckpointStore) -> None:
    """Reading a missing checkpoint or a missing working state of the signer returns None."""
    assert await store.find_checkpoint(build_checkpoint_name(1)) is None
    assert await store.find_working_state(f"{PREFIX}tree") is None


async def test_signer_states_are_replaced_and_checkpoints_are_not(store: CheckpointStore) -> None:
    """A working state of the signer can be replaced and is never returned as a checkpoint."""
    for state in (b"first", b"", bytes(range(256))):
        await store.save_working_state(f"{PREFIX}tree", state)
        await store.save_working_state(f"{PREFIX}tiles/0/x001", state)
        assert await store.find_working_state(f"{PREFIX}tree") == state
    assert await store.find_newest(PREFIX) is None
    await store.create_if_missing(build_checkpoint_name(3), b"note")
    newest = await store.find_newest(PREFIX)
    assert newest is not None
    assert newest.note == b"note"


async def test_an_unavailable_checkpoint_store_raises_an_error(tmp_path: Path) -> None:
    """If the store is unavailable, it raises an error instead of counting as empty."""
    (tmp_path / "file").write_text("")
    nowhere = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:9/a;"
    account = BlobAccount("", connection_string=nowhere, retries=0)
    stores: list[CheckpointStore] = [FileCheckpointStore(tmp_path / "file"), BlobCheckpointStore(account)]
    for store in stores:
        with pytest.raises(WorkspaceError) as caught:
            await store.create_if_missing(build_checkpoint_name(1), b"")
        assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"
    for read in (stores[1].find_checkpoint, stores[1].find_newest, stores[1].find_working_state):
        with pytest.raises(WorkspaceError):
            await read(build_checkpoint_name(1))
    await account.close()


async def test_a_missing_blob_container_raises_an_error(connection_string: str) -> None:
    """If the blob container is missing, an error is raised instead of an empty list of checkpoints."""
    account = BlobAccount("", connection_string=connection_string)
    store = BlobCheckpointStore(account, note_container="never-made", state_container="never-made")
    for read in (store.find_checkpoint, store.find_newest, store.find_working_state):
        with pytest.raises(WorkspaceError) as caught:
            await read(build_checkpoint_name(1))
        assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"
    await store.close()


async def test_a_receipt_signature_is_stored_under_its_checkpoint_name(store: CheckpointStore) -> None:
    """The signature for receipts is stored under the checkpoint's name and is never returned as a checkpoint."""
    signature = f"{build_checkpoint_name(8)}.cose"
    assert await store.find_checkpoint(signature) is None
    assert await store.create_if_missing(signature, b"signature")
    assert not await store.create_if_missing(signature, b"other")
    assert await store.find_newest(PREFIX) is None
    await store.create_if_missing(build_checkpoint_name(7), b"note")
    newest, found = await store.find_newest(PREFIX), await store.find_checkpoint(signature)
    assert (newest and newest.note, found and found.note) == (b"note", b"signature")
