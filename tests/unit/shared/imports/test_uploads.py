"""Tests of the checks of uploaded files before an import starts."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.downloads.expiry import build_upload_blob_name
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest
from shared.errors import WorkspaceError
from shared.imports import uploads
from shared.imports.uploads import find_and_require_complete_upload, find_upload

REQUEST = ImportRequest(
    format=ImportFormat.CSV,
    file_name="a.csv",
    mapping=ImportMapping(timestamp="time"),
    upload_expires_at=datetime(2026, 1, 5, tzinfo=UTC),
)


@pytest.fixture
def blob_store(tmp_path: Path) -> FolderBlobStore:
    """Return an empty blob container."""
    return FolderBlobStore(tmp_path / "blobs", FileLinks("http://127.0.0.1", tmp_path / "key"))


async def test_only_the_file_of_the_job_is_found(blob_store: FolderBlobStore) -> None:
    """A file belongs to a job only if its name is the job's name, not if it only begins with it."""
    for name in ("a1/upload-2", "a11/upload", "a1/uploaded"):
        await blob_store.create_if_missing(name, b"x")
    assert await find_upload(blob_store, "a1") is None
    await blob_store.create_if_missing(build_upload_blob_name("a1"), b"file")
    found = await find_upload(blob_store, "a1")
    assert found is not None
    assert (found.name, found.size) == ("a1/upload", 4)


@pytest.mark.parametrize(
    ("content", "declared", "expected"),
    [
        (None, None, ("IMPORT_NOT_UPLOADED", {})),
        (b"1234", 5, ("IMPORT_NOT_UPLOADED", {"uploadedBytes": 4})),
        (b"12345", 5, None),
        (b"12345", None, None),
        (b"123456", None, ("IMPORT_TOO_LARGE", {"maxBytes": 5})),
    ],
)
async def test_an_import_needs_the_whole_uploaded_file(
    blob_store: FolderBlobStore,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
    declared: int | None,
    expected: tuple[str, dict[str, Any]] | None,
) -> None:
    """If the uploaded file is missing, incomplete or too large, the start fails with the sizes."""
    monkeypatch.setattr(uploads, "MAX_BYTES", 5)
    if content is not None:
        await blob_store.create_if_missing(build_upload_blob_name("a1"), content)
    request = REQUEST.model_copy(update={"declared_bytes": declared})
    if expected is None:
        assert (await find_and_require_complete_upload(blob_store, "a1", request)).size == len(content or b"")
        return
    with pytest.raises(WorkspaceError) as raised:
        await find_and_require_complete_upload(blob_store, "a1", request)
    assert (raised.value.code, raised.value.members) == expected
