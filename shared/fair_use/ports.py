"""Port of the store that counts the live streams and jobs of each principal over all instances."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Purpose(StrEnum):
    """Kind of resources that are counted together."""

    STREAMS = "streams"
    JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class QuotaReservation:
    """One live stream or job that counts against its principal's quota.

    Attributes:
        id: id of the stream or job.
        taken_at: seconds since the epoch.
        active: whether it counts towards the limit of their number; a finished job only counts with its size.
        size: size of its stored files in bytes.
    """

    id: str
    taken_at: float
    active: bool = True
    size: int = 0


class QuotaStore(Protocol):
    """Stores the places of each principal.

    Concurrent calls of several processes never exceed a limit. Every method raises WorkspaceError UNAVAILABLE
    ``QUOTAS_UNAVAILABLE`` if the store does not respond.
    """

    async def take(self, principal: str, purpose: Purpose, place_id: str, *, at: float, limit: int) -> bool:
        """Add an active place; return False when the principal already has as many active ones as the limit.

        A place with this id that exists already is not changed.
        """
        ...

    async def grow(self, principal: str, purpose: Purpose, place_id: str, *, size: int, at: float, limit: int) -> bool:
        """Raise the size of a place; return False, and change nothing, when all sizes together would pass the limit.

        Adds the place when it is missing. A smaller size than the stored one changes nothing.
        """
        ...

    async def finish(self, principal: str, purpose: Purpose, place_id: str) -> None:
        """Mark a place as no longer active; its size still counts."""
        ...

    async def free(self, principal: str, purpose: Purpose, place_ids: Collection[str]) -> None:
        """Remove places; missing ones are ignored."""
        ...

    async def list_reservations(self, principal: str, purpose: Purpose) -> Sequence[QuotaReservation]:
        """Return the principal's places, oldest first."""
        ...
