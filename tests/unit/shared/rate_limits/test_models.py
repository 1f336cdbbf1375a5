"""Tests of the rate limits of the tiers, and of their headers."""

import pytest

from shared.catalog.models import Tier, TierLimits
from shared.catalog.snapshot import Catalog
from shared.rate_limits.models import FREE, PRO, Budget, RateLimitState, get_rate_limit_budget

OWN = TierLimits.model_validate({"requestsPerMinute": 7, "concurrent": 3})


@pytest.mark.parametrize(
    ("tier", "limits", "budget"),
    [
        (Tier.FREE, None, FREE),
        (Tier.PRO, None, PRO),
        (Tier.ENTERPRISE, None, PRO),
        (Tier.ENTERPRISE, OWN, Budget(7, 3)),
        (Tier.FREE, OWN, FREE),
        (Tier.PRO, OWN, PRO),
    ],
)
def test_the_tier_determines_the_budget(tier: Tier, limits: TierLimits | None, budget: Budget) -> None:
    """Only Enterprise workspaces can set their own rate limits; without a setting, they have the limits of Pro."""
    assert get_rate_limit_budget(Catalog(tier=tier, limits=limits)) == budget


def test_rate_limit_headers_state_quota_window_and_remainder() -> None:
    """The headers state the quota, the window, the remaining requests, and the seconds until more are available."""
    assert RateLimitState(Budget(600, 20), 599, 60).build_headers() == {
        "RateLimit-Policy": '"default";q=600;w=60',
        "RateLimit": '"default";r=599;t=60',
    }
