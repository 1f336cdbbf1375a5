"""Tests of the quotas of a principal."""

import pytest

from shared.catalog.models import Quotas, Tier
from shared.catalog.quotas import DEFAULTS, GIB, MAXIMA, QuotaLimits, resolve_quotas


@pytest.mark.parametrize("tier", Tier)
def test_without_declared_quotas_the_defaults_of_the_tier_apply(tier: Tier) -> None:
    """If a workspace declares no quotas, it has the default quotas of its tier."""
    assert resolve_quotas(tier, Quotas()) == DEFAULTS[tier]


@pytest.mark.parametrize("tier", Tier)
def test_declared_quotas_are_limited_to_the_tier(tier: Tier) -> None:
    """A declared quota above the maximum of the tier is reduced to the maximum."""
    declared = Quotas.model_construct(streams_per_principal=10**6, jobs_per_principal=10**6, download_bytes=10**18)
    assert resolve_quotas(tier, declared) == MAXIMA[tier]


def test_each_quota_is_declared_separately() -> None:
    """A declared quota replaces the default of this quota only, also if it is lower."""
    declared = Quotas.model_construct(streams_per_principal=1, jobs_per_principal=None, download_bytes=None)
    assert resolve_quotas(Tier.PRO, declared) == QuotaLimits(1, 10, 50 * GIB)
