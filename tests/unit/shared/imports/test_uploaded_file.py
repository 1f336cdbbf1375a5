"""Tests of reading uploaded files from worker threads."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.cold_data.ports import Blob
from shared.downloads.import_request import ImportFormat
from shared.imports.csv_reader import CsvReader
from shared.imports.json_lines_reader import JsonLinesReader
from shared.imports.row_mapping import FileRejectedError
from shared.imports.uploaded_file import UploadedSource, open_reader
from tests.unit.shared.imports.files import build_row_mapper

CONTENT = b"time,x\n2026-01-05T10:00:00Z,1\n"


@pytest.fixture
async def uploaded_source(tmp_path: Path) -> UploadedSource:
    """Return a file in a blob container."""
    blobs = FolderBlobStore(tmp_path / "blobs", FileLinks("http://127.0.0.1", tmp_path / "key"))
    await blobs.create_if_missing("a1/upload", CONTENT)
    [blob] = [each async for each in blobs.list("a1/upload")]
    return UploadedSource(blobs, blob, asyncio.get_running_loop())


async def test_a_worker_thread_reads_ranges_of_an_uploaded_file(uploaded_source: UploadedSource) -> None:
    """A worker thread can read ranges of an uploaded file, which the event loop fetches for it."""
    assert await asyncio.to_thread(uploaded_source.read, 5, 3) == CONTENT[5:8]
    assert await asyncio.to_thread(uploaded_source.read, len(CONTENT) - 2, 100) == CONTENT[-2:]


async def test_a_deleted_file_ends_the_import(tmp_path: Path) -> None:
    """If the uploaded file is deleted during its import, the import fails."""
    blobs = FolderBlobStore(tmp_path / "empty", FileLinks("http://127.0.0.1", tmp_path / "key"))
    missing = UploadedSource(blobs, Blob("a1/upload", 10, datetime(2026, 1, 5, tzinfo=UTC)), asyncio.get_running_loop())
    with pytest.raises(FileRejectedError, match="no longer exists"):
        await asyncio.to_thread(missing.read, 0, 10)


async def test_a_file_that_replaces_the_uploaded_file_is_not_read(
    uploaded_source: UploadedSource, tmp_path: Path
) -> None:
    """If another file of the same size is uploaded while an import reads its file, the import fails."""
    another = tmp_path / "another"
    another.write_bytes(CONTENT.replace(b"1\n", b"2\n"))
    another.replace(tmp_path / "blobs" / "a1" / "upload")
    with pytest.raises(FileRejectedError, match="uploaded again"):
        await asyncio.to_thread(uploaded_source.read, 0, 10)


@pytest.mark.parametrize(
    ("file_format", "reader"), [(ImportFormat.CSV, CsvReader), (ImportFormat.NDJSON, JsonLinesReader)]
)
async def test_each_format_has_its_reader(
    uploaded_source: UploadedSource, file_format: ImportFormat, reader: type
) -> None:
    """The declared format, not the file's name, selects the reader of a file."""
    opened = await asyncio.to_thread(open_reader, file_format, uploaded_source, build_row_mapper(file_format))
    assert isinstance(opened, reader)


async def test_a_file_that_lacks_its_declared_format_is_rejected(uploaded_source: UploadedSource) -> None:
    """A file is rejected if its content does not have the declared format."""
    mapper = build_row_mapper(ImportFormat.PARQUET)
    with pytest.raises(FileRejectedError):
        await asyncio.to_thread(open_reader, ImportFormat.PARQUET, uploaded_source, mapper)
