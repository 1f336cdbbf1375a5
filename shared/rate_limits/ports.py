"""Port of the store that all instances share, which leases slices of each principal's budget."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Request of an instance for a slice of a principal's budget.

    Attributes:
        principal: owner of the budget.
        instance: id of the requesting instance.
        previous: id of the instance's last slice for this principal; empty if there is none.
        used: number of used requests of the last slice; the others return to the budget.
        used_until: time of the last used request, in seconds since the epoch; it counts for one window from then.
        wanted: number of requests that the instance wants in the new slice.
        active: number of requests of the principal that the instance is processing.
        budget: number of requests that are allowed in a window.
    """

    principal: str
    instance: str
    previous: str
    used: int
    used_until: float
    wanted: int
    active: int
    budget: int


@dataclass(frozen=True, slots=True)
class Lease:
    """Slice of a budget that an instance has leased.

    Attributes:
        id: id of the lease.
        granted: number of requests; 0 if the budget is used up.
        left: number of requests that remain in the budget after this lease.
        active_on_other_instances: number of requests of the principal that other instances are processing.
        frees_at: time at which the oldest slice stops counting, in seconds since the epoch.
    """

    id: str
    granted: int
    left: int
    active_on_other_instances: int
    frees_at: float


class LeaseStore(Protocol):
    """Store of the slices that were leased within the last 60 seconds."""

    async def lease(self, request: LeaseRequest, at: float) -> Lease:
        """Return the unused requests of the instance's last slice to the budget and lease a new slice, atomically.

        Args:
            request: the request for a slice.
            at: current time, in seconds since the epoch.
        """
        ...
