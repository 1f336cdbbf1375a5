"""Tests of documents in SQLite: long lists during writes, two processes, and declared containers."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import orjson
import pytest

from shared.backends.embedded.documents import DocumentFile, SqliteContainerStore, SqliteDocumentStore
from shared.data_stores.models import MISSING, AccountContainer, DatabaseAddress, DocumentKey, Table
from shared.errors import WorkspaceError

PLACE = DatabaseAddress("mes", "orders")
TABLE = Table(PLACE, AccountContainer("workorders", "/line"))


@pytest.fixture
async def document_files(tmp_path: Path) -> AsyncIterator[list[DocumentFile]]:
    """Provide two document stores that are open on the same folder, as in two processes."""
    opened = [DocumentFile(tmp_path), DocumentFile(tmp_path)]
    yield opened
    for file in opened:
        await file.close()


def _build_key(name: str) -> DocumentKey:
    return DocumentKey(name, name[-1])


async def _create_document(store: SqliteDocumentStore, name: str) -> None:
    await store.create(TABLE, _build_key(name), orjson.dumps({"id": name, "line": name[-1]}))


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.soak)])
async def test_a_long_list_is_complete_during_writes(document_files: list[DocumentFile], count: int) -> None:
    """If a list is read during inserts and deletes, each document that stays is returned exactly once."""
    reader, writer = SqliteDocumentStore(document_files[0]), SqliteDocumentStore(document_files[1])
    stable = [f"s{n * 7919 % count:06}" for n in range(count)]
    for start in range(0, count, 500):
        await asyncio.gather(*(_create_document(writer, name) for name in stable[start : start + 500]))
    ended = asyncio.Event()

    async def write_continuously(letter: str) -> int:
        turns = 0
        while not ended.is_set():
            name = f"{letter}{turns * 31 % count:06}x{turns % 10}"
            await _create_document(writer, name)
            await writer.delete(TABLE, _build_key(name), None)
            turns += 1
        return turns

    disturbing = [asyncio.create_task(write_continuously(letter)) for letter in "arstz"]
    seen: list[str] = []
    position: str | None = None
    while True:
        page = await reader.list(TABLE, MISSING, 1000, position, all_partitions=True)
        seen += (orjson.loads(text)["id"] for text in page.texts)
        position = page.next_position
        if position is None:
            break
    ended.set()
    assert all(await asyncio.gather(*disturbing))
    assert sorted(name for name in seen if len(name) == 7) == sorted(stable)
    assert len(seen) == len(set(seen))


async def test_declared_containers_are_created(document_files: list[DocumentFile]) -> None:
    """Declared containers are created at the first use; other existing containers stay."""
    declared = [AccountContainer("workorders", "/line")]

    async def list_wanted_containers(place: DatabaseAddress) -> Iterable[AccountContainer]:
        return declared if place == PLACE else []

    first, second = (SqliteContainerStore(file, list_wanted_containers) for file in document_files)
    both = await asyncio.gather(first.list(PLACE), second.list(PLACE))
    assert list(both) == [declared, declared]
    assert await first.list(DatabaseAddress("lab", "orders")) == []
    made = AccountContainer("made", "/id")
    await first.create_container(PLACE, made)
    with pytest.raises(WorkspaceError) as caught:
        await second.create_container(PLACE, AccountContainer("made", "/other"))
    assert caught.value.code == "CONTAINER_EXISTS"
    declared.clear()
    assert await second.list(PLACE) == [made, AccountContainer("workorders", "/line")]
    assert await second.find_container(PLACE, "Made") is None
