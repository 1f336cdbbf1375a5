"""Models of background jobs (downloads, audit bundles, imports): request, progress and files."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from shared.downloads.import_request import (
    ImportMapping,
    ImportRequest,
    ImportStep,
    UploadedFile,
    add_step_result,
    is_opened_by_other_attempt,
    mark_step_completely_stored,
    mark_step_partly_stored,
)
from shared.errors import Kind, WorkspaceError


class JobKind(StrEnum):
    """Kind of a background job, as error messages name it."""

    DOWNLOAD = "download"
    BUNDLE = "bundle"
    IMPORT = "import"


class DownloadFormat(StrEnum):
    """File format of a download: CSV, JSON lines or Parquet."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class JobStatus(StrEnum):
    """State of a background job."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobEndedError(Exception):
    """Raised if a job ends or expires while a process works on it."""


UNFINISHED: Final = frozenset({JobStatus.PENDING, JobStatus.RUNNING})


class _JobRecord(BaseModel):
    """Immutable base class of the models of background jobs, which the job store contains."""

    model_config = ConfigDict(frozen=True)


class StoredFile(_JobRecord):
    """File of a download in the blob store.

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


class ConnectionFile(NamedTuple):
    """File of a job with the lookup (id in URLs) of its connection."""

    connection: str
    file: StoredFile


class Part(_JobRecord):
    """Part of a download: a time range of one connection, which one step of the job converts to files.

    Attributes:
        connection: lookup (id in URLs) of the connection.
        start: start of the time range, inclusive.
        end: end of the time range, exclusive.
        size: minimum size of the part's files in bytes.
        unpacked: approximate size of the part's rows in memory, in bytes.
        files: files of the part; None until the part is converted.
        columns: number of payload columns in the part's CSV files.
    """

    connection: str
    start: datetime
    end: datetime
    size: int = 0
    unpacked: int = 0
    files: tuple[StoredFile, ...] | None = None
    columns: int = 0

    @property
    def row_count(self) -> int:
        """Number of telemetry rows converted so far."""
        return sum(file.rows for file in self.files or ())


class BundledChain(_JobRecord):
    """Audit chain that an audit bundle contains.

    Attributes:
        target: type of the chain, such as ``PlatformConfig``.
        scope_key: scope of the records, if the type has one chain for each scope; empty for a workspace chain.
    """

    target: str
    scope_key: str = ""


class BundleRequest(_JobRecord):
    """Request for an audit bundle (ZIP file of audit records with proofs), and its progress.

    Attributes:
        chains: chains of the bundle, in the order of the bundle's files.
        start_date: earliest time of a record, as text in the format of record timestamps; empty for no limit.
        end_date: latest time of a record; empty for no limit.
        entity_id: only records about this entity; empty for all.
        receipts: True if the bundle contains a receipt (RFC 9942) of each record.
        chains_done: number of chains that are written.
        records: number of records that are written.
        broken_chains: indexes in ``chains`` of the chains that the verification for the bundle found broken.
    """

    chains: tuple[BundledChain, ...]
    start_date: str = ""
    end_date: str = ""
    entity_id: str = ""
    receipts: bool = False
    chains_done: int = 0
    records: int = 0
    broken_chains: tuple[int, ...] = ()


class Job(_JobRecord):
    """Background job: a download, an audit bundle, or an import of earlier telemetry.

    Attributes:
        id: unique id; also the id of the orchestration (durable function) that runs the job.
        owner: member id of the requester.
        format: format of the files.
        start: start of the time range, inclusive.
        end: end of the time range, exclusive.
        connections: lookups (ids in URLs) of the connections, in the order of the files.
        created_at: time of the request.
        expires_at: time at which the job and its files are deleted.
        status: state of the job.
        error: reason of a failure, for the caller; None if the job has not failed.
        error_code: code of the failure, for programs; None if the job has not failed, or its failure has no code.
        parts: parts of the download, sorted by connection and time; None until the job is planned.
        leaves: payload paths with columns in the CSV files, by connection.
        bundle: request for an audit bundle; None for other jobs. A bundle has no connections and no range.
        import_request: request for an import; None for other jobs. An import has no range.
        complete_up_to: events accepted before this instant were archived when the work started; None if unknown.
    """

    id: str
    owner: str
    format: DownloadFormat
    start: datetime
    end: datetime
    connections: tuple[str, ...]
    created_at: datetime
    expires_at: datetime
    status: JobStatus = JobStatus.PENDING
    error: str | None = None
    error_code: str | None = None
    parts: tuple[Part, ...] | None = None
    leaves: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    complete_up_to: datetime | None = None
    bundle: BundleRequest | None = None
    import_request: ImportRequest | None = None

    @property
    def kind(self) -> JobKind:
        """Kind of the job, derived from its request."""
        if self.import_request is not None:
            return JobKind.IMPORT
        return JobKind.DOWNLOAD if self.bundle is None else JobKind.BUNDLE

    @property
    def is_unfinished(self) -> bool:
        """True if the job is pending or running."""
        return self.status in UNFINISHED

    @property
    def partly_stored_step_number(self) -> int | None:
        """Number of the import step whose rows may be in the archive, but not yet in the query table; usually None."""
        return None if self.import_request is None else self.import_request.open_step

    @property
    def row_count(self) -> int:
        """Number of telemetry rows converted so far."""
        return sum(part.row_count for part in self.parts or ())

    @property
    def stored_bytes(self) -> int:
        """Total size in bytes of the files that the job has stored so far."""
        return sum(file.size for part in self.parts or () for file in part.files or ())

    @property
    def converted_connection_count(self) -> int:
        """Number of connections that are converted completely."""
        if self.parts is None:
            return 0
        waiting = {self.parts[number].connection for number in self.list_pending_part_numbers()}
        return len(set(self.connections) - waiting)

    def list_pending_part_numbers(self) -> list[int]:
        """Return the numbers of the parts to convert next.

        These are the parts without files or, if all parts have files, the parts whose CSV files lack a column.
        """
        parts = list(enumerate(self.parts or ()))
        new = [number for number, part in parts if part.files is None]
        if new or self.format is not DownloadFormat.CSV:
            return new
        return [number for number, part in parts if part.columns != len(self.leaves.get(part.connection, ()))]

    def list_files(self) -> list[ConnectionFile]:
        """Return the files of all parts in order, each with the lookup (id in URLs) of its connection.

        For the file of an audit bundle, the lookup is replaced by the text ``audit-bundle``.
        """
        return [ConnectionFile(part.connection, file) for part in self.parts or () for file in part.files or ()]

    def add_parts(self, parts: tuple[Part, ...], *, is_archive_complete: bool = False) -> "Job":
        """Return the job with the parts to convert; return the job unchanged if it has parts already or has ended.

        Args:
            parts: parts to convert.
            is_archive_complete: True if all events that were accepted before the job's creation are archived.
        """
        if self.parts is not None or not self.is_unfinished:
            return self
        up_to = self.created_at if is_archive_complete else None
        return self.model_copy(update={"parts": parts, "status": JobStatus.RUNNING, "complete_up_to": up_to})

    def complete_part(
        self, part_number: int, files: tuple[StoredFile, ...], column_paths: frozenset[tuple[str, ...]]
    ) -> "Job":
        """Return the job with the files of a converted part and the payload paths (``column_paths``) of their columns.

        Return the job unchanged if it has ended. Also return it unchanged if the part is not pending: another process
        has converted the part, and the job can complete with the files of that process at any time.
        """
        if not self.is_unfinished or self.parts is None or part_number not in self.list_pending_part_numbers():
            return self
        part = self.parts[part_number].model_copy(update={"files": files, "columns": len(column_paths)})
        parts = (*self.parts[:part_number], part, *self.parts[part_number + 1 :])
        known = column_paths | set(self.leaves.get(part.connection, ()))
        merged = {**self.leaves, part.connection: tuple(sorted(known))}
        return self.model_copy(update={"parts": parts, "leaves": merged})

    def finish(self, status: JobStatus, error: WorkspaceError | str | None = None) -> "Job":
        """Return the job with a final status; return the job unchanged if it has already ended.

        ``error`` is the reason of a failure, for the caller, with a code if there is one; None for another status.
        """
        if not self.is_unfinished:
            return self
        code = None
        if isinstance(error, WorkspaceError):
            code, error = error.code, f"{error.code}: {error.detail}"
        return self.model_copy(update={"status": status, "error": error, "error_code": code})

    def add_bundle_progress(self, chains_done: int, records_done: int, broken_chains: Sequence[int]) -> "Job":
        """Return the job with new progress of its audit bundle.

        A job that has ended, that has its file, or that does not build an audit bundle, is returned unchanged.
        """
        if self.bundle is None or self.parts is not None or not self.is_unfinished:
            return self
        progress = {"chains_done": chains_done, "records": records_done, "broken_chains": tuple(broken_chains)}
        bundle = self.bundle.model_copy(update=progress)
        return self.model_copy(update={"status": JobStatus.RUNNING, "bundle": bundle})

    def add_bundle_file(self, file: StoredFile, broken_chains: Sequence[int]) -> "Job":
        """Return the job with the file of its complete audit bundle, and with the final progress of this build.

        This progress replaces that of another process which builds the same bundle.
        A job that has ended, or that does not build an audit bundle, is returned unchanged.

        Args:
            file: the stored file.
            broken_chains: indexes of the chains that the verification for this file found broken.
        """
        if self.bundle is None or not self.is_unfinished:
            return self
        part = Part(connection="audit-bundle", start=self.start, end=self.end, files=(file,))
        progress = {
            "chains_done": len(self.bundle.chains),
            "records": file.rows,
            "broken_chains": tuple(broken_chains),
        }
        return self.model_copy(update={"parts": (part,), "bundle": self.bundle.model_copy(update=progress)})

    def start_import(
        self, at: datetime, expires_at: datetime, file: UploadedFile, mapping: ImportMapping | None
    ) -> "Job":
        """Return the job as a started import; return it unchanged if it is no import, was started before or has ended.

        Args:
            at: time of the start.
            expires_at: time at which the import and its files are deleted.
            file: the uploaded file.
            mapping: replaces the column mapping of the import; None to leave the mapping.
        """
        if self.import_request is None or self.import_request.started_at is not None or not self.is_unfinished:
            return self
        replaced = {} if mapping is None else {"mapping": mapping}
        request = self.import_request.model_copy(update={"started_at": at, "file": file, **replaced})
        return self.model_copy(update={"import_request": request, "expires_at": expires_at})

    def mark_step_partly_stored(self, step_number: int, result: ImportStep) -> "Job":
        """Return the job with ``open_step`` set to a step whose rows are being stored, and with the step's result.

        Return the job unchanged if it has ended, if the step is not the next one, or if it is open already.
        """
        if self.import_request is None or not self.is_unfinished:
            return self
        request = mark_step_partly_stored(self.import_request, step_number, result)
        return self.model_copy(update={"import_request": request})

    def mark_step_completely_stored(self, step_number: int) -> "Job":
        """Return the job with ``open_step`` cleared, because all rows of this step are stored.

        Return the job unchanged if ``open_step`` is not this step.
        """
        if self.import_request is None or self.import_request.open_step != step_number:
            return self
        return self.model_copy(update={"import_request": mark_step_completely_stored(self.import_request)})

    def add_import_step_result(self, step_number: int, step: ImportStep) -> "Job":
        """Return the job with the result of an import step, after all rows of the step have been stored.

        If the job has ended, only :meth:`mark_step_completely_stored` is applied. If the job has the result already,
        its progress does not change. If another attempt has opened the step, the step remains open.
        """
        if self.import_request is None or is_opened_by_other_attempt(self.import_request, step):
            return self
        if not self.is_unfinished:
            return self.mark_step_completely_stored(step_number)
        request = add_step_result(self.import_request, step_number, step)
        return self.model_copy(update={"status": JobStatus.RUNNING, "import_request": request})

    def add_rejected_rows_file(self, file: StoredFile) -> "Job":
        """Return the job with the file of an import's rejected rows; return the job unchanged if it has ended."""
        part = Part(connection=self.connections[0], start=self.start, end=self.end, files=(file,))
        return self.model_copy(update={"parts": (part,)}) if self.is_unfinished else self

    def cancel(self) -> "Job":
        """Return the job with the status ``cancelled``.

        Raises:
            WorkspaceError: CONFLICT ``DOWNLOAD_ENDED``, ``BUNDLE_ENDED`` or ``IMPORT_ENDED``, by the kind of the job,
                if it has ended already.
        """
        if not self.is_unfinished:
            raise build_job_ended_error(self)
        return self.finish(JobStatus.CANCELLED)


def build_job_ended_error(job: Job) -> WorkspaceError:
    """Return the error for an attempt to change a job that has ended."""
    detail = f"The {job.kind} has already ended with status {job.status}."
    match job.kind:
        case JobKind.DOWNLOAD:
            return WorkspaceError(Kind.CONFLICT, "DOWNLOAD_ENDED", detail, currentStatus=job.status)
        case JobKind.BUNDLE:
            return WorkspaceError(Kind.CONFLICT, "BUNDLE_ENDED", detail, currentStatus=job.status)
        case JobKind.IMPORT:
            return WorkspaceError(Kind.CONFLICT, "IMPORT_ENDED", detail, currentStatus=job.status)


def build_job_not_found_error(kind: JobKind) -> WorkspaceError:
    """Return the error for a job that does not exist, has expired, or belongs to another member.

    Args:
        kind: kind of the job that the caller requested.
    """
    detail = f"The {kind} does not exist or has expired."
    match kind:
        case JobKind.DOWNLOAD:
            return WorkspaceError(Kind.NOT_FOUND, "DOWNLOAD_NOT_FOUND", detail)
        case JobKind.BUNDLE:
            return WorkspaceError(Kind.NOT_FOUND, "BUNDLE_NOT_FOUND", detail)
        case JobKind.IMPORT:
            return WorkspaceError(Kind.NOT_FOUND, "IMPORT_NOT_FOUND", detail)
