"""Store of the due times and leases of background jobs, shared by all instances."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""Difference of clocks that is accepted.

A stored time that is later than the latest possible one by more than this was stored before a clock was set back, and
is corrected.
"""


def cap_stored_time(stored_time: datetime, latest_time: datetime) -> datetime:
    """Return the stored time, or ``latest_time`` if the stored time is later by more than ``CLOCK_TOLERANCE``.

    Such a time was stored before the clock was set back. Without this limit, the job would not run until the clock
    reaches the stored time again.

    Args:
        stored_time: due time or end of a lease in the store.
        latest_time: latest time that would be stored now.
    """
    return latest_time if stored_time > latest_time + CLOCK_TOLERANCE else stored_time


@dataclass(frozen=True, slots=True)
class JobClaim:
    """Result of an attempt to claim a job.

    Attributes:
        granted: True if the claiming instance now holds the lease and must run the job.
        next_attempt: earliest time at which the next claim of the job can succeed.
    """

    granted: bool
    next_attempt: datetime


class JobLeaseStore(Protocol):
    """Store that leases each due background job to one instance (the holder) at a time.

    A job is due from its stored due time on. The next due time is stored only after the run. If an instance crashes
    during a run, the lease ends, and another instance repeats the run.
    """

    async def claim_job(
        self, job_name: str, holder_id: str, at: datetime, leased_until: datetime, first_due: datetime
    ) -> JobClaim:
        """Lease a job to the holder if the job is due and not leased to another holder.

        If the clock was set back, stored times in the far future are corrected by :func:`cap_stored_time`.

        Args:
            job_name: name of the job.
            holder_id: id of the instance; an instance may claim a job again while it holds the lease.
            at: the current time.
            leased_until: end of the lease.
            first_due: next due time by the job's schedule. If the store does not contain the job yet, it stores the job
                with this due time.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...

    async def try_extend_lease(self, job_name: str, holder_id: str, leased_until: datetime) -> bool:
        """Extend the lease of a job; return False if the holder has lost the lease.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...

    async def release_lease(self, job_name: str, holder_id: str, next_due_at: datetime) -> None:
        """Release the lease of a job and store its next due time; do nothing if the holder has lost the lease.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...
