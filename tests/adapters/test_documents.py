"""Tests that every document store meets the same contract."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from emulators.cosmos import CosmosServer
from emulators.cosmos.faults import build_random_read_faults
from shared.backends.embedded.documents import DocumentFile, SqliteDocumentStore
from shared.data_stores.models import MISSING, DocumentKey, PartitionValue, StoredDocument
from shared.data_stores.partition_keys import read_partition_key
from shared.data_stores.ports import DocumentStore
from shared.errors import WorkspaceError
from tests.unit.shared.backends.azure.cosmos_accounts import TABLES, create_tables, open_document_store

LINE = TABLES["/line"]
OPERATIONS = ("read_item", "replace_item", "delete_item", "query")
"""Operations with faults; a creation without a reply would have an unknown result."""


@asynccontextmanager
async def _open_sqlite(folder: Path) -> AsyncIterator[DocumentStore]:
    file = DocumentFile(folder)
    try:
        yield SqliteDocumentStore(file)
    finally:
        await file.close()


@asynccontextmanager
async def _open_cosmos(*, has_faults: bool) -> AsyncIterator[DocumentStore]:
    async with CosmosServer(physical_partitions=3) as server:
        await create_tables(server)
        async with open_document_store(server) as store:
            if has_faults:
                # Throttling and failed conditions are passed on to the caller.
                faulty = build_random_read_faults(0.2, 20261121, lambda request: request.operation in OPERATIONS)
                server.faults.add_all(one for one in faulty if one.status != 429)
            yield store


@pytest.fixture(params=["sqlite", "cosmos", "cosmos with faults"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DocumentStore]:
    """Provide an empty store with the tables of :data:`TABLES`; each test runs with each kind of store."""
    faults = request.param == "cosmos with faults"
    async with _open_sqlite(tmp_path) if request.param == "sqlite" else _open_cosmos(has_faults=faults) as made:
        yield made


def build_document_text(**properties: Any) -> bytes:
    """Return a document with these properties as JSON text."""
    return json.dumps(properties).encode()


def parse_documents(texts: Iterable[bytes]) -> list[Any]:
    """Parse the JSON texts of documents."""
    return [json.loads(one) for one in texts]


def get_error_code(error: pytest.ExceptionInfo[WorkspaceError]) -> str:
    """Check that a call is rejected, and return the error code."""
    return error.value.code


async def read_document(store: DocumentStore, key: DocumentKey, path: str = "/line") -> StoredDocument:
    """Return an existing document."""
    stored = await store.read(TABLES[path], key)
    assert stored is not None
    return stored


async def list_all_documents(
    store: DocumentStore, path: str, partition: PartitionValue, *, all_partitions: bool, limit: int = 2
) -> Any:
    """Return all documents of a list, from all its pages."""
    found: list[bytes] = []
    position: str | None = None
    while True:
        page = await store.list(TABLES[path], partition, limit, position, all_partitions=all_partitions)
        assert len(page.texts) <= limit
        found += page.texts
        position = page.next_position
        if position is None:
            return parse_documents(found)


async def test_a_document_is_created_replaced_and_deleted(store: DocumentStore) -> None:
    """Each write of a document returns a new strong ETag, which the next read also returns."""
    key = DocumentKey("a", "l1")
    assert await store.read(LINE, key) is None
    first = await store.create(
        LINE, key, build_document_text(id="a", line="l1", n=1.5, deep={"x": [None, True, "ü\u2028"]})
    )
    stored = await read_document(store, key)
    assert stored.etag == first
    assert first.startswith('"')
    assert json.loads(stored.text) == {"id": "a", "line": "l1", "n": 1.5, "deep": {"x": [None, True, "ü\u2028"]}}
    second = await store.replace(LINE, key, build_document_text(id="a", line="l1", n=2), None)
    third = await store.replace(LINE, key, build_document_text(id="a", line="l1", n=2), second)
    assert len({first, second, third}) == 3
    assert (await read_document(store, key)).etag == third
    await store.delete(LINE, key, third)
    assert await store.read(LINE, key) is None
    again = await store.create(LINE, key, build_document_text(id="a", line="l1", n=1))
    assert again not in (first, second, third)


async def test_document_ids_are_unique_within_a_partition(store: DocumentStore) -> None:
    """Two documents may have the same id in different partitions, but not in one partition."""
    for line in ("l1", "l2"):
        await store.create(LINE, DocumentKey("a", line), build_document_text(id="a", line=line))
    with pytest.raises(WorkspaceError) as caught:
        await store.create(LINE, DocumentKey("a", "l1"), build_document_text(id="a", line="l1", n=2))
    assert get_error_code(caught) == "DOCUMENT_EXISTS"
    await store.delete(LINE, DocumentKey("a", "l1"), None)
    assert await store.read(LINE, DocumentKey("a", "l1")) is None
    assert (await read_document(store, DocumentKey("a", "l2"))).text


async def test_writes_with_an_old_etag_are_rejected(store: DocumentStore) -> None:
    """A write with an old ETag is rejected and changes nothing; a write to a missing document raises "not found"."""
    key = DocumentKey("a", "l1")
    for etag in (None, '"x"'):
        with pytest.raises(WorkspaceError) as caught:
            await store.replace(LINE, key, build_document_text(id="a", line="l1"), etag)
        assert get_error_code(caught) == "DOCUMENT_NOT_FOUND"
        with pytest.raises(WorkspaceError) as caught:
            await store.delete(LINE, key, etag)
        assert get_error_code(caught) == "DOCUMENT_NOT_FOUND"
    stale = await store.create(LINE, key, build_document_text(id="a", line="l1"))
    current = await store.replace(LINE, key, build_document_text(id="a", line="l1", n=2), stale)
    with pytest.raises(WorkspaceError) as caught:
        await store.replace(LINE, key, build_document_text(id="a", line="l1", n=3), stale)
    assert get_error_code(caught) == "PRECONDITION_FAILED"
    with pytest.raises(WorkspaceError) as caught:
        await store.delete(LINE, key, stale)
    assert get_error_code(caught) == "PRECONDITION_FAILED"
    assert (await read_document(store, key)).etag == current


VALUES: list[Any] = ["1", "", "null", "ü/?#", 1, -0.5, 1e300, True, False, None, MISSING]


@pytest.mark.parametrize("path", ["/line", "/a/b"])
async def test_partition_keys_of_different_types_are_distinct(store: DocumentStore, path: str) -> None:
    """Texts, numbers, booleans, null and a missing value are different partition keys, also in nested properties."""
    for place, value in enumerate(VALUES):
        member = {} if value is MISSING else {"line": value} if path == "/line" else {"a": {"b": value}}
        assert read_partition_key(member, path) == value
        await store.create(TABLES[path], DocumentKey("same", value), build_document_text(id="same", **member, n=place))
    for place, value in enumerate(VALUES):
        assert json.loads((await read_document(store, DocumentKey("same", value), path)).text)["n"] == place
        found = await list_all_documents(store, path, value, all_partitions=False)
        assert [document["n"] for document in found] == [place]
    assert await store.read(TABLES[path], DocumentKey("same", 1.0)) == await read_document(
        store, DocumentKey("same", 1), path
    )
    whole = await list_all_documents(store, path, MISSING, all_partitions=True, limit=3)
    assert sorted(document["n"] for document in whole) == list(range(len(VALUES)))


@pytest.mark.parametrize("document_id", ["ü ñ 漢字 😀", "a+b%20c&d=e;f,g:h@i", "x" * 1023, '"q"', "%2e"])
async def test_documents_with_any_valid_id_are_found(store: DocumentStore, document_id: str) -> None:
    """Every id that is valid can be stored and found."""
    key = DocumentKey(document_id, document_id)
    await store.create(TABLES["/id"], key, build_document_text(id=document_id))
    await store.replace(TABLES["/id"], key, build_document_text(id=document_id, n=1), None)
    assert json.loads((await read_document(store, key, "/id")).text) == {"id": document_id, "n": 1}
    await store.delete(TABLES["/id"], key, None)


async def test_documents_belong_to_one_table(store: DocumentStore) -> None:
    """A document of one table is not found in other tables."""
    await store.create(TABLES["/id"], DocumentKey("a", "a"), build_document_text(id="a"))
    assert await store.read(LINE, DocumentKey("a", "a")) is None
    assert await list_all_documents(store, "/line", MISSING, all_partitions=True) == []


async def test_pages_of_documents_end_at_a_maximum_of_bytes(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page ends at its maximum of bytes, and the next page continues after it."""
    for module in ("embedded.documents", "azure.cosmos_documents"):
        monkeypatch.setattr(f"shared.backends.{module}.PAGE_BYTES", 1)
    for n in range(3):
        await store.create(LINE, DocumentKey(f"{n}", "l1"), build_document_text(id=f"{n}", line="l1"))
    found = await list_all_documents(store, "/line", "l1", all_partitions=False, limit=100)
    assert [document["id"] for document in found] == ["0", "1", "2"]


async def test_document_lists_contain_each_document_once_during_writes(store: DocumentStore) -> None:
    """While documents are written and deleted, the pages contain each document once that exists the whole time."""
    stable = {f"s{n:03}" for n in range(60)}
    for name in stable:
        await store.create(LINE, DocumentKey(name, name[-1]), build_document_text(id=name, line=name[-1]))
    stop = asyncio.Event()

    async def write_and_delete() -> None:
        for n in range(10_000):
            if stop.is_set():
                return
            name = f"{'ruts'[n % 4]}{n % 97:03}x"
            key = DocumentKey(name, str(n % 10))
            await store.create(LINE, key, build_document_text(id=name, line=str(n % 10)))
            await store.delete(LINE, key, None)

    disturbing = asyncio.create_task(write_and_delete())
    found = await list_all_documents(store, "/line", MISSING, all_partitions=True, limit=7)
    stop.set()
    await disturbing
    names = [document["id"] for document in found if document["id"] in stable]
    assert sorted(names) == sorted(stable)


async def test_concurrent_increments_in_a_document_are_not_lost(store: DocumentStore) -> None:
    """If several writers increment a number with ETags, its final value is the count of successful increments."""
    key = DocumentKey("counter", "l1")
    await store.create(LINE, key, build_document_text(id="counter", line="l1", n=0))

    async def increment_repeatedly() -> int:
        done = unknown = 0
        while done + unknown < 3:
            stored = await read_document(store, key)
            n = json.loads(stored.text)["n"] + 1
            try:
                await store.replace(LINE, key, build_document_text(id="counter", line="l1", n=n), stored.etag)
            except WorkspaceError as error:
                if error.code not in ("PRECONDITION_FAILED", "DOCUMENT_OUTCOME_UNKNOWN"):
                    raise
                unknown += error.code == "DOCUMENT_OUTCOME_UNKNOWN"
            else:
                done += 1
        return done

    done = sum(await asyncio.gather(*(increment_repeatedly() for _ in range(16))))
    n = json.loads((await read_document(store, key)).text)["n"]
    # A write with an unknown outcome may count or not.
    assert done <= n <= 48


async def test_a_continuation_token_of_another_store_is_rejected(store: DocumentStore) -> None:
    """A continuation token of another store is rejected."""
    with pytest.raises(WorkspaceError) as caught:
        await store.list(LINE, "l1", 5, "nonsense", all_partitions=False)
    assert [error["field"] for error in caught.value.members["errors"]] == ["continuationToken"]  # type: ignore[attr-defined]  # it is a list of objects
