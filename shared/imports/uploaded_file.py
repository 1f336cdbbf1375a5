"""Reading of uploaded import files in a worker thread."""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from shared.cold_data.ports import Blob, BlobReplacedError, BlobStore
from shared.downloads.import_request import ImportFormat
from shared.errors import Kind, WorkspaceError
from shared.imports.csv_reader import CsvReader
from shared.imports.json_lines_reader import JsonLinesReader
from shared.imports.row_mapping import FileRejectedError, RowMapper
from shared.imports.step_rows import StepReader

_POLL_SECONDS: Final = 0.5


class UploadedSource:
    """RangeSource that reads an uploaded blob: a worker thread waits while the event loop reads the blob.

    Args:
        blobs: store of the blob.
        blob: the blob; another file that replaces it is not read.
        loop: event loop on which the store runs.
    """

    def __init__(self, blobs: BlobStore, blob: Blob, loop: asyncio.AbstractEventLoop) -> None:
        self._blobs = blobs
        self._blob = blob
        self._loop = loop

    @property
    def size(self) -> int:
        """Size of the uploaded file in bytes."""
        return self._blob.size

    def read(self, start: int, size: int) -> bytes:
        """Return ``size`` bytes from the byte position ``start`` on; fewer at the end of the file.

        Raises:
            FileRejectedError: the file was deleted or replaced.
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        blob = self._blob
        request = self._blobs.read_range(blob.name, start, size, blob.etag)
        reading = asyncio.run_coroutine_threadsafe(request, self._loop)
        try:
            return self._wait_for_read(reading)
        except FileNotFoundError:
            raise FileRejectedError("The uploaded file no longer exists.") from None
        except BlobReplacedError:
            raise FileRejectedError("The file was uploaded again while it was read.") from None

    def _wait_for_read(self, reading: Future[bytes]) -> bytes:
        # The loop can end during the wait, and then the future never completes.
        while not self._loop.is_closed():
            with suppress(TimeoutError):
                return reading.result(_POLL_SECONDS)
        raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "The service is stopping; retry.")


def open_reader(file_format: ImportFormat, source: UploadedSource, mapper: RowMapper) -> StepReader:
    """Open an uploaded file with the reader for its format; the call blocks.

    Raises:
        FileRejectedError: the file cannot be imported.
        WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
    """
    match file_format:
        case ImportFormat.CSV:
            return CsvReader(source, mapper)
        case ImportFormat.NDJSON:
            return JsonLinesReader(source, mapper)
        case ImportFormat.PARQUET:
            from shared.imports.parquet_reader import ParquetReader  # noqa: PLC0415  loading it takes long

            return ParquetReader(source, mapper)
