"""Quotas of background jobs: unfinished jobs and stored bytes of each principal, across all instances."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from shared.catalog.quotas import QuotaLimits, resolve_quotas
from shared.catalog.snapshot import Catalog
from shared.downloads.models import Job, JobStatus
from shared.downloads.ports import JobStore
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose, QuotaReservation, QuotaStore
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime

CREATION_TIME: Final = timedelta(minutes=1)
"""Longest time between reserving quota for a job and storing the job; older reservations without a job are stale."""
RETRY_AFTER_SECONDS: Final = 30


class JobQuota:
    """Enforces each principal's limits: the number of unfinished jobs, and the total size of download files.

    Each job has a reservation in the quota. A crashed process can leave the reservations of ended jobs. When the quota
    is used up, the reservations are therefore compared with the stored jobs, and those of ended jobs are released.

    Args:
        quota_store: store of the reservations, shared by all instances.
        jobs: stores the jobs.
        catalog: function that returns the current workspace catalog.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        quota_store: QuotaStore,
        jobs: JobStore,
        catalog: Callable[[], Awaitable[Catalog]],
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._places = quota_store
        self._jobs = jobs
        self._catalog = catalog
        self._runtime = runtime

    async def reserve_job(self, owner_id: str, job_id: str, *, has_files: bool = True) -> None:
        """Count a new job towards its owner's quota before it is created; reject the job if the quota is used up.

        Args:
            owner_id: member id of the requester.
            job_id: id of the job.
            has_files: True if the job creates download files, so that the limit of stored bytes applies.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_JOBS`` if the owner has too many unfinished jobs; STORAGE_FULL
                ``DOWNLOAD_QUOTA_EXCEEDED`` if the files of the owner's downloads have reached the limit; UNAVAILABLE
                ``QUOTAS_UNAVAILABLE`` if the store of reservations does not respond.
        """
        quota = await self._load_quota_limits()
        if has_files and await self._count_stored_bytes(owner_id) >= quota.download_bytes:
            await self._release_ended_jobs(owner_id)
            if await self._count_stored_bytes(owner_id) >= quota.download_bytes:
                count("workspace.downloads.quota_refusals")
                raise _build_quota_exceeded_error(quota.download_bytes)
        is_taken = await self._try_add_reservation(owner_id, job_id, quota.jobs)
        if not is_taken:
            await self._release_ended_jobs(owner_id)
            is_taken = await self._try_add_reservation(owner_id, job_id, quota.jobs)
        if not is_taken:
            count("workspace.downloads.quota_refusals")
            raise _build_too_many_jobs_error(quota.jobs)

    async def reserve_bytes(self, job: Job, total_bytes: int) -> None:
        """Reserve quota for the bytes of a job's files before the files are stored.

        Args:
            job: job that the files belong to.
            total_bytes: total bytes of the job's files, including the new files.

        Raises:
            WorkspaceError: STORAGE_FULL ``DOWNLOAD_QUOTA_EXCEEDED`` if the quota is not enough for these bytes;
                UNAVAILABLE ``QUOTAS_UNAVAILABLE`` if the store of reservations does not respond.
        """
        limit = (await self._load_quota_limits()).download_bytes
        if await self._try_reserve_bytes(job, total_bytes, limit):
            return
        await self._release_ended_jobs(job.owner)
        if not await self._try_reserve_bytes(job, total_bytes, limit):
            count("workspace.downloads.quota_refusals")
            raise _build_quota_exceeded_error(limit)

    async def release_completed_job(self, job: Job) -> None:
        """Stop counting a completed job as unfinished; the bytes of its files count until the files are deleted."""
        await self._places.mark_inactive(job.owner, Purpose.JOBS, job.id)

    async def release_job_and_bytes(self, owner_id: str, job_id: str) -> None:
        """Stop counting a job, and the bytes of its files, towards its owner's quota, because its files are deleted."""
        await self._places.delete_reservations(owner_id, Purpose.JOBS, [job_id])

    async def _load_quota_limits(self) -> QuotaLimits:
        catalog = await self._catalog()
        return resolve_quotas(catalog.tier, catalog.policies.quotas)

    async def _try_add_reservation(self, owner_id: str, job_id: str, max_jobs: int) -> bool:
        at = self._runtime.now().timestamp()
        return await self._places.try_reserve(
            owner_id, Purpose.JOBS, job_id, at_unix_seconds=at, max_reservations=max_jobs
        )

    async def _try_reserve_bytes(self, job: Job, total_bytes: int, max_bytes: int) -> bool:
        at = self._runtime.now().timestamp()
        return await self._places.try_raise_reserved_size(
            job.owner, Purpose.JOBS, job.id, new_size=total_bytes, at_unix_seconds=at, max_total_size=max_bytes
        )

    async def _count_stored_bytes(self, owner_id: str) -> int:
        return sum(place.size for place in await self._places.list_reservations(owner_id, Purpose.JOBS))

    async def _release_ended_jobs(self, owner_id: str) -> None:
        """Release the reservations of jobs that no longer exist, have expired, have failed or were cancelled.

        Mark the reservations of completed jobs as inactive; the bytes of their files still count.
        """
        for place in await self._places.list_reservations(owner_id, Purpose.JOBS):
            job = await self._jobs.find_job(place.id)
            if self._is_reservation_obsolete(place, job):
                await self.release_job_and_bytes(owner_id, place.id)
            elif job is not None and place.active and job.status is JobStatus.COMPLETED:
                await self.release_completed_job(job)

    def _is_reservation_obsolete(self, reservation: QuotaReservation, job: Job | None) -> bool:
        at = self._runtime.now()
        if job is None:
            # The time of a reservation is in the future if the clock was set back.
            return abs(at.timestamp() - reservation.taken_at) > CREATION_TIME.total_seconds()
        return job.expires_at <= at or job.status in {JobStatus.FAILED, JobStatus.CANCELLED}


def _build_too_many_jobs_error(max_jobs: int) -> WorkspaceError:
    detail = (
        f"Your unfinished downloads, imports and bundles have reached their limit, {max_jobs} "
        "(policies.quotas.jobsPerPrincipal); wait until one has ended or cancel one, then try again."
    )
    return WorkspaceError(Kind.THROTTLED, "TOO_MANY_JOBS", detail, retryAfter=RETRY_AFTER_SECONDS, limit=max_jobs)


def _build_quota_exceeded_error(max_bytes: int) -> WorkspaceError:
    detail = (
        f"The files of your downloads would exceed their limit in bytes, {max_bytes} (policies.quotas.downloadBytes); "
        "wait until older downloads expire, or request less data."
    )
    return WorkspaceError(Kind.STORAGE_FULL, "DOWNLOAD_QUOTA_EXCEEDED", detail, limit=max_bytes)
