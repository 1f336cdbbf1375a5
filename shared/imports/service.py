"""Imports of earlier telemetry for API callers: create, start, list, cancel.

This module is separate from ``work`` because requests do not need pyarrow and DuckDB, which load slowly.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.auth.principals import Principal
from shared.catalog.models import Connection
from shared.catalog.snapshot import Catalog
from shared.cold_data.ports import BlobStore
from shared.disk_space.guard import DiskGuard
from shared.downloads.expiry import build_upload_blob_name
from shared.downloads.import_request import ImportMapping, ImportRequest, UploadedFile
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import (
    DownloadFormat,
    Job,
    JobKind,
    JobStatus,
    build_job_ended_error,
    build_job_not_found_error,
)
from shared.downloads.ports import JobRunner, JobStore
from shared.downloads.service import DownloadService, can_have_stopped
from shared.errors import Kind, WorkspaceError
from shared.imports.uploads import find_and_require_complete_upload
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

UPLOAD_LIFETIME: Final = timedelta(hours=24)
_LOG = logs.get_logger("imports")


class ImportService:
    """Creates and starts imports, and reports their state.

    Args:
        catalog: function that returns the current workspace catalog.
        jobs: store of background jobs.
        blobs: blob container with the files of jobs.
        quota: counts and limits the jobs of each principal.
        downloads: operations that all kinds of jobs share.
        disk: rejects new files on a disk that is nearly full.
        lifetime: lifetime of a started import and its files.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        jobs: JobStore,
        blobs: BlobStore,
        quota: JobQuota,
        downloads: DownloadService,
        disk: DiskGuard,
        lifetime: timedelta,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._jobs = jobs
        self._blobs = blobs
        self._quota = quota
        self._downloads = downloads
        self._disk = disk
        self._lifetime = lifetime
        self._runtime = runtime

    async def require_enabled_connection(self, connection_lookup: str) -> Connection:
        """Return the connection that receives the imported messages, if it exists and is enabled.

        Raises:
            WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND`` if it does not exist; CONFLICT ``CONNECTION_DISABLED`` if
                it is disabled.
        """
        stored = (await self._catalog()).connections.get(connection_lookup)
        if stored is None:
            raise WorkspaceError(
                Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", f"The connection {connection_lookup} does not exist."
            )
        if not stored.value.enabled:
            detail = "The connection is disabled and does not accept telemetry."
            raise WorkspaceError(Kind.CONFLICT, "CONNECTION_DISABLED", detail)
        return stored.value

    async def create(
        self,
        owner: Principal,
        connection_lookup: str,
        build_request: Callable[[datetime], ImportRequest],
        *,
        job_id: str = "",
    ) -> Job:
        """Create an import job that waits for the upload of its file.

        Args:
            owner: the caller.
            connection_lookup: lookup (id in URLs) of the connection that receives the messages.
            build_request: builds the import request from the expiry time of the upload link; called at most once.
            job_id: id for a repeatable request; if a job with this id exists, that job is returned.

        Raises:
            WorkspaceError: the same errors as :meth:`require_enabled_connection`; STORAGE_FULL ``STORAGE_FULL`` if the
                disk is nearly full; THROTTLED ``TOO_MANY_JOBS`` if the owner has too many unfinished jobs; UNAVAILABLE
                ``DOWNLOADS_UNAVAILABLE`` or ``QUOTAS_UNAVAILABLE`` if a store does not respond.
        """
        await self.require_enabled_connection(connection_lookup)
        await self._disk.require_disk_space()
        if job_id and (stored := await self._jobs.find_job(job_id)) is not None:
            return stored
        at = self._runtime.now()
        job = Job(
            id=job_id or self._runtime.new_id(),
            owner=owner.member_id,
            format=DownloadFormat.CSV,
            start=at,
            end=at,
            connections=(connection_lookup,),
            created_at=at,
            expires_at=at + UPLOAD_LIFETIME,
            import_request=build_request(at + UPLOAD_LIFETIME),
        )
        await self._quota.reserve_job(job.owner, job.id, has_files=False)
        try:
            await self._jobs.create(job)
        except WorkspaceError:
            # Another attempt of the same request may have stored the import, which must still count.
            if not job_id or await self._jobs.find_job(job_id) is None:
                await self._quota.release_job_and_bytes(job.owner, job.id)
            raise
        return job

    async def create_upload_link(self, job: Job) -> str:
        """Create a URL to which the caller uploads the file of an import, until 24 hours after the job's creation."""
        return await self._blobs.create_upload_link(build_upload_blob_name(job.id), job.created_at + UPLOAD_LIFETIME)

    async def start(self, caller: Principal, job_id: str, runner: JobRunner, mapping: ImportMapping | None) -> Job:
        """Start the work of an import; an import that has started with the same mapping is returned unchanged.

        Args:
            caller: the caller.
            job_id: id of the import.
            runner: starts the work of the job in the background.
            mapping: replaces the column mapping of the import; None to leave the mapping.

        Raises:
            WorkspaceError: the same errors as :meth:`get`, :meth:`require_enabled_connection` and
                ``find_and_require_complete_upload``; CONFLICT ``IMPORT_ENDED`` if the import has ended already, and
                ``IMPORT_STARTED`` if it has started with another mapping; UNAVAILABLE ``DOWNLOADS_UNAVAILABLE`` if the
                store of jobs does not respond.
        """
        job = await self.get(caller, job_id)
        request = get_import_request(job)
        _require_startable(job, mapping)
        if request.started_at is None:
            await self.require_enabled_connection(job.connections[0])
            blob = await find_and_require_complete_upload(self._blobs, job_id, request)
            at = self._runtime.now()
            file = UploadedFile(size=blob.size, written_at=blob.written_at, etag=blob.etag)
            changed = await self._jobs.change(
                job_id, lambda current: current.start_import(at, at + self._lifetime, file, mapping)
            )
            if changed is None:
                raise build_job_not_found_error(JobKind.IMPORT)
            # A concurrent request may have started or cancelled the import before this change.
            _require_startable(changed, mapping)
            job = changed
            _LOG.info("import started", extra=logs.fields(job=job_id, connection=job.connections[0], bytes=blob.size))
            await runner.start(job_id)
        elif job.status is JobStatus.PENDING:
            # The first request may have failed to start the work. A runner ignores a second start of running work.
            with contextlib.suppress(WorkspaceError):
                await runner.start(job_id)
        return job

    async def get(self, caller: Principal, job_id: str) -> Job:
        """Return an import of the caller; an administrator whose credential can manage keys can access all imports.

        Raises:
            WorkspaceError: NOT_FOUND ``IMPORT_NOT_FOUND``.
        """
        return await self._downloads.get(caller, job_id, kind=JobKind.IMPORT)

    async def list(self, caller: Principal) -> Sequence[Job]:
        """Return the caller's imports, newest first."""
        return await self._downloads.list(caller, kind=JobKind.IMPORT)

    async def cancel(self, caller: Principal, job_id: str, runner: JobRunner) -> None:
        """Cancel an import and delete its files; messages that are stored already remain.

        Raises:
            WorkspaceError: the same errors as :meth:`get`; CONFLICT ``IMPORT_ENDED`` if the import has ended already.
        """
        await self._downloads.cancel(caller, job_id, runner, kind=JobKind.IMPORT)

    async def restart_if_stalled(self, job: Job, runner: JobRunner) -> None:
        """Start the background work of a started import again if the work has possibly stopped; ignore a failure."""
        started_at = get_import_request(job).started_at
        if started_at and can_have_stopped(job, started_at, self._runtime.now()):
            with contextlib.suppress(WorkspaceError):
                await runner.start(job.id)


def _require_startable(job: Job, mapping: ImportMapping | None) -> None:
    """Check that an import has not ended, and has not started with another column mapping.

    Args:
        job: the import.
        mapping: the requested column mapping; None to use the stored mapping.
    """
    if not job.is_unfinished:
        raise build_job_ended_error(job)
    request = get_import_request(job)
    if request.started_at is not None and mapping not in (None, request.mapping):
        detail = "The import has started with another mapping; create a new import to use this mapping."
        raise WorkspaceError(Kind.CONFLICT, "IMPORT_STARTED", detail)


def get_import_request(job: Job) -> ImportRequest:
    """Return the import request that a background job contains.

    Raises:
        TypeError: the job is not an import.
    """
    if job.import_request is None:
        raise TypeError(f"job {job.id} is not an import")
    return job.import_request
