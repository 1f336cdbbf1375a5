"""Store of the due times and leases of background jobs, shared by all instances."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JobClaim:
    """Result of an attempt to claim a job.

    Attributes:
        granted: whether the caller holds the lease and must run the job.
        next_attempt: the earliest time at which another attempt can succeed.
    """

    granted: bool
    next_attempt: datetime


class JobLeaseStore(Protocol):
    """Grants each due run of a job to one holder at a time.

    A job is due from its stored due time on. A holder that dies loses its lease when the lease ends; the due time is
    moved only after the run, so another holder then makes the run up.
    """

    async def claim(self, job: str, holder: str, at: datetime, until: datetime, first_due: datetime) -> JobClaim:
        """Take the lease of a job if the job is due and no other holder has it.

        Args:
            job: name of the job.
            holder: name of the instance; an instance may claim a job again while it holds the lease.
            at: the current time.
            until: end of the lease.
            first_due: due time that is stored when the store does not know the job yet.

        Raises:
            WorkspaceError: UNAVAILABLE.
        """
        ...

    async def extend(self, job: str, holder: str, until: datetime) -> bool:
        """Move the end of a lease; return False if the holder has lost it.

        Raises:
            WorkspaceError: UNAVAILABLE.
        """
        ...

    async def release(self, job: str, holder: str, due_at: datetime) -> None:
        """Give a lease back and store the next due time; does nothing if the holder has lost it.

        Raises:
            WorkspaceError: UNAVAILABLE.
        """
        ...
