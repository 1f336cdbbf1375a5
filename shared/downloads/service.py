"""Downloads for callers: start, list, wait, cancel, links.

Separate from ``work`` because requests for downloads do not need pyarrow, which loads slowly.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.snapshot import Catalog
from shared.cold_data.ports import BlobStore
from shared.downloads.expiry import remove_files
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import Format, Job, JobStatus, StoredFile, build_download_not_found
from shared.downloads.ports import JobRunner, JobStore
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now

LINK_LIFETIME: Final = timedelta(minutes=15)
POLL_SECONDS: Final = 0.1
START_TIMEOUT: Final = timedelta(seconds=30)
"""A job pending for longer may have been stored by a process that crashed before starting its work."""


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """A file with a temporary link.

    Attributes:
        connection: lookup of the connection.
        file: the stored file.
        url: link that needs no credential.
        expires_at: end of the link's validity.
    """

    connection: str
    file: StoredFile
    url: str
    expires_at: datetime


class DownloadService:
    """Starts downloads and reports their state.

    Args:
        catalog: returns the current catalog.
        jobs: store of the jobs.
        blobs: store of the files.
        quota: limits of each principal.
        lifetime: lifetime of a job and its files.
        clock: returns the current instant.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        jobs: JobStore,
        blobs: BlobStore,
        quota: JobQuota,
        lifetime: timedelta,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._catalog = catalog
        self._jobs = jobs
        self._blobs = blobs
        self._quota = quota
        self._lifetime = lifetime
        self._clock = clock

    async def select_connection(self, lookup: str) -> tuple[str, ...]:
        """Return the connection to download; a disabled connection still has data.

        Raises:
            WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND``.
        """
        if lookup not in (await self._catalog()).connections:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", f"The connection {lookup} does not exist.")
        return (lookup,)

    async def select_surface_connections(self, surface: str, connection: str | None = None) -> tuple[str, ...]:
        """Return the connections of a surface in their order, or only the given one.

        Raises:
            WorkspaceError: NOT_FOUND ``SURFACE_NOT_FOUND``; NOT_FOUND ``CONNECTION_NOT_FOUND`` if the surface does
                not contain the connection.
        """
        stored = (await self._catalog()).surfaces.get(surface)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", f"The surface {surface} does not exist.")
        if connection is None:
            return tuple(dict.fromkeys(stored.value.connections))
        if connection not in stored.value.connections:
            detail = f"The surface {surface} has no connection {connection}."
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", detail)
        return (connection,)

    async def start(
        self,
        owner: Principal,
        connections: tuple[str, ...],
        file_format: Format,
        start: datetime,
        end: datetime,
        runner: JobRunner,
    ) -> Job:
        """Start a download and return its job.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_JOBS``; STORAGE_FULL ``DOWNLOAD_QUOTA_EXCEEDED``; UNAVAILABLE
                ``DOWNLOADS_UNAVAILABLE`` or ``QUOTAS_UNAVAILABLE``.
        """
        at = self._clock()
        job = Job(
            id=uuid.uuid4().hex,
            owner=owner.member_id,
            format=file_format,
            start=start,
            end=end,
            connections=connections,
            created_at=at,
            expires_at=at + self._lifetime,
        )
        await self._quota.admit(job.owner, job.id)
        try:
            await self._jobs.create(job)
            await runner.start(job.id)
        except WorkspaceError:
            await self._jobs.delete(job.id)
            await self._quota.free(job.owner, job.id)
            raise
        return job

    async def get(self, caller: Principal, job_id: str) -> Job:
        """Return a job of the caller; a credential with the right to manage keys can access all jobs.

        Raises:
            WorkspaceError: NOT_FOUND ``DOWNLOAD_NOT_FOUND``.
        """
        job = await self._jobs.get(job_id)
        if job is None or job.expires_at <= self._clock():
            raise build_download_not_found()
        # Check the credential's rights, not the member's: a restricted token of an administrator opens no other files.
        if job.owner != caller.member_id and AccessRight.KEYS_MANAGE not in caller.rights:
            raise build_download_not_found()
        return job

    async def restart_if_stalled(self, job: Job, runner: JobRunner) -> None:
        """Start a job's work again if it may not have started; otherwise do nothing."""
        if job.status is JobStatus.PENDING and self._clock() - job.created_at > START_TIMEOUT:
            with contextlib.suppress(WorkspaceError):
                await runner.start(job.id)

    async def list(self, caller: Principal) -> Sequence[Job]:
        """Return the caller's jobs, newest first."""
        at = self._clock()
        return [job for job in await self._jobs.list_owned(caller.member_id) if job.expires_at > at]

    async def wait_until_ended(self, job: Job, seconds: int) -> Job:
        """Return a job when it has ended, or its current state after a timeout."""
        deadline = asyncio.get_running_loop().time() + seconds
        while job.unfinished and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            job = await self._jobs.get(job.id) or job
        return job

    async def cancel(self, caller: Principal, job_id: str, runner: JobRunner) -> None:
        """Cancel a job and delete its files.

        Raises:
            WorkspaceError: NOT_FOUND ``DOWNLOAD_NOT_FOUND``; CONFLICT ``DOWNLOAD_ENDED``.
        """
        job = await self.get(caller, job_id)
        if await self._jobs.change(job_id, Job.cancel) is None:
            raise build_download_not_found()
        await runner.stop(job_id)
        await remove_files(self._blobs, job_id)
        await self._quota.free(job.owner, job_id)

    async def create_links(self, job: Job) -> Sequence[LinkedFile]:
        """Return the files of a completed job with new links; an empty list for other jobs."""
        if job.status is not JobStatus.COMPLETED:
            return []
        until = min(self._clock() + LINK_LIFETIME, job.expires_at)
        names = list_file_names(job)
        return [
            LinkedFile(connection, file, await self._blobs.link(file.blob, name, until), until)
            for (connection, file), name in zip(job.files(), names, strict=True)
        ]


def list_file_names(job: Job) -> Sequence[str]:
    """Return the download names of a job's files: the connection, with a number if it has is_one_of_several files."""
    connections = [connection for connection, _ in job.files()]
    names = []
    for index, connection in enumerate(connections):
        number = connections[:index].count(connection) + 1
        is_one_of_several = connections.count(connection) > 1
        names.append(f"{connection}-{number:04d}.{job.format}" if is_one_of_several else f"{connection}.{job.format}")
    return names
