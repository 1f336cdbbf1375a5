"""The store that instances share their budgets through."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """What an instance asks for.

    Attributes:
        principal: whose budget.
        instance: who asks.
        previous: id of the instance's last lease for this principal, empty for none.
        used: how much of it was used; the rest goes back.
        used_until: when the last of it was used, seconds since the epoch; it counts for a window from then.
        wanted: how many requests are asked for now.
        active: how many requests of the principal the instance is working on.
        budget: how many are allowed in a window.
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
    """A slice of a budget.

    Attributes:
        id: of the lease.
        granted: how many requests, 0 when the budget is used up.
        left: how many the whole budget still has beside it.
        elsewhere: how many requests of the principal other instances are working on.
        frees_at: when the first slice leaves the window, seconds since the epoch.
    """

    id: str
    granted: int
    left: int
    elsewhere: int
    frees_at: float


class LeaseStore(Protocol):
    """Keeps what was leased in the last window."""

    async def lease(self, asked: LeaseRequest, at: float) -> Lease:
        """Settle the last lease and grant a new one; of several instances at once none gets what another has.

        Args:
            asked: what is asked for.
            at: the time, seconds since the epoch.
        """
        ...
