"""Tests of the blob store that traces the calls to another blob store."""

from pathlib import Path

import pytest

from shared.cold_data.observed_blobs import ObservedBlobs, open_blob_span
from tests.unit.shared.cold_data.archived import open_folder_store


async def test_each_call_reaches_the_wrapped_blob_store(tmp_path: Path) -> None:
    """Each call reaches the wrapped store, whose result or error is returned unchanged."""
    store = ObservedBlobs(open_folder_store(tmp_path), "cold")
    assert await store.create_if_missing("a/1", b"content")
    assert not await store.create_if_missing("a/1", b"other")
    assert (await store.read("a/1"), await store.read_range("a/1", 4, 9)) == (b"content", b"ent")
    assert await store.read_range("a/1", 3, 2) == b"te"
    await store.download_to_file("a/1", tmp_path / "fetched")
    await store.upload("a/2", tmp_path / "fetched")
    assert [blob.name async for blob in store.list("a/")] == ["a/1", "a/2"]
    await store.delete(["a/1"])
    with pytest.raises(FileNotFoundError):
        await store.read("a/1")
    await store.require_available()
    await store.close()


def test_an_error_of_the_wrapped_blob_store_is_raised_unchanged() -> None:
    """An error of the store is raised unchanged, with and without tracing."""
    with pytest.raises(FileNotFoundError), open_blob_span("read", "cold"):
        raise FileNotFoundError
