"""Requests to import files of earlier telemetry, and their progress."""

from bisect import bisect_right
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
        attempt: random id of the attempt that read the step; empty if an earlier version read it.
    """

    model_config = ConfigDict(frozen=True)

    next_position: int
    rows: int
    accepted: int
    duplicates: int
    rejected: int
    attempt: str = ""


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
        attempts: number of the first counted step, and id, of each attempt that read counted steps, in the order of the
            steps. An earlier version read the steps before the first entry.
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
    attempts: tuple[tuple[int, str], ...] = ()
    position: int = 0
    rows: int = 0
    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0

    @property
    def open_attempt(self) -> str:
        """Id of the attempt that opened the open step; empty if there is no such step, or no id."""
        return "" if self.open_result is None else self.open_result.attempt

    def find_attempt_of_step(self, step_number: int) -> str:
        """Return the id of the attempt that read a counted step; an empty text if an earlier version read it."""
        index = bisect_right(self.attempts, step_number, key=lambda each: each[0])
        return self.attempts[index - 1][1] if index else ""


def build_step_file_name(step_number: int, attempt: str) -> str:
    """Build the name, without extension, of a file that an attempt stores for a step of an import.

    Each attempt has its own files, because Durable Functions can run two attempts of an import at the same time.

    Args:
        step_number: number of the step, from 0.
        attempt: id of the attempt; empty if an earlier version stored the file.
    """
    return f"{step_number:06d}-{attempt}" if attempt else f"{step_number:06d}"


def mark_step_partly_stored(request: ImportRequest, step_number: int, result: ImportStep) -> ImportRequest:
    """Return the import with ``open_step`` set to a step.

    Return it unchanged if the step is not the next one, or if it is open: another attempt may have archived rows.
    """
    if request.steps != step_number or request.open_result is not None:
        return request
    return request.model_copy(update={"open_step": step_number, "open_result": result})


def mark_step_completely_stored(request: ImportRequest) -> ImportRequest:
    """Return the import without an open step."""
    return request.model_copy(update={"open_step": None, "open_result": None})


def is_opened_by_other_attempt(request: ImportRequest, step: ImportStep) -> bool:
    """Return whether the open step has the result of another attempt than the given result."""
    return request.open_result is not None and request.open_attempt != step.attempt


def add_step_result(request: ImportRequest, step_number: int, step: ImportStep) -> ImportRequest:
    """Return the import with a step's result in its progress.

    Return it unchanged if the step is not the next one, or if another attempt has opened it.
    """
    if request.steps != step_number or is_opened_by_other_attempt(request, step):
        return request
    is_same_attempt = request.find_attempt_of_step(step_number) == step.attempt
    return mark_step_completely_stored(request).model_copy(
        update={
            "steps": step_number + 1,
            "attempts": request.attempts if is_same_attempt else (*request.attempts, (step_number, step.attempt)),
            "position": step.next_position,
            "rows": request.rows + step.rows,
            "accepted": request.accepted + step.accepted,
            "duplicates": request.duplicates + step.duplicates,
            "rejected": request.rejected + step.rejected,
        }
    )
