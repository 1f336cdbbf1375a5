"""The steps of a download: each may be done again, and gives the same."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Final

from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import translate_resource_errors
from shared.downloads.expiry import folder, remove_files
from shared.downloads.fair_scheduler import FairScheduler
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import Job, JobStatus, Part, StoredFile
from shared.downloads.planning import plan_parts
from shared.downloads.ports import ArchivedRows, ArchiveProgress, JobStore
from shared.errors import Kind, WorkspaceError
from shared.observability import logs

LARGE: Final = 20_000_000
"""Bytes from which on a part is large. One process converts one large part at a time, which keeps all processors busy
and takes up to about 450 MB, and beside it a few small ones, so that these need not wait."""
SMALL_AT_ONCE: Final = 2
PLANNED_AT_ONCE: Final = 4
WAITING: Final = 3
"""Parts of one principal that wait in a process beside those at work; further ones are tried again later, so that they
take no activity from other principals."""
WAVE: Final = 8
"""Parts that are handed out together."""
LOOK_SECONDS: Final = 0.5
SETTLE_SECONDS: Final = 60.0
"""How long a download waits for what was accepted before it, on its way to the archive."""
FAILED: Final = "The download failed, also when it was tried again; the service's log has the reason."

_LOG = logs.logger("downloads")


class DownloadWork:
    """Does the work of downloads.

    Args:
        jobs: keeps the jobs.
        archive: gives the rows.
        blobs: takes the files.
        scratch: folder for files on their way.
        arrivals: tells whether what was accepted is archived.
        quota: bounds the bytes of a principal.
    """

    def __init__(
        self,
        jobs: JobStore,
        archive: ArchivedRows,
        blobs: BlobStore,
        scratch: Path,
        arrivals: ArchiveProgress,
        quota: JobQuota,
    ) -> None:
        self._jobs = jobs
        self._archive = archive
        self._blobs = blobs
        self._scratch = scratch
        self._arrivals = arrivals
        self._quota = quota
        self._large = FairScheduler(1, 1 + WAITING)
        self._small = FairScheduler(SMALL_AT_ONCE, SMALL_AT_ONCE + WAITING)
        self._planning = FairScheduler(PLANNED_AT_ONCE, 1)

    async def next_parts(self, job_id: str) -> Sequence[int] | None:
        """Return the numbers of parts to convert now; empty when the job is done or has ended.

        Returns:
            None when another job of its principal is being planned; ask again later.
        """
        job = await self._jobs.get(job_id)
        if job is not None and job.unfinished and job.parts is None:
            if not self._planning.has_room(job.owner):
                return None
            async with self._planning.turn(job.owner):
                complete = await self._arrivals.wait_until_archived(SETTLE_SECONDS)
                planned = tuple(await self._plan(job))
                job = await self._jobs.change(job_id, lambda current: current.plan(planned, complete=complete))
        return job.list_pending_parts()[:WAVE] if job is not None and job.unfinished else []

    async def convert(self, job_id: str, number: int) -> bool:
        """Make the files of a part and store them.

        Returns:
            False when enough parts of the same principal are under way in this process; try again later.

        Raises:
            WorkspaceError: UNAVAILABLE, of the archive, the files or the jobs; try again.
        """
        job = await self._jobs.get(job_id)
        if job is None or job.parts is None:
            return True
        part = job.parts[number]
        lane = self._large if max(part.size, part.unpacked) >= LARGE else self._small
        if not lane.has_room(job.owner):
            return False
        async with lane.turn(job.owner):
            await self._convert_in_turn(job_id, number)
        return True

    async def _convert_in_turn(self, job_id: str, number: int) -> None:
        job = await self._jobs.get(job_id)
        if job is None or not job.unfinished or job.parts is None:
            return
        part = job.parts[number]
        try:
            files, leaves = await self._convert(job, number, part)
        except WorkspaceError as error:
            if error.kind not in {Kind.UNPROCESSABLE, Kind.STORAGE_FULL}:
                raise
            await self._end(job_id, JobStatus.FAILED, _reason(error))
            return
        after = await self._jobs.change(job_id, lambda current: current.complete_part(number, files, leaves))
        outdated = {file.blob for file in part.files or ()} - {file.blob for file in files}
        if outdated:
            await self._blobs.delete(sorted(outdated))
        if after is None or after.status in {JobStatus.CANCELLED, JobStatus.FAILED}:
            await remove_files(self._blobs, job_id)
            await self._quota.free(job.owner, job_id)

    async def finish(self, job_id: str) -> None:
        """Call a job done, unless its files take more bytes than its principal has left."""
        job = await self._jobs.get(job_id)
        if job is not None and job.unfinished:
            try:
                await self._quota.grow(job, job.stored_bytes)
            except WorkspaceError as error:
                if error.kind is not Kind.STORAGE_FULL:
                    raise
                await self._end(job_id, JobStatus.FAILED, _reason(error))
                return
        await self._end(job_id, JobStatus.COMPLETED)

    async def fail(self, job_id: str) -> None:
        """Give a job up."""
        await self._end(job_id, JobStatus.FAILED, FAILED)

    async def _plan(self, job: Job) -> list[Part]:
        planned: list[Part] = []
        for connection in job.connections:
            list_hours = await self._archive.list_hours(connection, job.start, job.end)
            planned += plan_parts(connection, job.start, job.end, job.format, list_hours)
        return planned

    async def _convert(
        self, job: Job, number: int, part: Part
    ) -> tuple[tuple[StoredFile, ...], frozenset[tuple[str, ...]]]:
        from shared.downloads import conversion  # noqa: PLC0415  loads pyarrow and DuckDB
        from shared.downloads.row_feed import FeedStopped, RowFeed  # noqa: PLC0415  the same

        stop = Event()
        loop = asyncio.get_running_loop()
        rows = RowFeed(loop, lambda: self._archive.rows(part.connection, part.start, part.end), stop)
        known = frozenset(job.leaves.get(part.connection, ()))
        self._scratch.mkdir(parents=True, exist_ok=True)
        watching = asyncio.create_task(self._stop_when_ended(job.id, stop))
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix=f"{job.id}-", ignore_cleanup_errors=True) as where:
            try:
                with translate_resource_errors(self._scratch):
                    written, leaves = await asyncio.to_thread(
                        conversion.write, job.format, part.connection, rows, Path(where), known
                    )
                stored = [
                    StoredFile(
                        blob=_blob(job, part, number, len(leaves), place),
                        rows=file.rows,
                        size=file.size,
                        sha256=file.sha256,
                    )
                    for place, file in enumerate(written)
                ]
                # Counted before they are stored; what other parts of the job add at this moment counts with the next.
                others = job.stored_bytes - sum(file.size for file in part.files or ())
                await self._quota.grow(job, others + sum(file.size for file in stored))
                for file, its in zip(stored, written, strict=True):
                    await self._blobs.upload(file.blob, its.path)
            except FeedStopped:
                return (), frozenset()
            finally:
                stop.set()
                watching.cancel()
        return tuple(stored), leaves

    async def _stop_when_ended(self, job_id: str, stop: Event) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                job = await self._jobs.get(job_id)
            except WorkspaceError:
                continue  # the end of the conversion will tell
            if job is None or not job.unfinished:
                stop.set()
                return

    async def _end(self, job_id: str, status: JobStatus, error: str | None = None) -> None:
        job = await self._jobs.change(job_id, lambda current: current.ended(status, error))
        if job is not None:
            _LOG.info("download ended", extra=logs.fields(job=job_id, status=job.status, rows=job.rows))
            if job.status is JobStatus.COMPLETED:
                await self._quota.finish(job)
            else:
                await remove_files(self._blobs, job_id)
                await self._quota.free(job.owner, job_id)


def _reason(error: WorkspaceError) -> str:
    """Return a failed job's error; of a quota with its code, which callers branch on."""
    return f"{error.code}: {error.detail}" if error.kind is Kind.STORAGE_FULL else error.detail


def _blob(job: Job, part: Part, number: int, columns: int, place: int) -> str:
    # The number of columns is in it, so that a late repeat does not replace a file that was made again with more.
    return f"{folder(job.id)}{part.connection}/{number:05d}-{columns}-{place:05d}.{job.format}"
