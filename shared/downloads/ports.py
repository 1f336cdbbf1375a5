"""Where download jobs are kept, what runs them, and where their rows come from."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Job

if TYPE_CHECKING:
    import pyarrow as pa


class JobStore(Protocol):
    """Keeps download jobs.

    Every method raises WorkspaceError UNAVAILABLE ``DOWNLOADS_UNAVAILABLE`` when the store does not answer.
    """

    async def create(self, job: Job) -> None:
        """Store a new job."""
        ...

    async def get(self, job_id: str) -> Job | None:
        """Return a job, None when there is none."""
        ...

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        """Replace a job by what a function makes of it, with no other change between; return the new job.

        What the function raises comes through, and the job stays; None when there is no such job. The function may be
        called several times.
        """
        ...

    async def list_owned(self, owner: str) -> Sequence[Job]:
        """Return somebody's jobs, newest first."""
        ...

    async def list_expired(self, at: datetime) -> Sequence[str]:
        """Return the ids of the jobs that are past their end."""
        ...

    async def delete(self, job_id: str) -> None:
        """Forget a job; one that is not there counts as forgotten."""
        ...


class JobRunner(Protocol):
    """Runs jobs in the background."""

    async def start(self, job_id: str) -> None:
        """Begin a job's work.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOWNLOADS_UNAVAILABLE``.
        """
        ...

    async def stop(self, job_id: str) -> None:
        """End a job's work; quietly when there is none."""
        ...


class ArchiveProgress(Protocol):
    """Tells whether what was accepted has come to the archive."""

    async def wait_until_archived(self, seconds: float) -> bool:
        """Wait, a while at most, until everything that the hubs hold by now is archived; return whether it is.

        False at once where this cannot be known.
        """
        ...


class ArchivedRows(Protocol):
    """Reads the archive of telemetry.

    Both methods raise WorkspaceError UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` when it does not answer.
    """

    async def list_hours(self, connection: str, start: datetime, end: datetime) -> Sequence[HourSummary]:
        """Return what there is of a connection in a range, in order of time."""
        ...

    def rows(self, connection: str, start: datetime, end: datetime) -> AsyncIterator["pa.RecordBatch"]:
        """Yield a connection's rows in a range (start inclusive, end exclusive), each once, in a fixed order.

        The batches have ``timestamp`` (microseconds, UTC), ``deviceId``, ``messageId`` and ``payload`` (JSON text).
        """
        ...


class UnknownArchiveProgress:
    """The ArchiveProgress port for Azure: the host keeps how far its triggers have read, and does not tell the app."""

    async def wait_until_archived(self, seconds: float) -> bool:  # noqa: ARG002  the port's signature
        """Return that it is not known."""
        return False
