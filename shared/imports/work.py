"""Background work of an import: reads the file in steps, and stores the messages of each step once.

A step can be repeated; once it is open, its rows do not change. The job's record contains the position after the last
complete step, so that the work continues there after a restart.

Before the rows of a step are added to the archive, they are stored in a file, and the job's record names the step as
open, with its result. If an attempt ends before the step is complete, for example because the process was killed, the
next attempt completes the step from this file, also if the import was cancelled in the meantime. It does not convert
the rows again, because the clock, the telemetry policy or the devices of the connection could now give other messages.
Archive and query table therefore have the same rows of an import that has ended.

Two attempts of an import can run at the same time. Each has its own files, and only one of them can open a step.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn

import pyarrow as pa

from shared.background.ports import JobLeaseStore
from shared.catalog.snapshot import Catalog
from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import require_scratch_space
from shared.disk_space.guard import DiskGuard, DiskState
from shared.downloads.expiry import (
    build_job_blob_prefix,
    build_step_blob_name,
    remove_files_of_ended_job,
    remove_job_files_except_result,
)
from shared.downloads.import_request import ImportStep, build_step_file_name
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import Job, JobEndedError, JobStatus, StoredFile
from shared.downloads.ports import ArchiveProgress, JobStore
from shared.errors import Kind, WorkspaceError
from shared.fair_use.fair_scheduler import FairScheduler
from shared.imports.archive_writer import (
    HistoryArchive,
    ImportSource,
    QueryTableFile,
    UnstoredBlob,
    read_query_table_file,
    write_query_table_file,
)
from shared.imports.ports import TelemetryTable
from shared.imports.preview import build_row_mapper
from shared.imports.row_mapping import FileRejectedError
from shared.imports.service import get_import_request
from shared.imports.step_rows import (
    MAX_LISTED,
    RejectedRow,
    StepReader,
    append_rejected_rows,
    create_rejected_rows_file,
    format_rejected_rows_as_csv,
    measure_file,
)
from shared.imports.uploaded_file import UploadedSource, open_reader
from shared.imports.uploads import find_upload
from shared.interpreter import release_unused_memory
from shared.observability import logs
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime, run_in_pool

RUN_SECONDS: Final = 60.0
"""Seconds after which a run of steps ends, to stay below the Functions host's time limit for activities."""
LEASE: Final = timedelta(minutes=5)
"""Time for which an import reserves its connection; the work of the import extends the reservation until it ends.

If no attempt of the import runs any more, for example after a crash, other imports wait until this time has passed.
"""
MAX_WAITING: Final = 3
"""Maximum number of waiting imports of one principal per process. Further imports are retried later."""
ARCHIVE_TIMEOUT_SECONDS: Final = 60.0
"""Seconds that an import waits until earlier events are archived; it compares its messages with the archive."""
FAILURE_MESSAGE: Final = "The import failed after retries; the service log contains the reason."

_LOG = logs.get_logger("imports")


class RunResult(StrEnum):
    """Result of a run of import steps: ended, more steps to do, or waiting for a resource."""

    ENDED = "ended"
    WORKING = "working"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class ImportStores:
    """Stores that imports use.

    Attributes:
        jobs: store of background jobs.
        blobs: blob container with the files of jobs.
        archive: archive of telemetry messages.
        table: table of recent telemetry, which KQL queries read.
        leases: reserve a connection for one import at a time.
        progress: waits until accepted telemetry events are archived.
        scratch: folder of temporary files.
        disk: reports whether the disk is full; imports wait while it is.
        table_compression: compression method of the files for the query table, by its name in Arrow.
    """

    jobs: JobStore
    blobs: BlobStore
    archive: HistoryArchive
    table: TelemetryTable
    leases: JobLeaseStore
    progress: ArchiveProgress
    scratch: Path
    disk: DiskGuard
    table_compression: str = "snappy"


@dataclass(slots=True)
class PreparedStep:
    """Step that was read and compared with the stored messages, but is not stored yet.

    Attributes:
        next_position: position in the file at which the next step starts.
        rows: number of rows of the step.
        source: the import, with the surfaces (groups of connections) of its connection when the step was prepared.
        messages: messages that are not stored yet; empty when they are not needed any more, to free their memory.
        blobs: archive blobs with the messages; None if there are too many to build them in advance, or they are stored.
        duplicates: number of messages that were stored before.
        rejected: rejected rows of the step.
    """

    next_position: int
    rows: int
    source: ImportSource
    messages: pa.Table
    blobs: Sequence[UnstoredBlob] | None
    duplicates: int
    rejected: Sequence[RejectedRow]


class ImportRunner:
    """Executes the steps of imports.

    Args:
        catalog: function that returns the current workspace catalog.
        stores: stores that imports use.
        quota: counts and limits the jobs of each principal.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        stores: ImportStores,
        quota: JobQuota,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._stores = stores
        self._quota = quota
        self._runtime = runtime
        # One step uses all processors. Principals take turns after each step.
        self._lane = FairScheduler(1, 1 + MAX_WAITING)
        # Reading waits for work in other threads, so it must not occupy the threads of that work.
        self._pool = runtime.open_pool(1, "imports")
        # A search takes much memory, so imports into different connections search one after another.
        self._search_lock = asyncio.Lock()

    async def run_steps(self, job_id: str) -> RunResult:
        """Import a file step by step until its end, or until ``RUN_SECONDS`` have passed.

        Returns:
            ``ENDED`` if the job has ended; ``WORKING`` if steps remain; ``WAITING`` if another import writes to the
            connection, the principal has too many waiting imports, or the disk is full.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond; retry.
        """
        job = await self._stores.jobs.find_job(job_id)
        if (
            job is None
            or job.import_request is None
            or (not job.is_unfinished and job.partly_stored_step_number is None)
        ):
            # The process that ended the job may have failed before it released the connection or deleted the files. The
            # connection is first, so that other imports do not wait while the files cannot be deleted.
            if job is not None and job.import_request is not None:
                await self._release_connection(job)
            await remove_job_files_except_result(self._stores.blobs, self._stores.jobs, job_id)
            return RunResult.ENDED
        if await self._stores.disk.read_disk_state() is DiskState.FULL:
            return RunResult.WAITING
        if not self._lane.has_room(job.owner) or not await self._try_reserve_connection(job):
            return RunResult.WAITING
        if await self._run_while_reserved(job, self._run_steps_or_complete_step(job)) is RunResult.WORKING:
            return RunResult.WORKING
        # Not sooner: before the import ends, another attempt of it can still store rows.
        await self._release_connection(job)
        await remove_job_files_except_result(self._stores.blobs, self._stores.jobs, job_id)
        return RunResult.ENDED

    async def fail_job(self, job_id: str) -> None:
        """Mark an import job as failed after its last retry; the next ``run_steps`` completes a partly stored step."""
        await self._end_job(job_id, JobStatus.FAILED, FAILURE_MESSAGE)

    async def _run_steps_or_complete_step(self, job: Job) -> RunResult:
        """Run an import's steps; if the import has ended, complete its partly stored step.

        Returns:
            ``ENDED``, or ``WORKING`` if steps remain.
        """
        if job.is_unfinished and await self._run_steps_or_fail(job) is RunResult.WORKING:
            return RunResult.WORKING
        await self._complete_partly_stored_step(job)
        return RunResult.ENDED

    async def _run_steps_or_fail(self, job: Job) -> RunResult:
        """Run an import's steps; mark its job as failed after a permanent error.

        Returns:
            ``ENDED``, or ``WORKING`` if steps remain.
        """
        try:
            return await self._run_steps_until_deadline(job)
        except JobEndedError:
            return RunResult.ENDED
        except (FileRejectedError, WorkspaceError) as error:
            await self._fail_job_unless_retryable(job.id, error)
            return RunResult.ENDED

    async def _fail_job_unless_retryable(self, job_id: str, error: FileRejectedError | WorkspaceError) -> None:
        """Mark an import job as failed; raise the error again if a retry can succeed."""
        if isinstance(error, FileRejectedError):
            await self._end_job(job_id, JobStatus.FAILED, str(error))
        elif error.kind in {Kind.UNPROCESSABLE, Kind.STORAGE_FULL, Kind.NOT_FOUND}:
            await self._end_job(job_id, JobStatus.FAILED, error)
        else:
            raise error

    async def _try_reserve_connection(self, job: Job) -> bool:
        """Reserve the connection of an import, so that two imports cannot store the same rows.

        Return False if another import has reserved the connection.
        """
        at = self._runtime.now()
        claim = await self._stores.leases.claim_job(_build_lease_name(job), job.id, at, at + LEASE, at)
        return claim.granted

    async def _release_connection(self, job: Job) -> None:
        await self._stores.leases.release_lease(_build_lease_name(job), job.id, self._runtime.now())

    async def _run_while_reserved[T](self, job: Job, work: Coroutine[Any, Any, T]) -> T:
        """Run work of an import, and extend the reservation of its connection meanwhile; return the work's result.

        One step can take longer than the reservation, for example if its rows are in thousands of hours.

        Raises:
            WorkspaceError: UNAVAILABLE if the reservation has ended; the work was cancelled.
        """
        working = asyncio.create_task(work)
        extending = asyncio.create_task(self._extend_reservation_until_lost(job))
        try:
            await asyncio.wait((working, extending), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await extending
            return working.result()
        finally:
            for task in (working, extending):
                task.cancel()
            await asyncio.gather(working, extending, return_exceptions=True)

    async def _extend_reservation_until_lost(self, job: Job) -> NoReturn:
        """Extend the reservation of a job's connection again and again; raise UNAVAILABLE if it has ended."""
        while True:
            await self._runtime.sleep(LEASE.total_seconds() / 3)
            try:
                is_reserved = await self._try_extend_reservation(job)
            except WorkspaceError as error:
                _LOG.warning("a reservation could not be extended: %s", error, extra=logs.fields(job=job.id))
                continue
            if not is_reserved:
                raise _build_reservation_lost_error()

    async def _run_steps_until_deadline(self, job: Job) -> RunResult:
        """Run steps of an import that has reserved its connection.

        Returns:
            ``ENDED`` if the import is completed; ``WORKING`` if steps remain, at the deadline or on a full disk.
        """
        deadline = self._runtime.monotonic() + RUN_SECONDS
        attempt = self._runtime.new_id()
        if get_import_request(job).steps == 0:
            await self._stores.progress.wait_until_archived(ARCHIVE_TIMEOUT_SECONDS)
        reader = await self._open_reader(job)
        steps = get_import_request(job).steps
        upcoming = self._start_step_preparation(job, reader)
        try:
            while True:
                async with self._lane.occupy_slot(job.owner):
                    job = await self._reload_unfinished_job(job)
                    if (result := get_import_request(job).open_result) is not None:
                        job = await self._complete_step_of_earlier_attempt(job, result)
                    step = await upcoming
                    if get_import_request(job).steps != steps:
                        # Another attempt has stored this step; its rows would count twice.
                        steps = get_import_request(job).steps
                        step = await self._start_step_preparation(job, reader)
                    if step is None:
                        await self._complete_job(job)
                        return RunResult.ENDED
                    # The next step is prepared while this one is stored, so that both processors are busy.
                    archived = asyncio.Event()
                    upcoming = self._start_step_preparation(job, reader, step, archived)
                    await self._store_step(job, step, archived, attempt)
                    steps += 1
                    del step
                    await self._runtime.run_in_thread(release_unused_memory)
                if not await self._has_time_and_disk_space(deadline):
                    return RunResult.WORKING
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)

    async def _has_time_and_disk_space(self, deadline: float) -> bool:
        is_full = await self._stores.disk.read_disk_state() is DiskState.FULL
        return not is_full and self._runtime.monotonic() <= deadline

    async def _reload_unfinished_job(self, job: Job) -> Job:
        """Read the job of an import from the store again, and return it.

        Raises:
            JobEndedError: the job has ended.
        """
        current = await self._stores.jobs.find_job(job.id)
        if current is None or not current.is_unfinished:
            raise JobEndedError
        return current

    async def _extend_reservation(self, job: Job) -> None:
        """Extend the reservation of a job's connection; raise UNAVAILABLE if the reservation has ended."""
        if not await self._try_extend_reservation(job):
            raise _build_reservation_lost_error()

    async def _try_extend_reservation(self, job: Job) -> bool:
        return await self._stores.leases.try_extend_lease(_build_lease_name(job), job.id, self._runtime.now() + LEASE)

    async def _open_reader(self, job: Job) -> StepReader:
        request = get_import_request(job)
        blob = await find_upload(self._stores.blobs, job.id)
        if blob is None or request.file is None:
            raise FileRejectedError("The uploaded file no longer exists.")
        # Imports that an earlier version started have no ETag.
        etag = request.file.etag or blob.etag
        if (blob.size, blob.written_at, blob.etag) != (request.file.size, request.file.written_at, etag):
            raise FileRejectedError("The file was uploaded again after the start; create a new import.")
        mapper = build_row_mapper(await self._catalog(), job.connections[0], request, None, self._runtime)
        loop = asyncio.get_running_loop()
        source = UploadedSource(self._stores.blobs, blob, loop)
        return await run_in_pool(self._pool, open_reader, request.format, source, mapper)

    def _start_step_preparation(
        self, job: Job, reader: StepReader, current: PreparedStep | None = None, archived: asyncio.Event | None = None
    ) -> "asyncio.Task[PreparedStep | None]":
        """Start a task that reads the next step and drops its messages that are already stored.

        Args:
            job: the import; its progress excludes the current step.
            reader: reader of the uploaded file.
            current: step that is stored meanwhile; None if all steps before the next one are stored.
            archived: event that is set when the archive has the messages of the current step and their memory is free.
        """
        request = get_import_request(job)
        position, first_row_number = request.position, request.rows + 1
        if current is not None:
            position, first_row_number = current.next_position, first_row_number + current.rows
        return asyncio.create_task(self._prepare_step(job, reader, position, first_row_number, archived))

    async def _prepare_step(
        self, job: Job, reader: StepReader, position: int, first_row_number: int, archived: asyncio.Event | None
    ) -> PreparedStep | None:
        """Read a step, drop the messages that are already stored, and build archive blobs of the new messages.

        Before the comparison with the stored messages, wait for ``archived``: the archive then has the messages of the
        previous step. Return None at the end of the file.
        """
        step = await run_in_pool(self._pool, reader.read_step, position, first_row_number)
        if step is None:
            return None
        if archived is not None:
            # A message of this step can repeat one of the step before it.
            await archived.wait()
        source = await self._build_import_source(job)
        messages = await self._select_new_messages(source, first_row_number, step.messages)
        duplicates = step.messages.num_rows - messages.num_rows
        # The blobs are built while the previous step is stored, because storing mostly waits for other processes.
        blobs = await self._stores.archive.build_blobs_unless_too_many(source, messages)
        return PreparedStep(step.next_position, step.rows, source, messages, blobs, duplicates, step.rejected)

    async def _select_new_messages(self, source: ImportSource, first_row_number: int, messages: pa.Table) -> pa.Table:
        async with self._search_lock:
            return await self._stores.archive.select_new_messages(source, first_row_number, messages)

    async def _store_step(self, job: Job, step: PreparedStep, archived: asyncio.Event, attempt: str) -> None:
        """Store a step's messages, then count its rows.

        Args:
            job: the import.
            step: the step.
            archived: event to set once the archive has the messages.
            attempt: id of this attempt of the import.
        """
        step_number, accepted = get_import_request(job).steps, step.messages.num_rows
        source = await self._build_import_source(job)
        result = ImportStep(
            next_position=step.next_position,
            rows=step.rows,
            accepted=accepted,
            duplicates=step.duplicates,
            rejected=len(step.rejected),
            attempt=attempt,
        )
        # They precede the opening of the step, after which its rows are not converted again.
        await self._store_rejected_rows(job, step, attempt)
        if accepted:
            # The preparation of the step can have taken longer than the reservation if the process was suspended.
            await self._extend_reservation(job)
            await self._begin_storing_step(job, source, result, step.messages)
            # The surfaces of the connection may have changed since the step was prepared.
            blobs = step.blobs if step.source == source else None
            if blobs is not None:
                step.messages = step.messages.schema.empty_table()
            # The archive comes first: a row in the table that is not in the archive could be imported again.
            await self._stores.archive.store_messages(source, step.messages, blobs)
            step.messages, step.blobs = step.messages.schema.empty_table(), None
        # The search for stored rows of the next step needs much memory, so it starts only now.
        archived.set()
        if accepted:
            await self._ingest_step_file(job, step_number, attempt)
        await self._add_step_result(job, step_number, result)
        if accepted:
            await self._stores.blobs.delete([build_step_blob_name(job.id, step_number, attempt)])

    async def _add_step_result(self, job: Job, step_number: int, result: ImportStep) -> Job:
        """Count the rows of a step in the job's record, and return the job.

        Raises:
            JobEndedError: the job has ended.
            WorkspaceError: UNAVAILABLE if another attempt has opened the step, or its result of the step counts.
        """
        count("workspace.imports.rows", result.rows)
        changed = await self._stores.jobs.change(
            job.id, lambda current: current.add_import_step_result(step_number, result)
        )
        if changed is None or not changed.is_unfinished:
            raise JobEndedError
        request = get_import_request(changed)
        # The step of another attempt can end at another row, for example if another version of the service read it.
        if request.steps == step_number or request.find_attempt_of_step(step_number) != result.attempt:
            raise _build_other_attempt_error()
        return changed

    async def _ingest_step_file(self, job: Job, step_number: int, attempt: str) -> None:
        name = build_step_blob_name(job.id, step_number, attempt)
        await self._stores.table.ingest(name, _build_ingestion_tag(job, step_number))

    async def _build_import_source(self, job: Job) -> ImportSource:
        catalog, lookup = await self._catalog(), job.connections[0]
        ingested_at = get_import_request(job).started_at or job.created_at
        return ImportSource(job.id, lookup, catalog.list_surface_lookups_of_connection(lookup), ingested_at)

    async def _begin_storing_step(self, job: Job, source: ImportSource, result: ImportStep, messages: pa.Table) -> None:
        """Store the messages of a step in a file for the query table, and record in the job that the step is open.

        Raises:
            JobEndedError: the job has ended.
            WorkspaceError: UNAVAILABLE if another attempt has opened or completed the step.
        """
        step_number = get_import_request(job).steps
        blob_name = build_step_blob_name(job.id, step_number, result.attempt)
        await self._store_file_for_query_table(source, blob_name, messages)
        changed = await self._stores.jobs.change(
            job.id, lambda current: current.mark_step_partly_stored(step_number, result)
        )
        if changed is None or not changed.is_unfinished:
            raise JobEndedError
        if get_import_request(changed).open_result != result:
            raise _build_other_attempt_error()

    async def _store_file_for_query_table(self, source: ImportSource, blob_name: str, messages: pa.Table) -> None:
        async with self._runtime.open_scratch_folder(self._stores.scratch, "import-") as folder:
            path = folder / "rows.parquet"
            await self._runtime.run_in_thread(
                write_query_table_file, path, source, messages, self._stores.table_compression
            )
            await self._stores.blobs.upload(blob_name, path)

    async def _complete_partly_stored_step(self, job: Job) -> None:
        """Store the remaining rows of an ended import's partly stored step; do nothing if there is no such step."""
        current = await self._stores.jobs.find_job(job.id)
        if current is None or current.is_unfinished or current.partly_stored_step_number is None:
            return
        step_number = current.partly_stored_step_number
        async with self._lane.occupy_slot(job.owner):
            await self._store_rows_of_step_file(current, step_number)
        await self._stores.jobs.change(job.id, lambda ended: ended.mark_step_completely_stored(step_number))

    async def _complete_step_of_earlier_attempt(self, job: Job, result: ImportStep) -> Job:
        """Store the remaining rows of the open step of an unfinished import, count the step, and return the job.

        Raises:
            JobEndedError: the job has ended.
        """
        step_number = get_import_request(job).steps
        accepted = await self._store_rows_of_step_file(job, step_number)
        duplicates = result.duplicates + result.accepted - accepted
        result = result.model_copy(update={"accepted": accepted, "duplicates": duplicates})
        changed = await self._add_step_result(job, step_number, result)
        await self._stores.blobs.delete([build_step_blob_name(job.id, step_number, result.attempt)])
        return changed

    async def _store_rows_of_step_file(self, job: Job, step_number: int) -> int:
        """Store the rows of an open step's file in archive and query table, and return the number of rows.

        Rows that another import or a device has stored in the meantime are left out.
        """
        attempt = get_import_request(job).open_attempt
        blob_name = build_step_blob_name(job.id, step_number, attempt)
        file = await self._load_file_for_query_table(blob_name)
        # Rows that an earlier attempt archived name the surfaces of the file, although the surfaces may have changed.
        source = replace(await self._build_import_source(job), surfaces=file.surfaces)
        messages = await self._select_new_messages(source, get_import_request(job).rows + 1, file.messages)
        if messages.num_rows:
            if messages.num_rows < file.messages.num_rows:
                await self._store_file_for_query_table(source, blob_name, messages)
            # The reservation may have ended while other imports had their turns, or during the search.
            await self._extend_reservation(job)
            await self._stores.archive.store_messages(source, messages)
            await self._ingest_step_file(job, step_number, attempt)
        return int(messages.num_rows)

    async def _load_file_for_query_table(self, blob_name: str) -> QueryTableFile:
        async with self._runtime.open_scratch_folder(self._stores.scratch, "import-") as folder:
            path = folder / "rows.parquet"
            try:
                await self._stores.blobs.download_to_file(blob_name, path)
            except FileNotFoundError:
                # Another attempt deletes the file once it has completed the step.
                raise _build_other_attempt_error() from None
            return await self._runtime.run_in_thread(read_query_table_file, path)

    async def _store_rejected_rows(self, job: Job, step: PreparedStep, attempt: str) -> None:
        request = get_import_request(job)
        listed = step.rejected[: max(0, MAX_LISTED - request.rejected)]
        if listed:
            content = await self._runtime.run_in_thread(format_rejected_rows_as_csv, listed)
            async with self._runtime.open_scratch_folder(self._stores.scratch, "import-") as folder:
                path = folder / "part.csv"
                await self._runtime.run_in_thread(path.write_bytes, content)
                # Another attempt of the step can have rejected other rows.
                await self._stores.blobs.upload(_build_rejected_rows_blob_name(job, request.steps, attempt), path)

    async def _complete_job(self, job: Job) -> None:
        """Store the file of rejected rows, and complete the import."""
        if get_import_request(job).rejected:
            file = await self._store_rejected_rows_file(job)
            await self._stores.jobs.change(job.id, lambda current: current.add_rejected_rows_file(file))
        await self._end_job(job.id, JobStatus.COMPLETED)

    async def _store_rejected_rows_file(self, job: Job) -> StoredFile:
        blobs, request = self._stores.blobs, get_import_request(job)
        steps = range(request.steps)
        names = {_build_rejected_rows_blob_name(job, each, request.find_attempt_of_step(each)) for each in steps}
        parts = [blob async for blob in blobs.list(_build_rejected_rows_blob_prefix(job)) if blob.name in names]
        async with self._runtime.open_scratch_folder(self._stores.scratch, "import-") as folder:
            await self._runtime.run_in_thread(require_scratch_space, folder, sum(part.size for part in parts))
            part_path, path = folder / "part.csv", folder / "rejected.csv"
            await self._runtime.run_in_thread(create_rejected_rows_file, path)
            for part in parts:
                await blobs.download_to_file(part.name, part_path)
                await self._runtime.run_in_thread(append_rejected_rows, part_path, path)
            size, digest = await self._runtime.run_in_thread(measure_file, path)
            # Another process may join the rows while this one deletes their parts; it must not replace this file.
            name = f"{build_job_blob_prefix(job.id)}rejected-{digest}.csv"
            await blobs.upload(name, path)
        return StoredFile(blob=name, rows=min(request.rejected, MAX_LISTED), size=size, sha256=digest)

    async def _end_job(self, job_id: str, status: JobStatus, error: WorkspaceError | str | None = None) -> None:
        job = await self._stores.jobs.change(job_id, lambda current: current.finish(status, error))
        if job is None:
            return
        request = get_import_request(job)
        numbers = logs.fields(
            job=job_id,
            status=job.status,
            accepted=request.accepted,
            duplicates=request.duplicates,
            rejected=request.rejected,
        )
        _LOG.info("import ended", extra=numbers)
        if job.status is JobStatus.COMPLETED:
            await self._quota.release_completed_job(job)
        else:
            await remove_files_of_ended_job(self._stores.blobs, job)
            await self._quota.release_job_and_bytes(job.owner, job_id)


def _build_lease_name(job: Job) -> str:
    return f"import-{job.connections[0]}"


def _build_reservation_lost_error() -> WorkspaceError:
    detail = (
        "The import's reservation of its connection has ended, so another import may write to the connection; "
        "retry later."
    )
    return WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", detail)


def _build_other_attempt_error() -> WorkspaceError:
    detail = "Another attempt of the import stores or has stored this step; retry later."
    return WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", detail)


def _build_ingestion_tag(job: Job, step_number: int) -> str:
    """Build the tag by which the query table recognises that the rows of a step are already added."""
    return f"import-{job.id}-{step_number}"


def _build_rejected_rows_blob_prefix(job: Job) -> str:
    return f"{build_job_blob_prefix(job.id)}rejected/"


def _build_rejected_rows_blob_name(job: Job, step_number: int, attempt: str) -> str:
    return f"{_build_rejected_rows_blob_prefix(job)}{build_step_file_name(step_number, attempt)}.csv"
