"""Budgets of the tiers, and where a caller stands."""

from dataclasses import dataclass
from typing import Final

from shared.catalog.models import Tier
from shared.catalog.snapshot import Catalog

WINDOW_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Budget:
    """What one principal may have.

    Attributes:
        requests: in any window of 60 seconds.
        concurrent: at once.
    """

    requests: int
    concurrent: int


FREE: Final = Budget(60, 5)
PRO: Final = Budget(600, 20)


def budget_for(catalog: Catalog) -> Budget:
    """Return the budget of a workspace's tier; an enterprise one without numbers of its own has those of Pro."""
    if catalog.tier is Tier.ENTERPRISE and catalog.limits is not None:
        return Budget(catalog.limits.requests_per_minute, catalog.limits.concurrent)
    return FREE if catalog.tier is Tier.FREE else PRO


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """Where a principal stands after a request.

    Attributes:
        budget: what it may have.
        remaining: requests that it may still make now.
        reset_seconds: until the window has given back something; at least 1.
    """

    budget: Budget
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        """Return the header fields of draft-ietf-httpapi-ratelimit-headers-10."""
        return {
            "RateLimit-Policy": f'"default";q={self.budget.requests};w={WINDOW_SECONDS}',
            "RateLimit": f'"default";r={self.remaining};t={self.reset_seconds}',
        }
