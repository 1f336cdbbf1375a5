"""Port of the shared store that leases slices (shares) of each principal's request budget to instances."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Request of an instance for a slice (share) of a principal's request budget.

    Attributes:
        principal: owner of the budget.
        instance: id of the requesting instance.
        previous: id of the instance's last lease for this principal; empty without an earlier lease.
        used: number of requests of the last slice that the instance admitted; the others return to the budget.
        used_until: time of the last admitted request, in seconds since the epoch; the admitted requests count for one
            window (60 seconds) from then.
        wanted: number of requests that the instance wants in the new slice; 0 only states ``active``.
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
    """Slice (share) of a principal's request budget that an instance has leased.

    Attributes:
        id: id of the lease; empty if ``granted`` is 0, and for a local slice while the store fails.
        granted: number of requests that the instance may admit; 0 if the budget is used up.
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
    """Store of the slices (shares) of request budgets that instances have leased within the last 60 seconds."""

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        """Give the unused requests of the instance's last slice back to the budget and lease a new slice, atomically.

        Args:
            request: use of the last slice, and the wanted size of the new one.
            read_unix_seconds: returns the current time, in seconds since the epoch. The store calls it at the moment
                when it changes the leases. It then shortens every stored lease that ends too late for the current time,
                because the clock was set back after that lease. A time that was read earlier must not be used: if the
                clock was set forward in between, the store would also shorten valid new leases of other instances.
        """
        ...
