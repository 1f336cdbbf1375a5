"""Downloads as callers have them: started, watched, cancelled."""

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
from shared.downloads.models import Format, Job, JobStatus, StoredFile, download_not_found
from shared.downloads.ports import JobRunner, JobStore
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now

LINK_LIFETIME: Final = timedelta(minutes=15)
POLL_SECONDS: Final = 0.1
BEGINS_WITHIN: Final = timedelta(seconds=30)
"""A job that nothing was heard of for so long may have been stored by a process that ended before it began it."""


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """A file and where it can be fetched for a while.

    Attributes:
        connection: whose rows it holds.
        file: what it is.
        url: gives it to anyone.
        expires_at: the end of the link.
    """

    connection: str
    file: StoredFile
    url: str
    expires_at: datetime


class Downloads:
    """Starts downloads and tells how they are.

    Args:
        catalog: gives the current catalog.
        jobs: keeps the jobs.
        blobs: keeps the files.
        quota: bounds the jobs of a principal.
        lifetime: how long a job and its files stay.
        clock: gives the current instant.
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
        """Return the connection to download; a disabled one still has its data.

        Raises:
            WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND``.
        """
        if lookup not in (await self._catalog()).connections:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", f"There is no connection {lookup}.")
        return (lookup,)

    async def select_surface_connections(self, surface: str, connection: str | None = None) -> tuple[str, ...]:
        """Return a surface's connections in its order, or the one of them that is named.

        Raises:
            WorkspaceError: NOT_FOUND ``SURFACE_NOT_FOUND``; NOT_FOUND ``CONNECTION_NOT_FOUND``, also when another
                surface has it.
        """
        stored = (await self._catalog()).surfaces.get(surface)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", f"There is no surface {surface}.")
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
        form: Format,
        start: datetime,
        end: datetime,
        runner: JobRunner,
    ) -> Job:
        """Begin a download and return its job.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_JOBS``; STORAGE_FULL ``DOWNLOAD_QUOTA_EXCEEDED``; UNAVAILABLE
                ``DOWNLOADS_UNAVAILABLE`` or ``QUOTAS_UNAVAILABLE``.
        """
        at = self._clock()
        job = Job(
            id=uuid.uuid4().hex,
            owner=owner.member_id,
            format=form,
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
        """Return a job of the caller's; a credential with the right to manage keys sees everybody's.

        Raises:
            WorkspaceError: NOT_FOUND ``DOWNLOAD_NOT_FOUND``.
        """
        job = await self._jobs.get(job_id)
        if job is None or job.expires_at <= self._clock():
            raise download_not_found()
        # The credential's rights count, not the member's: an administrator's narrow token opens no other files.
        if job.owner != caller.member_id and AccessRight.KEYS_MANAGE not in caller.rights:
            raise download_not_found()
        return job

    async def restart_if_stalled(self, job: Job, runner: JobRunner) -> None:
        """Begin a job whose work may not have begun; where it has, nothing happens."""
        if job.status is JobStatus.PENDING and self._clock() - job.created_at > BEGINS_WITHIN:
            with contextlib.suppress(WorkspaceError):
                await runner.start(job.id)

    async def list(self, caller: Principal) -> Sequence[Job]:
        """Return the caller's own jobs, newest first."""
        at = self._clock()
        return [job for job in await self._jobs.list_owned(caller.member_id) if job.expires_at > at]

    async def ended(self, job: Job, seconds: int) -> Job:
        """Return a job as soon as it has ended, or as it is after a while."""
        deadline = asyncio.get_running_loop().time() + seconds
        while job.unfinished and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
            job = await self._jobs.get(job.id) or job
        return job

    async def cancel(self, caller: Principal, job_id: str, runner: JobRunner) -> None:
        """End a job before it is done, and remove what it has made.

        Raises:
            WorkspaceError: NOT_FOUND ``DOWNLOAD_NOT_FOUND``; CONFLICT ``DOWNLOAD_ENDED``.
        """
        job = await self.get(caller, job_id)
        if await self._jobs.change(job_id, Job.cancel) is None:
            raise download_not_found()
        await runner.stop(job_id)
        await remove_files(self._blobs, job_id)
        await self._quota.free(job.owner, job_id)

    async def links(self, job: Job) -> Sequence[LinkedFile]:
        """Return a completed job's files with fresh links; none of a job that is not completed."""
        if job.status is not JobStatus.COMPLETED:
            return []
        until = min(self._clock() + LINK_LIFETIME, job.expires_at)
        names = list_file_names(job)
        return [
            LinkedFile(connection, file, await self._blobs.link(file.blob, name, until), until)
            for (connection, file), name in zip(job.files(), names, strict=True)
        ]


def list_file_names(job: Job) -> Sequence[str]:
    """Return what a job's files are saved as: the connection, and a number where it has several."""
    connections = [connection for connection, _ in job.files()]
    names = []
    for place, connection in enumerate(connections):
        number = connections[:place].count(connection) + 1
        several = connections.count(connection) > 1
        names.append(f"{connection}-{number:04d}.{job.format}" if several else f"{connection}.{job.format}")
    return names
