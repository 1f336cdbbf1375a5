"""Quotas of downloads: unfinished jobs and stored bytes of each principal, over all instances."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from shared.catalog.quotas import QuotaLimits, resolve_quotas
from shared.catalog.snapshot import Catalog
from shared.downloads.models import Job, JobStatus
from shared.downloads.ports import JobStore
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose, QuotaReservation, QuotaStore
from shared.observability.metrics import count
from shared.timestamps import now

CREATION_TIME: Final = timedelta(minutes=1)
"""Longest time between the place of a job and its record; an older place without a record is a leftover."""
RETRY_AFTER_SECONDS: Final = 30


class JobQuota:
    """Enforces the limits of unfinished downloads and of stored bytes for each principal.

    When a quota is reached, the places of the principal are compared with its jobs. This frees places that a crashed
    process has not freed.

    Args:
        places: counter shared by all instances.
        jobs: stores the jobs.
        catalog: returns the current catalog.
        clock: returns the current instant.
    """

    def __init__(
        self,
        places: QuotaStore,
        jobs: JobStore,
        catalog: Callable[[], Awaitable[Catalog]],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._places = places
        self._jobs = jobs
        self._catalog = catalog
        self._clock = clock

    async def admit(self, owner: str, job_id: str) -> None:
        """Reserve a place for a job that is about to be created.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_JOBS``; STORAGE_FULL ``DOWNLOAD_QUOTA_EXCEEDED`` if the files of
                the owner's downloads have reached the limit; UNAVAILABLE ``QUOTAS_UNAVAILABLE``.
        """
        quota = await self._load_quota()
        if await self._count_stored_bytes(owner) >= quota.download_bytes:
            await self._release_ended(owner)
            if await self._count_stored_bytes(owner) >= quota.download_bytes:
                count("workspace.downloads.quota_refusals")
                raise _build_quota_exceeded(quota.download_bytes)
        is_taken = await self._try_take(owner, job_id, quota.jobs)
        if not is_taken:
            await self._release_ended(owner)
            is_taken = await self._try_take(owner, job_id, quota.jobs)
        if not is_taken:
            count("workspace.downloads.quota_refusals")
            raise _build_too_many_jobs(quota.jobs)

    async def grow(self, job: Job, size: int) -> None:
        """Add the bytes of a job's files before they are stored.

        Args:
            job: owner of the files.
            size: total bytes of its files, including the new ones.

        Raises:
            WorkspaceError: STORAGE_FULL ``DOWNLOAD_QUOTA_EXCEEDED``; UNAVAILABLE ``QUOTAS_UNAVAILABLE``.
        """
        limit = (await self._load_quota()).download_bytes
        if await self._try_grow(job, size, limit):
            return
        await self._release_ended(job.owner)
        if not await self._try_grow(job, size, limit):
            count("workspace.downloads.quota_refusals")
            raise _build_quota_exceeded(limit)

    async def finish(self, job: Job) -> None:
        """Free the place of a completed job; its bytes count until its files are deleted."""
        await self._places.finish(job.owner, Purpose.JOBS, job.id)

    async def free(self, owner: str, job_id: str) -> None:
        """Free the place and the bytes of a job whose files are deleted."""
        await self._places.free(owner, Purpose.JOBS, [job_id])

    async def _load_quota(self) -> QuotaLimits:
        catalog = await self._catalog()
        return resolve_quotas(catalog.tier, catalog.policies.quotas)

    async def _try_take(self, owner: str, job_id: str, limit: int) -> bool:
        at = self._clock().timestamp()
        return await self._places.take(owner, Purpose.JOBS, job_id, at=at, limit=limit)

    async def _try_grow(self, job: Job, size: int, limit: int) -> bool:
        at = self._clock().timestamp()
        return await self._places.grow(job.owner, Purpose.JOBS, job.id, size=size, at=at, limit=limit)

    async def _count_stored_bytes(self, owner: str) -> int:
        return sum(place.size for place in await self._places.list_reservations(owner, Purpose.JOBS))

    async def _release_ended(self, owner: str) -> None:
        """Free the places of jobs that are missing, expired or ended."""
        for place in await self._places.list_reservations(owner, Purpose.JOBS):
            job = await self._jobs.get(place.id)
            if self._is_obsolete(place, job):
                await self.free(owner, place.id)
            elif job is not None and place.active and job.status is JobStatus.COMPLETED:
                await self.finish(job)

    def _is_obsolete(self, place: QuotaReservation, job: Job | None) -> bool:
        at = self._clock()
        if job is None:
            return place.taken_at < (at - CREATION_TIME).timestamp()
        return job.expires_at <= at or job.status in {JobStatus.FAILED, JobStatus.CANCELLED}


def _build_too_many_jobs(limit: int) -> WorkspaceError:
    detail = (
        f"You have {limit} unfinished downloads, the most allowed (policies.quotas.jobsPerPrincipal); "
        "wait until one has ended or cancel one, then try again."
    )
    return WorkspaceError(Kind.THROTTLED, "TOO_MANY_JOBS", detail, retryAfter=RETRY_AFTER_SECONDS, limit=limit)


def _build_quota_exceeded(limit: int) -> WorkspaceError:
    detail = (
        f"The files of your downloads may take {limit} bytes together (policies.quotas.downloadBytes); "
        "wait until older downloads expire, or request less data."
    )
    return WorkspaceError(Kind.STORAGE_FULL, "DOWNLOAD_QUOTA_EXCEEDED", detail, limit=limit)
