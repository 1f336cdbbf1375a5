"""Files of downloads that are to go."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from shared.cold_data.ports import BlobStore
from shared.cold_data.scratch import remove_abandoned
from shared.downloads.job_quota import JobQuota
from shared.downloads.ports import JobStore
from shared.observability import logs
from shared.timestamps import now

DELETED_AT_ONCE: Final = 200
STRAY_AGE: Final = timedelta(hours=48)
"""How old a file without a job may get: no job that writes it can be running by then."""

_LOG = logs.logger("downloads")


class DownloadExpiry:
    """Removes jobs past their end, with their files.

    Args:
        jobs: keeps the jobs.
        blobs: keeps the files.
        quota: counts the bytes of a principal.
        scratch: where files are made, and blobs are copied to while they are read or merged.
        clock: gives the current instant.
    """

    def __init__(
        self,
        jobs: JobStore,
        blobs: BlobStore,
        quota: JobQuota,
        scratch: Path,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._jobs = jobs
        self._blobs = blobs
        self._quota = quota
        self._scratch = scratch
        self._clock = clock

    async def run(self) -> None:
        """Remove what is past its end, the files first, so that a failure in between leaves the job to try again."""
        at = self._clock()
        expired = await self._jobs.list_expired(at)
        for job_id in expired:
            job = await self._jobs.get(job_id)
            await remove_files(self._blobs, job_id)
            if job is not None:
                await self._quota.free(job.owner, job_id)
            await self._jobs.delete(job_id)
        await _remove(self._blobs, "", written_before=at - STRAY_AGE)
        await asyncio.to_thread(remove_abandoned, self._scratch, at - STRAY_AGE)
        if expired:
            _LOG.info("downloads expired", extra=logs.fields(jobs=len(expired)))


def folder(job_id: str) -> str:
    """Return what the names of a job's files begin with."""
    return f"{job_id}/"


async def remove_files(blobs: BlobStore, job_id: str) -> None:
    """Remove all files of a job."""
    await _remove(blobs, folder(job_id))


async def _remove(blobs: BlobStore, prefix: str, written_before: datetime | None = None) -> None:
    found = [blob async for blob in blobs.list(prefix)]
    names = [blob.name for blob in found if written_before is None or blob.written_at < written_before]
    for first in range(0, len(names), DELETED_AT_ONCE):
        await blobs.delete(names[first : first + DELETED_AT_ONCE])
