"""Download jobs for API callers: start, list, wait, cancel, and links to the files.

This module is separate from ``work`` because requests about downloads do not need pyarrow, which loads slowly.
"""

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.snapshot import Catalog
from shared.cold_data.ports import BlobStore
from shared.downloads.expiry import remove_files_of_ended_job
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import (
    BundleRequest,
    DownloadFormat,
    Job,
    JobKind,
    JobStatus,
    StoredFile,
    build_job_not_found_error,
)
from shared.downloads.ports import JobRunner, JobStore
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime

LINK_LIFETIME: Final = timedelta(minutes=15)
POLL_SECONDS: Final = 0.1
START_TIMEOUT: Final = timedelta(seconds=30)
"""Time after which a pending job is started again: the process that stored it may have crashed before starting it."""

RESTART_TIMEOUT: Final = timedelta(minutes=5)
"""Time after which the work of a running job is started again, because the work may have ended before the job.

The orchestrations of a region are lost with it, and so are those of a cleared task hub.
"""


type ConnectionLookups = tuple[str, ...]
"""Lookups (ids in URLs) of the connections of a download."""


def is_pending_too_long(pending_since: datetime, now: datetime) -> bool:
    """Return whether a job that is pending since ``pending_since`` must be started again.

    This is the case if ``pending_since`` is more than ``START_TIMEOUT`` ago. If the clock was set back,
    ``pending_since`` can be more than ``START_TIMEOUT`` in the future; then the job must be started again, too.
    """
    return abs(now - pending_since) > START_TIMEOUT


def can_have_stopped(job: Job, requested_at: datetime, now: datetime) -> bool:
    """Return whether the work of a job may have stopped before its end, so that it must be started again.

    The work of an ended import continues while one of its steps is partly stored. The result can be True although the
    work is running: a runner ignores a second start.

    Args:
        job: the job.
        requested_at: time of the last request to start the work.
        now: current time.
    """
    if job.status is JobStatus.PENDING:
        return is_pending_too_long(requested_at, now)
    has_work = job.status is JobStatus.RUNNING or job.partly_stored_step_number is not None
    return has_work and abs(now - requested_at) > RESTART_TIMEOUT


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """File of a download with a temporary link.

    Attributes:
        connection: lookup (id in URLs) of the connection.
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
        catalog: function that returns the current workspace catalog.
        jobs: store of background jobs.
        blobs: blob container with the files of jobs.
        quota: counts and limits the jobs of each principal.
        lifetime: lifetime of a job and its files.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        jobs: JobStore,
        blobs: BlobStore,
        quota: JobQuota,
        lifetime: timedelta,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._jobs = jobs
        self._blobs = blobs
        self._quota = quota
        self._lifetime = lifetime
        self._runtime = runtime

    async def select_one_connection(self, connection_lookup: str) -> ConnectionLookups:
        """Check that a connection exists, and return a tuple with its lookup (id in URLs).

        A disabled connection is accepted, because its archived data can be downloaded.

        Raises:
            WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND``.
        """
        if connection_lookup not in (await self._catalog()).connections:
            detail = f"The connection {connection_lookup} does not exist."
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", detail)
        return (connection_lookup,)

    async def select_surface_connections(self, surface: str, connection: str | None = None) -> ConnectionLookups:
        """Return the lookups of a surface's connections in order; if ``connection`` is given, only this connection.

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
        connections: ConnectionLookups,
        file_format: DownloadFormat,
        start: datetime,
        end: datetime,
        runner: JobRunner,
        *,
        job_id: str = "",
    ) -> Job:
        """Start a download of archived telemetry and return its job.

        Args:
            owner: the caller.
            connections: lookups (ids in URLs) of the connections.
            file_format: format of the files.
            start: start of the time range, inclusive.
            end: end of the time range, exclusive.
            runner: starts the work of the job in the background.
            job_id: id of the job, for a request that may be repeated; if a job with this id exists, that job is
                returned.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_JOBS`` if the owner has too many unfinished jobs; STORAGE_FULL
                ``DOWNLOAD_QUOTA_EXCEEDED`` if the files of the owner's downloads have reached the limit; UNAVAILABLE
                ``DOWNLOADS_UNAVAILABLE`` or ``QUOTAS_UNAVAILABLE`` if a store does not respond.
        """
        at = self._runtime.now()
        job = Job(
            id=job_id or self._runtime.new_id(),
            owner=owner.member_id,
            format=file_format,
            start=start,
            end=end,
            connections=connections,
            created_at=at,
            expires_at=at + self._lifetime,
        )
        return await self._store_and_start_job(job, runner, repeatable=bool(job_id))

    async def start_bundle(
        self, owner: Principal, bundle: BundleRequest, runner: JobRunner, *, job_id: str = ""
    ) -> Job:
        """Start an audit bundle and return its job; for ``job_id`` and errors, see :meth:`start`."""
        at = self._runtime.now()
        job = Job(
            id=job_id or self._runtime.new_id(),
            owner=owner.member_id,
            format=DownloadFormat.CSV,
            start=at,
            end=at,
            connections=(),
            created_at=at,
            expires_at=at + self._lifetime,
            bundle=bundle,
        )
        return await self._store_and_start_job(job, runner, repeatable=bool(job_id))

    async def _store_and_start_job(self, job: Job, runner: JobRunner, *, repeatable: bool) -> Job:
        """Reserve quota for a new job, store the job and start its work; return the job.

        If ``repeatable`` is True and a job with this id exists, return the stored job instead.
        """
        if repeatable and (stored := await self._jobs.find_job(job.id)) is not None:
            if stored.status is JobStatus.PENDING:
                # The earlier attempt that stored the job may have failed to start it. A runner ignores a second start.
                with contextlib.suppress(WorkspaceError):
                    await runner.start(job.id)
            return stored
        await self._quota.reserve_job(job.owner, job.id)
        try:
            await self._jobs.create(job)
            await runner.start(job.id)
        except WorkspaceError:
            if not repeatable:
                await self._jobs.delete(job.id)
            elif await self._jobs.find_job(job.id) is not None:
                # Another attempt of the same request may have returned the job. A repeated request, or a read of the
                # job, starts it.
                raise
            await self._quota.release_job_and_bytes(job.owner, job.id)
            raise
        return job

    async def get(self, caller: Principal, job_id: str, *, kind: JobKind = JobKind.DOWNLOAD) -> Job:
        """Return a job of the caller, or any job if the caller is an administrator whose credential can manage keys.

        Args:
            caller: the caller.
            job_id: id of the job.
            kind: kind that the job must have.

        Raises:
            WorkspaceError: NOT_FOUND ``DOWNLOAD_NOT_FOUND``, ``BUNDLE_NOT_FOUND`` or ``IMPORT_NOT_FOUND``, by ``kind``,
                if there is no such job, it has expired, or the caller has no access to it.
        """
        job = await self._jobs.find_job(job_id)
        if job is None or job.expires_at <= self._runtime.now() or job.kind is not kind:
            raise build_job_not_found_error(kind)
        if not await self._can_access(job, caller):
            raise build_job_not_found_error(kind)
        return job

    async def _can_access(self, job: Job, caller: Principal) -> bool:
        if job.owner == caller.member_id:
            return True
        # The role alone is not enough: a restricted token of an administrator opens no files of others.
        return AccessRight.KEYS_MANAGE in caller.rights and (await self._catalog()).is_administrator(caller.member_id)

    async def restart_if_stalled(self, job: Job, runner: JobRunner) -> None:
        """Start a job's work again if the work may not be running; otherwise do nothing."""
        if can_have_stopped(job, job.created_at, self._runtime.now()):
            with contextlib.suppress(WorkspaceError):
                await runner.start(job.id)

    async def list(self, caller: Principal, *, kind: JobKind = JobKind.DOWNLOAD) -> Sequence[Job]:
        """Return the caller's jobs of one kind, newest first."""
        at = self._runtime.now()
        jobs = await self._jobs.list_jobs_of_owner(caller.member_id)
        return [job for job in jobs if job.expires_at > at and job.kind is kind]

    async def wait_until_ended(self, job: Job, max_seconds: int) -> Job:
        """Wait until a job has ended, but at most ``max_seconds``; return its newest state."""
        deadline = self._runtime.monotonic() + max_seconds
        while job.is_unfinished and self._runtime.monotonic() < deadline:
            await self._runtime.sleep(POLL_SECONDS)
            job = await self._jobs.find_job(job.id) or job
        return job

    async def cancel(
        self, caller: Principal, job_id: str, runner: JobRunner, *, kind: JobKind = JobKind.DOWNLOAD
    ) -> None:
        """Cancel a background job and delete its files.

        Raises:
            WorkspaceError: the same errors as :meth:`get`; CONFLICT ``DOWNLOAD_ENDED``, ``BUNDLE_ENDED`` or
                ``IMPORT_ENDED`` if the job has ended already; UNAVAILABLE ``DOWNLOADS_UNAVAILABLE`` if the work that
                completes a step of an import cannot be started.
        """
        job = await self.get(caller, job_id, kind=kind)
        if job.status is JobStatus.CANCELLED:
            # An earlier request may have failed after it had stored the cancellation.
            await self._stop_and_clean_up_cancelled_job(job, runner)
        cancelled = await self._jobs.change(job_id, Job.cancel)
        if cancelled is None:
            raise build_job_not_found_error(kind)
        await self._stop_and_clean_up_cancelled_job(cancelled, runner)

    async def _stop_and_clean_up_cancelled_job(self, job: Job, runner: JobRunner) -> None:
        """Stop the work of a cancelled job, delete its files, and stop counting it towards the quota."""
        is_step_open = job.partly_stored_step_number is not None
        if not is_step_open and (job.import_request is None or job.import_request.started_at is not None):
            # An import waits for its file and its start; before that, no background work exists.
            await runner.stop(job.id)
        await remove_files_of_ended_job(self._blobs, job)
        await self._quota.release_job_and_bytes(job.owner, job.id)
        if is_step_open:
            # The work completes the step. Usually it is running, and then a runner ignores the second start. The error
            # of a failed start is raised, so that the caller repeats the cancellation.
            await runner.start(job.id)

    async def create_links(self, job: Job) -> Sequence[LinkedFile]:
        """Return the files of a completed job with new links; an empty list for other jobs."""
        if job.status is not JobStatus.COMPLETED:
            return []
        until = min(self._runtime.now() + LINK_LIFETIME, job.expires_at)
        names = list_download_file_names(job)
        return [
            LinkedFile(connection, file, await self._blobs.create_download_link(file.blob, name, until), until)
            for (connection, file), name in zip(job.list_files(), names, strict=True)
        ]


def list_download_file_names(job: Job) -> Sequence[str]:
    """Return the names under which browsers save the files of a job.

    A name is the lookup (id in URLs) of a connection, with a number if the connection has several files. The file of an
    audit bundle is named ``audit-bundle.zip``. A file with the rejected rows of an import ends with ``-rejected.csv``.
    """
    if job.bundle is not None:
        return ["audit-bundle.zip"]
    if job.import_request is not None:
        return [f"{connection}-rejected.csv" for connection, _ in job.list_files()]
    connections = [connection for connection, _ in job.list_files()]
    totals, numbers, names = Counter(connections), Counter[str](), list[str]()
    for connection in connections:
        numbers[connection] += 1
        suffix = f"-{numbers[connection]:04d}" if totals[connection] > 1 else ""
        names.append(f"{connection}{suffix}.{job.format}")
    return names
