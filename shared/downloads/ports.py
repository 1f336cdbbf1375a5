"""Ports of downloads: job store, job runner, archive progress and archived rows."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Job

if TYPE_CHECKING:
    import pyarrow as pa


class JobStore(Protocol):
    """Store of background jobs: downloads, audit bundles and imports.

    Every method raises WorkspaceError UNAVAILABLE ``DOWNLOADS_UNAVAILABLE`` when the store does not respond.
    """

    async def create(self, job: Job) -> None:
        """Store a new background job."""
        ...

    async def find_job(self, job_id: str) -> Job | None:
        """Return the background job with this id; None if it does not exist."""
        ...

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        """Atomically replace a job by the result of ``change``; return the new job, or None if the job does not exist.

        ``change`` can be called several times. If it raises an error, the job remains unchanged and the error
        propagates.
        """
        ...

    async def list_jobs_of_owner(self, owner_id: str) -> Sequence[Job]:
        """Return the background jobs of an owner, newest first."""
        ...

    async def list_expired_job_ids(self, at: datetime) -> Sequence[str]:
        """Return the ids of the jobs whose lifetime has ended."""
        ...

    async def delete(self, job_id: str) -> None:
        """Delete a background job; a missing job is ignored."""
        ...


class JobRunner(Protocol):
    """Runner that executes jobs in the background."""

    async def start(self, job_id: str) -> None:
        """Start the background work of a job; do nothing if the work is running.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOWNLOADS_UNAVAILABLE``.
        """
        ...

    async def stop(self, job_id: str) -> None:
        """Stop the background work of a job; do nothing if no work is running."""
        ...


class ArchiveProgress(Protocol):
    """Progress of the archive; lets callers wait until telemetry that was accepted earlier is archived."""

    async def wait_until_archived(self, timeout_seconds: float) -> bool:
        """Wait until all events that are now in the event hubs are archived, but at most ``timeout_seconds``.

        Return whether the events are archived. If the progress is unknown, return False without waiting.
        """
        ...


class ArchivedRows(Protocol):
    """Reader of archived telemetry.

    Both methods raise WorkspaceError UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` when the archive does not respond.
    """

    async def list_hours(self, connection: str, start: datetime, end: datetime) -> Sequence[HourSummary]:
        """Return a summary of each hour in a time range that has rows of a connection, in order."""
        ...

    def stream_rows(self, connection: str, start: datetime, end: datetime) -> AsyncIterator["pa.RecordBatch"]:
        """Yield each row of a connection in a time range (start inclusive, end exclusive) once, in a fixed order.

        The batches have ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).
        """
        ...


class UnknownArchiveProgress:
    """ArchiveProgress for Azure, where the app cannot read how far the triggers have processed the hubs."""

    async def wait_until_archived(self, timeout_seconds: float) -> bool:  # noqa: ARG002  the port's signature
        """Return False, because the progress of the archive is unknown."""
        return False
