"""Work of a download job: plan, convert, finish. Each step can be repeated with the same result.

This module is separate from ``service`` because it loads pyarrow, which requests about downloads do not need.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

from shared.cold_data.ports import BlobStore
from shared.cold_data.reading import HourSummary
from shared.cold_data.scratch import translate_resource_errors
from shared.downloads.expiry import build_job_blob_prefix, remove_job_files, remove_job_files_except_result
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import DownloadFormat, Job, JobEndedError, JobStatus, Part, StoredFile
from shared.downloads.output_files import FILE_BYTES
from shared.downloads.ports import ArchivedRows, ArchiveProgress, JobStore
from shared.errors import Kind, WorkspaceError
from shared.fair_use.fair_scheduler import FairScheduler
from shared.interpreter import load_modules
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

PART_BYTES: Final = 1_000_000_000
"""Expected size of the files of a part; all of them are on the scratch disk at the same time."""
PART_TIME: Final = timedelta(days=1)
"""Minimum time range of a part, because reading a part also reads a day before and after it."""
_ROW_BYTES: Final = {DownloadFormat.CSV: 60, DownloadFormat.JSONL: 120, DownloadFormat.PARQUET: 0}
"""Minimum number of bytes of a row in addition to the values of its payload."""
LARGE_PART_BYTES: Final = 20_000_000
"""Minimum size of a large part in bytes. A process converts one large part at a time, which uses all processors and up
to about 300 MB on two processors. A few small parts run concurrently, so that they need not wait for large ones."""
CONCURRENT_SMALL_PARTS: Final = 2
CONCURRENT_PLANS: Final = 4
MAX_WAITING_PARTS: Final = 3
"""Waiting parts of one principal per process. Further parts are retried later, so that they do not occupy activities
of other principals."""
PARTS_PER_WAVE: Final = 8
"""Parts of a job that are scheduled together."""
POLL_SECONDS: Final = 0.5
ARCHIVE_TIMEOUT_SECONDS: Final = 60.0
"""Time that a download waits until earlier events are archived."""
FAILURE_MESSAGE: Final = "The download failed after retries; the service log contains the reason."

_LOG = logs.get_logger("downloads")


def plan_parts(
    connection: str, start: datetime, end: datetime, file_format: DownloadFormat, hours: Sequence[HourSummary]
) -> list[Part]:
    """Split the download of one connection into parts.

    Return a single part unless the rows certainly need several files.
    """
    sizes = [max(hour.size, hour.rows * _ROW_BYTES[file_format]) for hour in hours]
    parts = [Part(connection=connection, start=start, end=end)]
    splits = sum(sizes) > FILE_BYTES
    for hour, size in zip(hours, sizes, strict=True):
        last = parts[-1]
        if splits and last.size + size > PART_BYTES and hour.start - last.start >= PART_TIME:
            parts[-1] = last.model_copy(update={"end": hour.start})
            last = Part(connection=connection, start=hour.start, end=end)
            parts.append(last)
        sizes_of_part = {"size": last.size + size, "unpacked": last.unpacked + hour.unpacked}
        parts[-1] = last.model_copy(update=sizes_of_part)
    return parts


async def do_nothing_at_job_end(job: Job) -> None:
    """Do nothing; this is the default of the argument ``on_end`` of ``DownloadRunner``."""


class _ConvertedPart(NamedTuple):
    """Uploaded files of a part of a download, and the payload paths that have columns in its CSV files."""

    files: tuple[StoredFile, ...]
    column_paths: frozenset[tuple[str, ...]]


class DownloadRunner:
    """Executes the steps of download jobs.

    Args:
        jobs: store of background jobs.
        archive: reader of archived telemetry rows.
        blobs: blob container with the files of jobs.
        scratch: folder of temporary files.
        progress: waits until accepted telemetry events are archived.
        quota: counts and limits the jobs of each principal.
        on_end: called at least once for each job that has completed or failed, after its new status is stored.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        jobs: JobStore,
        archive: ArchivedRows,
        blobs: BlobStore,
        scratch: Path,
        progress: ArchiveProgress,
        quota: JobQuota,
        *,
        on_end: Callable[[Job], Awaitable[None]] = do_nothing_at_job_end,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._jobs = jobs
        self._archive = archive
        self._blobs = blobs
        self._scratch = scratch
        self._progress = progress
        self._quota = quota
        self._on_end = on_end
        self._large = FairScheduler(1, 1 + MAX_WAITING_PARTS)
        self._small = FairScheduler(CONCURRENT_SMALL_PARTS, CONCURRENT_SMALL_PARTS + MAX_WAITING_PARTS)
        self._planning = FairScheduler(CONCURRENT_PLANS, 1)
        self._runtime = runtime

    async def plan_next_part_numbers_unless_busy(self, job_id: str) -> Sequence[int] | None:
        """Divide the job into parts if this is not done yet; return the numbers of the parts to convert next.

        Returns:
            None if another job of the principal is being planned; retry later. Empty if all parts are converted, or the
            job has ended.
        """
        job = await self._jobs.find_job(job_id)
        if job is not None and job.is_unfinished and job.parts is None:
            if not self._planning.has_room(job.owner):
                return None
            async with self._planning.occupy_slot(job.owner):
                complete = await self._progress.wait_until_archived(ARCHIVE_TIMEOUT_SECONDS)
                planned = tuple(await self._plan_parts_of_job(job))
                job = await self._jobs.change(
                    job_id, lambda current: current.add_parts(planned, is_archive_complete=complete)
                )
        return job.list_pending_part_numbers()[:PARTS_PER_WAVE] if job is not None and job.is_unfinished else []

    async def convert_part_unless_busy(self, job_id: str, part_number: int) -> bool:
        """Create and store the download files of one part of a job.

        Returns:
            False if this process already works on the maximum number of parts for the principal; retry later.

        Raises:
            WorkspaceError: UNAVAILABLE if the archive, the file store or the job store does not respond; retry.
        """
        job = await self._jobs.find_job(job_id)
        if job is None or job.parts is None:
            return True
        part = job.parts[part_number]
        lane = self._large if max(part.size, part.unpacked) >= LARGE_PART_BYTES else self._small
        if not lane.has_room(job.owner):
            return False
        async with lane.occupy_slot(job.owner):
            await self._convert_part_if_pending(job, part_number)
        return True

    async def _convert_part_if_pending(self, job: Job, part_number: int) -> None:
        current = await self._jobs.find_job(job.id)
        if current is None or not current.is_unfinished:
            # The process that ended the job, or an earlier attempt of this step, may have failed before its clean-up.
            await self._clean_up_ended_job(job)
            return
        if current.parts is None or part_number not in current.list_pending_part_numbers():
            return
        try:
            await self._convert_and_record_part(current, part_number, current.parts[part_number])
        except JobEndedError:
            await self._clean_up_ended_job(job)
        except WorkspaceError as error:
            if error.kind not in {Kind.UNPROCESSABLE, Kind.STORAGE_FULL}:
                raise
            await self._end_job(job.id, JobStatus.FAILED, error)

    async def _convert_and_record_part(self, job: Job, part_number: int, part: Part) -> None:
        files, column_paths = await self._create_and_upload_files(job, part_number, part)
        after = await self._jobs.change(job.id, lambda current: current.complete_part(part_number, files, column_paths))
        if after is None or not after.is_unfinished:
            raise JobEndedError
        # If another process has converted the part meanwhile, the job has the files of that process.
        unused = {file.blob for file in (*(part.files or ()), *files)} - {file.blob for _, file in after.list_files()}
        if unused:
            await self._blobs.delete(sorted(unused))

    async def _clean_up_ended_job(self, job: Job) -> None:
        """Delete the files that a conversion stored for an ended job; unless the job completed, release its quota."""
        await remove_job_files_except_result(self._blobs, self._jobs, job.id)
        ended = await self._jobs.find_job(job.id)
        if ended is None or ended.status in {JobStatus.CANCELLED, JobStatus.FAILED}:
            await self._quota.release_job_and_bytes(job.owner, job.id)

    async def complete_job(self, job_id: str) -> None:
        """Complete a job; mark the job as failed if its files exceed the principal's quota."""
        job = await self._jobs.find_job(job_id)
        if job is not None and job.is_unfinished:
            try:
                await self._quota.reserve_bytes(job, job.stored_bytes)
            except WorkspaceError as error:
                if error.kind is not Kind.STORAGE_FULL:
                    raise
                await self._end_job(job_id, JobStatus.FAILED, error)
                return
        await self._end_job(job_id, JobStatus.COMPLETED)
        await remove_job_files_except_result(self._blobs, self._jobs, job_id)

    async def fail_job(self, job_id: str) -> None:
        """Mark a download job as failed after its retries."""
        await self._end_job(job_id, JobStatus.FAILED, FAILURE_MESSAGE)

    async def _plan_parts_of_job(self, job: Job) -> list[Part]:
        planned: list[Part] = []
        for connection in job.connections:
            hours = await self._archive.list_hours(connection, job.start, job.end)
            planned += plan_parts(connection, job.start, job.end, job.format, hours)
        return planned

    async def _create_and_upload_files(self, job: Job, part_number: int, part: Part) -> _ConvertedPart:
        await load_modules(self._runtime, "shared.downloads.conversion", "shared.downloads.row_feed")
        from shared.downloads import conversion  # noqa: PLC0415  loads pyarrow and DuckDB
        from shared.downloads.row_feed import FeedStopped, RowFeed  # noqa: PLC0415  loads pyarrow

        stop = Event()
        attempt = self._runtime.new_id()
        loop = asyncio.get_running_loop()
        rows = RowFeed(loop, lambda: self._archive.stream_rows(part.connection, part.start, part.end), stop)
        known = frozenset(job.leaves.get(part.connection, ()))
        async with self._runtime.open_scratch_folder(self._scratch, f"{job.id}-") as folder:
            watching = asyncio.create_task(self._set_event_when_job_ends(job.id, stop))
            try:
                with translate_resource_errors(self._scratch):
                    written, column_paths = await self._runtime.run_in_thread(
                        conversion.write_files, job.format, part.connection, rows, folder, known
                    )
                stored = [
                    StoredFile(
                        blob=_build_blob_name(job, part, part_number, attempt, index),
                        rows=file.rows,
                        size=file.size,
                        sha256=file.sha256,
                    )
                    for index, file in enumerate(written)
                ]
                # Count the files before storing them. Files added concurrently by other parts count at the next call.
                others = job.stored_bytes - sum(file.size for file in part.files or ())
                await self._quota.reserve_bytes(job, others + sum(file.size for file in stored))
                for file, local_file in zip(stored, written, strict=True):
                    await self._blobs.upload(file.blob, local_file.path)
            except FeedStopped as error:
                raise JobEndedError from error
            finally:
                stop.set()
                watching.cancel()
        return _ConvertedPart(tuple(stored), column_paths)

    async def _set_event_when_job_ends(self, job_id: str, stop: Event) -> None:
        while True:
            await self._runtime.sleep(POLL_SECONDS)
            try:
                job = await self._jobs.find_job(job_id)
            except WorkspaceError:
                continue  # a persistent failure is raised at the end of the conversion
            if job is None or not job.is_unfinished:
                stop.set()
                return

    async def _end_job(self, job_id: str, status: JobStatus, error: WorkspaceError | str | None = None) -> None:
        job = await self._jobs.change(job_id, lambda current: current.finish(status, error))
        if job is not None:
            _LOG.info("download ended", extra=logs.fields(job=job_id, status=job.status, rows=job.row_count))
            if job.status is JobStatus.COMPLETED:
                await self._quota.release_completed_job(job)
            else:
                await remove_job_files(self._blobs, job_id)
                await self._quota.release_job_and_bytes(job.owner, job_id)
            if job.status is not JobStatus.CANCELLED:
                await self._on_end(job)


def _build_blob_name(job: Job, part: Part, part_number: int, attempt_id: str, file_index: int) -> str:
    # Each attempt has its own files: a slow one must neither replace nor delete the files of a faster one.
    return (
        f"{build_job_blob_prefix(job.id)}{part.connection}/{part_number:05d}-{attempt_id}-{file_index:05d}.{job.format}"
    )
