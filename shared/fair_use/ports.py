"""Port of the store that counts the live streams and jobs of each principal across all instances."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Purpose(StrEnum):
    """Kind of resource that a quota limits (streams or jobs); each kind has its own limit."""

    STREAMS = "streams"
    JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class QuotaReservation:
    """Reservation in a principal's quota, for one live stream or one job.

    Attributes:
        id: id of the stream or job.
        taken_at: time of the reservation, in seconds since the epoch.
        active: True if the reservation counts towards the number of streams or jobs. If False, the job is finished, and
            only its size counts.
        size: size of the job's stored files in bytes.
    """

    id: str
    taken_at: float
    active: bool = True
    size: int = 0


class QuotaStore(Protocol):
    """Store of the quota reservations of each principal.

    Concurrent calls of several processes never exceed a limit. Every method raises WorkspaceError UNAVAILABLE
    ``QUOTAS_UNAVAILABLE`` if the store does not respond.
    """

    async def try_reserve(
        self, principal: str, purpose: Purpose, reservation_id: str, *, at_unix_seconds: float, max_reservations: int
    ) -> bool:
        """Reserve quota for a stream or job; return False if ``max_reservations`` of the principal are active.

        If a reservation with this id exists already, return True and change nothing.
        """
        ...

    async def try_raise_reserved_size(
        self,
        principal: str,
        purpose: Purpose,
        reservation_id: str,
        *,
        new_size: int,
        at_unix_seconds: float,
        max_total_size: int,
    ) -> bool:
        """Raise the recorded size of a job's stored files, in bytes; create the reservation if it is missing.

        Return False and change nothing if all sizes of the principal together would exceed ``max_total_size`` bytes. A
        size below the recorded size changes nothing.
        """
        ...

    async def mark_inactive(self, principal: str, purpose: Purpose, reservation_id: str) -> None:
        """Mark the reservation of a finished stream or job as inactive; its size still counts."""
        ...

    async def delete_reservations(self, principal: str, purpose: Purpose, reservation_ids: Collection[str]) -> None:
        """Delete reservations; ids without a reservation are ignored."""
        ...

    async def list_reservations(self, principal: str, purpose: Purpose) -> Sequence[QuotaReservation]:
        """Return a principal's reservations for streams or jobs, oldest first."""
        ...
