"""Preview of an import: the first messages of the uploaded file, and the problems of its first rows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from shared.catalog.snapshot import Catalog
from shared.cold_data.ports import BlobStore
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest
from shared.downloads.models import Job, build_job_ended_error
from shared.errors import Kind, WorkspaceError
from shared.fair_use.acting_member import acting_member
from shared.fair_use.fair_scheduler import FairScheduler
from shared.imports.csv_reader import HEAD_BYTES
from shared.imports.row_mapping import FileRejectedError, RowMapper
from shared.imports.service import get_import_request
from shared.imports.uploaded_file import UploadedSource, open_reader
from shared.imports.uploads import find_upload, require_complete_upload
from shared.runtime import SYSTEM_RUNTIME, Runtime, run_in_turn
from shared.telemetry.json_text import parse_lossless_json
from shared.timestamps import format_rfc3339

MAX_MESSAGES: Final = 100
MAX_ROWS: Final = 500
"""Number of rows that a preview reads; more than ``MAX_MESSAGES``, to find messages after invalid rows."""
MAX_PROBLEMS: Final = 100
_CONCURRENT: Final = 2
"""Number of previews that an instance creates at once; one principal gets half of them."""


@dataclass(frozen=True, slots=True)
class Preview:
    """First messages of an uploaded file, and the problems of its first rows.

    Attributes:
        columns: names of the file's columns.
        messages: the first messages as JSON objects.
        problems: pairs of row number and error message; the row number is None for a problem of the whole file.
    """

    columns: Sequence[str] = ()
    messages: Sequence[dict[str, Any]] = ()
    problems: Sequence[tuple[int | None, str]] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the preview as a JSON object."""
        return {
            "columns": list(self.columns),
            "messages": list(self.messages),
            "problems": [{"row": row, "message": message} for row, message in self.problems],
        }


class ImportPreview:
    """Creates previews of uploaded files, so that callers can check the column mapping of an import.

    Args:
        catalog: function that returns the current workspace catalog.
        blobs: blob container with the files of jobs.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, catalog: Callable[[], Awaitable[Catalog]], blobs: BlobStore, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._catalog = catalog
        self._blobs = blobs
        self._runtime = runtime
        # Reading waits for work in other threads, so it must not occupy the threads of that work.
        self._pool: Executor = runtime.open_pool(_CONCURRENT, "import previews")
        self._turns = FairScheduler(_CONCURRENT, leaves_slots_free=True)

    async def create_preview(self, job: Job, mapping: ImportMapping | None) -> Preview:
        """Return the preview of an import; nothing is stored. Principals take turns, and each has one preview at once.

        Args:
            job: job of the import.
            mapping: column mapping to try; None for the mapping of the import.

        Raises:
            WorkspaceError: the same errors as ``require_complete_upload``; CONFLICT ``IMPORT_ENDED`` if the file was
                deleted, because the import has ended; NOT_FOUND ``CONNECTION_NOT_FOUND`` if the connection of the
                import does not exist any more; UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        request = get_import_request(job)
        found = await find_upload(self._blobs, job.id)
        if found is None and not job.is_unfinished:
            raise build_job_ended_error(job)
        blob = require_complete_upload(found, request)
        mapper = build_row_mapper(await self._catalog(), job.connections[0], request, mapping, self._runtime)
        loop = asyncio.get_running_loop()
        source = UploadedSource(self._blobs, blob, loop)
        return await run_in_turn(self._turns, acting_member.get(), self._pool, _read_preview, request, source, mapper)


def build_row_mapper(
    catalog: Catalog, connection_lookup: str, request: ImportRequest, mapping: ImportMapping | None, runtime: Runtime
) -> RowMapper:
    """Return the mapper that converts the rows of an import to messages.

    Args:
        catalog: the current workspace catalog.
        connection_lookup: lookup (id in URLs) of the connection that receives the messages.
        request: request of the import.
        mapping: column mapping to use; None for the mapping of the import.
        runtime: clock, which limits how far times can be in the future.

    Raises:
        WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND``.
    """
    stored = catalog.connections.get(connection_lookup)
    if stored is None:
        raise WorkspaceError(
            Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", f"The connection {connection_lookup} does not exist."
        )
    policy = catalog.policies.telemetry
    latest = runtime.now() + timedelta(seconds=policy.max_ahead_seconds)
    return RowMapper(stored.value, request.format, mapping or request.mapping, policy, latest)


def _read_preview(request: ImportRequest, source: UploadedSource, mapper: RowMapper) -> Preview:
    try:
        reader = open_reader(request.format, source, mapper)
    except FileRejectedError as error:
        return Preview(problems=[(None, str(error))])
    try:
        step = reader.read_step(0, 1, MAX_ROWS)
    except FileRejectedError as error:
        return Preview(reader.columns, problems=[(None, str(error))])
    has_more = step is not None and step.next_position < reader.end_position
    if step is None or not (step.rows or has_more):
        return Preview(reader.columns, problems=[(None, "The file has no rows.")])
    messages = [_message_to_json(each, mapper.connection) for each in step.messages.slice(0, MAX_MESSAGES).to_pylist()]
    problems: list[tuple[int | None, str]] = [(each.number, each.reason) for each in step.rejected]
    # Only text has a limit of bytes that this problem states.
    is_limited = step.rows >= MAX_ROWS or request.format is not ImportFormat.PARQUET
    if has_more and is_limited and len(messages) < MAX_MESSAGES:
        limit = f"{MAX_ROWS} rows" if step.rows >= MAX_ROWS else f"{HEAD_BYTES:,} bytes"
        end = f"The preview ends after row {step.rows}, because it reads at most {limit}."
        # Clients that show only some of the problems show the first ones.
        problems.insert(0, (None, end))
    return Preview(reader.columns, messages, problems[:MAX_PROBLEMS])


def _message_to_json(message: dict[str, Any], connection_lookup: str) -> dict[str, Any]:
    return {
        "timestamp": format_rfc3339(message["timestamp"]),
        "connection": connection_lookup,
        "deviceId": message["device_id"],
        "messageId": message["message_id"],
        "payload": parse_lossless_json(message["payload"].encode()),
    }
