"""Requests to import files of earlier telemetry, and their progress."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from shared.catalog.models import TimestampFormat


class ImportFormat(StrEnum):
    """Format of a file that is imported."""

    CSV = "csv"
    NDJSON = "ndjson"
    PARQUET = "parquet"


class ImportMapping(BaseModel):
    """Assignment of a file's columns to the fields of a telemetry message. In NDJSON, a column is a top-level property.

    Attributes:
        timestamp: column of the time of measurement.
        timestamp_format: format of the times.
        device: column of the device id; empty to use the connection's lookup (id in URLs) as the device id.
        message_id: column of the message id; empty if ids are derived from the content.
        columns: columns that become the payload; None for all columns that ``timestamp``, ``device`` and
            ``message_id`` do not name.
        delimiter: separator of the cells of CSV files.
        decimal: decimal mark of the numbers of CSV files.
        time_zone: IANA name of the zone of times without a zone; empty to reject such times.
    """

    model_config = ConfigDict(frozen=True)

    timestamp: str
    timestamp_format: TimestampFormat = TimestampFormat.RFC3339
    device: str = ""
    message_id: str = ""
    columns: tuple[str, ...] | None = None
    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    time_zone: str = ""


class UploadedFile(BaseModel):
    """Size, write time and ETag of the uploaded file at the start of the import; another upload would change them."""

    model_config = ConfigDict(frozen=True)

    size: int
    written_at: datetime
    etag: str = ""


class ImportStep(BaseModel):
    """Result of one step of an import, which reads a range of the uploaded file.

    Attributes:
        next_position: position in the file at which the next step starts.
        rows: number of rows that were read.
        accepted: number of rows that were stored as messages.
        duplicates: number of rows whose messages were stored already.
        rejected: number of rows that are not valid messages.
    """

    model_config = ConfigDict(frozen=True)

    next_position: int
    rows: int
    accepted: int
    duplicates: int
    rejected: int


class ImportRequest(BaseModel):
    """Request to import a file of earlier telemetry, and the progress of the import.

    Attributes:
        format: format of the file.
        file_name: name of the file, for display.
        declared_bytes: size of the file as announced by the caller; None if unknown.
        mapping: assignment of the file's columns to the fields of a telemetry message.
        upload_expires_at: time until which the file can be uploaded.
        started_at: time of the start; None before the start.
        file: size, write time and ETag of the uploaded file at the start; None before the start.
        steps: number of steps (ranges of the file) that are stored completely.
        open_step: number of the step whose rows may be in the archive, but not yet in the query table; None if there is
            no such step.
        open_result: result that the open step has once its rows are stored; None if there is no such step, or if an
            earlier version opened it.
        position: start of the next step: an offset in bytes or, in a Parquet file, the number of rows before the step.
        rows: number of rows that were read.
        accepted: number of rows that were stored as messages.
        duplicates: number of rows whose messages were stored already.
        rejected: number of rows that are not valid messages.
    """

    model_config = ConfigDict(frozen=True)

    format: ImportFormat
    file_name: str
    declared_bytes: int | None = None
    mapping: ImportMapping
    upload_expires_at: datetime
    started_at: datetime | None = None
    file: UploadedFile | None = None
    steps: int = 0
    open_step: int | None = None
    open_result: ImportStep | None = None
    position: int = 0
    rows: int = 0
    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0


def mark_step_partly_stored(request: ImportRequest, step_number: int, result: ImportStep) -> ImportRequest:
    """Return the import with ``open_step`` set to a step; return it unchanged if the step is not the next one."""
    if request.steps != step_number:
        return request
    return request.model_copy(update={"open_step": step_number, "open_result": result})


def mark_step_completely_stored(request: ImportRequest) -> ImportRequest:
    """Return the import without an open step."""
    return request.model_copy(update={"open_step": None, "open_result": None})


def add_step_result(request: ImportRequest, step_number: int, step: ImportStep) -> ImportRequest:
    """Return the import with a step's result in its progress; return it unchanged if the step is not the next one."""
    if request.steps != step_number:
        return request
    return mark_step_completely_stored(request).model_copy(
        update={
            "steps": step_number + 1,
            "position": step.next_position,
            "rows": request.rows + step.rows,
            "accepted": request.accepted + step.accepted,
            "duplicates": request.duplicates + step.duplicates,
            "rejected": request.rejected + step.rejected,
        }
    )
