"""Rate limits of the workspace tiers (such as Pro), and the current usage of a caller's limit."""

from dataclasses import dataclass
from typing import Final

from shared.catalog.models import Tier
from shared.catalog.snapshot import Catalog

WINDOW_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Budget:
    """Rate limits of one principal.

    Attributes:
        requests: maximum number of requests in any window of 60 seconds.
        concurrent: maximum number of concurrent requests.
    """

    requests: int
    concurrent: int


FREE: Final = Budget(60, 5)
PRO: Final = Budget(600, 20)


def get_rate_limit_budget(catalog: Catalog) -> Budget:
    """Return the rate limits of each principal of a workspace.

    The tier determines the limits; an Enterprise workspace without configured limits has the limits of the tier Pro.
    """
    if catalog.tier is Tier.ENTERPRISE and catalog.limits is not None:
        return Budget(catalog.limits.requests_per_minute, catalog.limits.concurrent)
    return FREE if catalog.tier is Tier.FREE else PRO


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """State of a principal's rate limit after a request.

    Attributes:
        budget: rate limits that apply to the principal.
        remaining: number of requests that the principal can still make now.
        reset_seconds: seconds until further requests become available; at least 1.
    """

    budget: Budget
    remaining: int
    reset_seconds: int

    def build_headers(self) -> dict[str, str]:
        """Build the headers ``RateLimit-Policy`` and ``RateLimit`` (draft-ietf-httpapi-ratelimit-headers-10)."""
        return {
            "RateLimit-Policy": f'"default";q={self.budget.requests};w={WINDOW_SECONDS}',
            "RateLimit": f'"default";r={self.remaining};t={self.reset_seconds}',
        }
