"""Download jobs: request, progress and files."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from shared.errors import Kind, WorkspaceError


class Format(StrEnum):
    """File format of a download."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class JobStatus(StrEnum):
    """State of a job."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


UNFINISHED: Final = frozenset({JobStatus.PENDING, JobStatus.RUNNING})


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class StoredFile(_Record):
    """A file of a download.

    Attributes:
        blob: name of the blob.
        rows: number of rows without the header.
        size: size in bytes.
        sha256: hash of the file's bytes, lowercase hex.
    """

    blob: str
    rows: int
    size: int
    sha256: str


class Part(_Record):
    """A time range of one connection that one activity converts.

    Attributes:
        connection: lookup of the connection.
        start: inclusive start.
        end: exclusive end.
        size: minimum size of its files in bytes.
        unpacked: approximate size of its rows in memory, in bytes.
        files: None until it is converted.
        columns: number of payload columns in its CSV files.
    """

    connection: str
    start: datetime
    end: datetime
    size: int = 0
    unpacked: int = 0
    files: tuple[StoredFile, ...] | None = None
    columns: int = 0

    @property
    def rows(self) -> int:
        """Number of rows converted so far."""
        return sum(file.rows for file in self.files or ())


class Job(_Record):
    """A download job.

    Attributes:
        id: also the id of the orchestration.
        owner: member id of the requester.
        format: format of the files.
        start: inclusive start of the range.
        end: exclusive end of the range.
        connections: lookups of the connections, in the order of the files.
        created_at: time of the request.
        expires_at: time at which the job and its files are deleted.
        status: state of the job.
        error: reason of a failure, for the caller.
        parts: None until the job is planned; sorted by connection and time.
        leaves: payload paths with columns in the CSV files, by connection.
        complete_up_to: events accepted before this instant were archived when the work started; None if unknown.
    """

    id: str
    owner: str
    format: Format
    start: datetime
    end: datetime
    connections: tuple[str, ...]
    created_at: datetime
    expires_at: datetime
    status: JobStatus = JobStatus.PENDING
    error: str | None = None
    parts: tuple[Part, ...] | None = None
    leaves: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    complete_up_to: datetime | None = None

    @property
    def unfinished(self) -> bool:
        """True if the job is pending or running."""
        return self.status in UNFINISHED

    @property
    def rows(self) -> int:
        """Number of rows converted so far."""
        return sum(part.rows for part in self.parts or ())

    @property
    def stored_bytes(self) -> int:
        """Total size of its files so far, in bytes."""
        return sum(file.size for part in self.parts or () for file in part.files or ())

    @property
    def connections_done(self) -> int:
        """Number of connections that are converted completely."""
        if self.parts is None:
            return 0
        waiting = {self.parts[number].connection for number in self.list_pending_parts()}
        return len(set(self.connections) - waiting)

    def list_pending_parts(self) -> list[int]:
        """Return the numbers of parts to convert: new ones first, then those whose CSV header lacks a column."""
        parts = list(enumerate(self.parts or ()))
        new = [number for number, part in parts if part.files is None]
        if new or self.format is not Format.CSV:
            return new
        return [number for number, part in parts if part.columns != len(self.leaves.get(part.connection, ()))]

    def files(self) -> list[tuple[str, StoredFile]]:
        """Return the files with their connections, in order."""
        return [(part.connection, file) for part in self.parts or () for file in part.files or ()]

    def plan(self, parts: tuple[Part, ...], *, complete: bool = False) -> "Job":
        """Return the job with its parts; unchanged if it is planned or has ended.

        Args:
            parts: parts to convert.
            complete: whether all events accepted before the job's creation are archived.
        """
        if self.parts is not None or not self.unfinished:
            return self
        up_to = self.created_at if complete else None
        return self.model_copy(update={"parts": parts, "status": JobStatus.RUNNING, "complete_up_to": up_to})

    def complete_part(self, number: int, files: tuple[StoredFile, ...], leaves: frozenset[tuple[str, ...]]) -> "Job":
        """Return the job with a part's files; unchanged if the job has ended."""
        if not self.unfinished or self.parts is None:
            return self
        part = self.parts[number].model_copy(update={"files": files, "columns": len(leaves)})
        parts = (*self.parts[:number], part, *self.parts[number + 1 :])
        known = leaves | set(self.leaves.get(part.connection, ()))
        merged = {**self.leaves, part.connection: tuple(sorted(known))}
        return self.model_copy(update={"parts": parts, "leaves": merged})

    def finish(self, status: JobStatus, error: str | None = None) -> "Job":
        """Return the job with a final state; unchanged if it has ended."""
        return self.model_copy(update={"status": status, "error": error}) if self.unfinished else self

    def cancel(self) -> "Job":
        """Return the cancelled job.

        Raises:
            WorkspaceError: CONFLICT ``DOWNLOAD_ENDED``.
        """
        if not self.unfinished:
            detail = f"The download has already ended with status {self.status}."
            raise WorkspaceError(Kind.CONFLICT, "DOWNLOAD_ENDED", detail, currentStatus=self.status)
        return self.finish(JobStatus.CANCELLED)


def build_download_not_found() -> WorkspaceError:
    """Return the error for a job that does not exist, has expired, or belongs to another member."""
    return WorkspaceError(Kind.NOT_FOUND, "DOWNLOAD_NOT_FOUND", "The download does not exist or has expired.")
