"""Download jobs: what was asked for, how far it is, which files came of it."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from shared.errors import Kind, WorkspaceError


class Format(StrEnum):
    """What files are made."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class JobStatus(StrEnum):
    """Where a job stands."""

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
        blob: its name in the store.
        rows: without the header.
        size: in bytes.
        sha256: lowercase hex, over all its bytes.
    """

    blob: str
    rows: int
    size: int
    sha256: str


class Part(_Record):
    """A stretch of one connection's time that one activity converts.

    Attributes:
        connection: whose rows.
        start: first instant, inclusive.
        end: last instant, exclusive.
        size: bytes that its files take at least.
        unpacked: bytes that its rows take when they are read, about.
        files: None until it is converted.
        columns: how many payload columns its CSV files have.
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
        """How many rows it has given so far."""
        return sum(file.rows for file in self.files or ())


class Job(_Record):
    """A download.

    Attributes:
        id: also the orchestration's.
        owner: member id of who asked.
        format: of the files.
        start: of the range, inclusive.
        end: of the range, exclusive.
        connections: whose data, in the order of the files.
        created_at: when it was asked for.
        expires_at: when job and files go.
        status: where it stands.
        error: why it failed, for the caller to read.
        parts: None until the job is planned; sorted by connection and time.
        leaves: by connection, the payload paths that its CSV files have columns for.
        complete_up_to: what was accepted before this instant was archived when the work began; None where that is
            not known.
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
        """Whether there is work left."""
        return self.status in UNFINISHED

    @property
    def rows(self) -> int:
        """How many rows are converted so far."""
        return sum(part.rows for part in self.parts or ())

    @property
    def stored_bytes(self) -> int:
        """Bytes of all its files so far."""
        return sum(file.size for part in self.parts or () for file in part.files or ())

    @property
    def connections_done(self) -> int:
        """How many connections are converted."""
        if self.parts is None:
            return 0
        waiting = {self.parts[number].connection for number in self.list_pending_parts()}
        return len(set(self.connections) - waiting)

    def list_pending_parts(self) -> list[int]:
        """Return the numbers of the parts to convert: the new ones, else those whose header lacks a column."""
        parts = list(enumerate(self.parts or ()))
        new = [number for number, part in parts if part.files is None]
        if new or self.format is not Format.CSV:
            return new
        return [number for number, part in parts if part.columns != len(self.leaves.get(part.connection, ()))]

    def files(self) -> list[tuple[str, StoredFile]]:
        """Return the files with their connections, in order."""
        return [(part.connection, file) for part in self.parts or () for file in part.files or ()]

    def plan(self, parts: tuple[Part, ...], *, complete: bool = False) -> "Job":
        """Return the job with its work laid out; as it is when that was done before.

        Args:
            parts: the work.
            complete: whether everything that was accepted before the job was made is archived.
        """
        if self.parts is not None or not self.unfinished:
            return self
        up_to = self.created_at if complete else None
        return self.model_copy(update={"parts": parts, "status": JobStatus.RUNNING, "complete_up_to": up_to})

    def complete_part(self, number: int, files: tuple[StoredFile, ...], leaves: frozenset[tuple[str, ...]]) -> "Job":
        """Return the job with a part's files; as it is when it has ended."""
        if not self.unfinished or self.parts is None:
            return self
        part = self.parts[number].model_copy(update={"files": files, "columns": len(leaves)})
        parts = (*self.parts[:number], part, *self.parts[number + 1 :])
        known = leaves | set(self.leaves.get(part.connection, ()))
        merged = {**self.leaves, part.connection: tuple(sorted(known))}
        return self.model_copy(update={"parts": parts, "leaves": merged})

    def ended(self, status: JobStatus, error: str | None = None) -> "Job":
        """Return the job at its end; as it is when it has ended already."""
        return self.model_copy(update={"status": status, "error": error}) if self.unfinished else self

    def cancel(self) -> "Job":
        """Return the job cancelled.

        Raises:
            WorkspaceError: CONFLICT ``DOWNLOAD_ENDED``.
        """
        if not self.unfinished:
            detail = f"The download has ended already; it is {self.status}."
            raise WorkspaceError(Kind.CONFLICT, "DOWNLOAD_ENDED", detail, currentStatus=self.status)
        return self.ended(JobStatus.CANCELLED)


def download_not_found() -> WorkspaceError:
    """Return the refusal of a job that is not there, has expired, or is somebody else's."""
    return WorkspaceError(Kind.NOT_FOUND, "DOWNLOAD_NOT_FOUND", "There is no such download.")
