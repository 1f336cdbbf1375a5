"""Deletion of expired downloads and their files."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import remove_abandoned_scratch_folders
from shared.downloads.import_request import build_step_file_name
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import Job, JobStatus
from shared.downloads.ports import JobStore
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

DELETE_BATCH: Final = 200
ORPHAN_AGE: Final = timedelta(hours=48)
"""Age at which files without a job are deleted; a job that wrote them can no longer be running."""

_STEP_FOLDER: Final = "table/"
_EXPIRED: Final = "The import expired before all rows were imported; create a new import."
_LOG = logs.get_logger("downloads")


class DownloadExpiry:
    """Deletes expired download jobs with their files.

    Args:
        jobs: store of background jobs.
        blobs: blob container with the files of jobs.
        quota: counts the jobs and bytes of each principal.
        scratch: folder of temporary files.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, jobs: JobStore, blobs: BlobStore, quota: JobQuota, scratch: Path, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._jobs = jobs
        self._blobs = blobs
        self._quota = quota
        self._scratch = scratch
        self._runtime = runtime

    async def delete_expired_jobs_and_files(self) -> None:
        """Delete expired jobs with their files, and files that are older than ``ORPHAN_AGE`` and are no longer needed.

        The files of a job are deleted before the job, so that the next run repeats a failed deletion.

        An expired import that is unfinished is marked as failed. A step of an import is partly stored if its rows may
        be in the archive, but not yet in the query table. An import with such a step is deleted only after the step is
        complete, or ``ORPHAN_AGE`` after the import's expiry.

        Raises:
            Exception: the first error of a job, after all jobs and files were processed.
        """
        at = self._runtime.now()
        expired = await self._jobs.list_expired_job_ids(at)
        failures: list[Exception] = []
        for job_id in expired:
            try:
                await self._delete_expired_job_and_files(job_id, at)
            except Exception as error:  # noqa: BLE001  one job must not keep the others from being deleted
                _LOG.warning("an expired job cannot be deleted: %s", error, extra=logs.fields(job=job_id))
                failures.append(error)
        await self._remove_old_files(at - ORPHAN_AGE)
        await self._runtime.run_in_thread(remove_abandoned_scratch_folders, self._scratch, at - ORPHAN_AGE)
        if len(expired) > len(failures):
            _LOG.info("downloads expired", extra=logs.fields(jobs=len(expired) - len(failures)))
        if failures:
            raise failures[0]

    async def _delete_expired_job_and_files(self, job_id: str, at: datetime) -> None:
        """Delete an expired job with its files, or only some files if it is an import with a partly stored step."""
        job = await self._fail_unfinished_import(job_id, await self._jobs.find_job(job_id))
        if job is not None and job.partly_stored_step_number is not None and at < job.expires_at + ORPHAN_AGE:
            await remove_files_of_ended_job(self._blobs, job)
            return
        await remove_job_files(self._blobs, job_id)
        if job is not None:
            await _remove_upload(self._blobs, job)
            await self._quota.release_job_and_bytes(job.owner, job_id)
        await self._jobs.delete(job_id)

    async def _remove_old_files(self, written_before: datetime) -> None:
        """Delete the files that were written before a time, except those of partly stored import steps.

        Such a file has rows that may be in the archive, but not yet in the query table. The import needs the file until
        the query table has the rows, or the job is deleted.
        """
        old = [blob.name async for blob in self._blobs.list("") if blob.written_at < written_before]
        await _delete_blobs(self._blobs, [name for name in old if not await self._is_file_of_partly_stored_step(name)])

    async def _is_file_of_partly_stored_step(self, blob_name: str) -> bool:
        job_id, _, file = blob_name.partition("/")
        if not file.startswith(_STEP_FOLDER):
            return False
        job = await self._jobs.find_job(job_id)
        return job is not None and blob_name == _find_blob_name_of_partly_stored_step(job)

    async def _fail_unfinished_import(self, job_id: str, job: Job | None) -> Job | None:
        """Mark an unfinished import as failed, so that it begins no further step.

        Return the job; None if it does not exist. Jobs other than imports are returned unchanged.
        """
        if job is None or job.import_request is None:
            return job
        return await self._jobs.change(job_id, lambda current: current.finish(JobStatus.FAILED, _EXPIRED))


def build_job_blob_prefix(job_id: str) -> str:
    """Build the common prefix of the blob names of a job's files."""
    return f"{job_id}/"


def build_upload_blob_name(job_id: str) -> str:
    """Return the blob name of the uploaded file of an import."""
    return f"{build_job_blob_prefix(job_id)}upload"


def build_step_blob_name(job_id: str, step_number: int, attempt: str) -> str:
    """Build the name of the blob with the rows that one step of an import adds to archive and query table.

    Args:
        job_id: id of the import.
        step_number: number of the step, from 0.
        attempt: id of the attempt that stores the blob; empty if an earlier version stored it.
    """
    return f"{build_job_blob_prefix(job_id)}{_STEP_FOLDER}{build_step_file_name(step_number, attempt)}.parquet"


def _find_blob_name_of_partly_stored_step(job: Job) -> str | None:
    """Return the name of the blob with the rows of a partly stored import step; None if the job has no such step.

    The rows of such a step may be in the archive, but not yet in the query table.
    """
    request = job.import_request
    if request is None or request.open_step is None:
        return None
    return build_step_blob_name(job.id, request.open_step, request.open_attempt)


async def remove_job_files(blobs: BlobStore, job_id: str) -> None:
    """Delete all files of a background job."""
    await _remove_blobs(blobs, build_job_blob_prefix(job_id))


async def remove_files_of_ended_job(blobs: BlobStore, job: Job) -> None:
    """Delete the files of a cancelled or failed job, except the file of a partly stored import step.

    The archive may contain only some of the step's rows, and the query table none of them. A later import would count
    the archived rows as duplicates. The work of the import therefore completes the step in both stores from the file.
    """
    kept = _find_blob_name_of_partly_stored_step(job)
    await _remove_blobs(blobs, build_job_blob_prefix(job.id), is_kept=lambda name: name == kept)
    await _remove_upload(blobs, job)


async def remove_job_files_except_result(blobs: BlobStore, jobs: JobStore, job_id: str) -> None:
    """Delete the files of a job that has ended, except the result of a completed job.

    Durable Functions can run a step in two processes at the same time. The slower process must not delete the result of
    the faster process.
    """
    job = await jobs.find_job(job_id)
    files = job.list_files() if job is not None and job.status is JobStatus.COMPLETED else []
    results = {file.blob for _, file in files}
    await _remove_blobs(blobs, build_job_blob_prefix(job_id), is_kept=results.__contains__)


async def _remove_upload(blobs: BlobStore, job: Job) -> None:
    """Delete the uploaded file of an import, even if it exists only as uncommitted blocks, which listings omit."""
    if job.import_request is not None:
        await blobs.delete([build_upload_blob_name(job.id)])


async def _remove_blobs(blobs: BlobStore, prefix: str, is_kept: Callable[[str], bool] = lambda _: False) -> None:
    await _delete_blobs(blobs, [blob.name async for blob in blobs.list(prefix) if not is_kept(blob.name)])


async def _delete_blobs(blobs: BlobStore, names: Sequence[str]) -> None:
    for first in range(0, len(names), DELETE_BATCH):
        await blobs.delete(names[first : first + DELETE_BATCH])
