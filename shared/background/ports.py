"""Store of the due times and leases of background jobs, shared by all instances."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JobClaim:
    """Result of an attempt to claim a job.

    Attributes:
        granted: True if the claiming instance now holds the lease and must run the job.
        next_attempt: earliest time at which another claim of the job can succeed.
    """

    granted: bool
    next_attempt: datetime


class JobLeaseStore(Protocol):
    """Store that leases each due background job to one instance (the holder) at a time.

    A job is due from its stored due time on. The due time moves only after the run. If an instance dies during a run,
    its lease ends, and another instance repeats the run.
    """

    async def claim(self, job: str, holder: str, at: datetime, until: datetime, first_due: datetime) -> JobClaim:
        """Take the lease of a job if the job is due and no other holder has the lease.

        Args:
            job: name of the job.
            holder: name of the instance; an instance may claim a job again while it holds the lease.
            at: the current time.
            until: end of the lease.
            first_due: due time of a job that the store does not contain yet.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...

    async def extend(self, job: str, holder: str, until: datetime) -> bool:
        """Extend the lease of a job; return False if the holder has lost the lease.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...

    async def release(self, job: str, holder: str, due_at: datetime) -> None:
        """Release the lease of a job and store its next due time; do nothing if the holder has lost the lease.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...
