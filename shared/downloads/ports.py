"""Ports of downloads: job store, job runner, archive progress and archived rows."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Job

if TYPE_CHECKING:
    import pyarrow as pa


class JobStore(Protocol):
    """Store of download jobs.

    Every method raises WorkspaceError UNAVAILABLE ``DOWNLOADS_UNAVAILABLE`` when the store does not answer.
    """

    async def create(self, job: Job) -> None:
        """Store a new job."""
        ...

    async def get(self, job_id: str) -> Job | None:
        """Return a job; None if it does not exist."""
        ...

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        """Replace a job atomically by the result of a function; return the new job, or None if it does not exist.

        The function may be called several times. If it raises, the job remains unchanged and the error propagates.
        """
        ...

    async def list_owned(self, owner: str) -> Sequence[Job]:
        """Return the jobs of an owner, newest first."""
        ...

    async def list_expired(self, at: datetime) -> Sequence[str]:
        """Return the ids of the jobs whose lifetime has ended."""
        ...

    async def delete(self, job_id: str) -> None:
        """Delete a job; a missing job is ignored."""
        ...


class JobRunner(Protocol):
    """Background execution of jobs."""

    async def start(self, job_id: str) -> None:
        """Start a job's work.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOWNLOADS_UNAVAILABLE``.
        """
        ...

    async def stop(self, job_id: str) -> None:
        """Stop a job's work; has no effect if there is none."""
        ...


class ArchiveProgress(Protocol):
    """Progress of the archive in storing accepted events."""

    async def wait_until_archived(self, seconds: float) -> bool:
        """Wait, up to a timeout, until all events in the hubs are archived; return whether they are.

        Return False immediately if the progress is unknown.
        """
        ...


class ArchivedRows(Protocol):
    """Reads the archive of telemetry.

    Both methods raise WorkspaceError UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` when the archive does not answer.
    """

    async def list_hours(self, connection: str, start: datetime, end: datetime) -> Sequence[HourSummary]:
        """Return the hours of a range that have rows of a connection, in order."""
        ...

    def rows(self, connection: str, start: datetime, end: datetime) -> AsyncIterator["pa.RecordBatch"]:
        """Yield a connection's rows in a range (start inclusive, end exclusive), each once, in a fixed order.

        The batches have ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).
        """
        ...


class UnknownArchiveProgress:
    """ArchiveProgress for Azure, where the app cannot see how far the triggers have read."""

    async def wait_until_archived(self, seconds: float) -> bool:  # noqa: ARG002  the port's signature
        """Return False: the progress is unknown."""
        return False
