"""Quotas of a principal by tier: the defaults, and the maximum values that a workspace document can declare."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.catalog.models import Quotas, Tier

GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """Quotas that apply to each principal.

    Attributes:
        streams: maximum number of open live streams.
        jobs: maximum number of unfinished downloads.
        download_bytes: maximum total size in bytes of the stored download files.
    """

    streams: int
    jobs: int
    download_bytes: int


DEFAULTS: Final[Mapping[Tier, QuotaLimits]] = {
    Tier.FREE: QuotaLimits(5, 10, 50 * GIB),
    Tier.PRO: QuotaLimits(20, 10, 50 * GIB),
    Tier.ENTERPRISE: QuotaLimits(20, 10, 50 * GIB),
}
MAXIMA: Final[Mapping[Tier, QuotaLimits]] = {
    Tier.FREE: QuotaLimits(5, 10, 50 * GIB),
    Tier.PRO: QuotaLimits(100, 50, 500 * GIB),
    Tier.ENTERPRISE: QuotaLimits(500, 200, 10_240 * GIB),
}


def resolve_quotas(tier: Tier, quotas: Quotas) -> QuotaLimits:
    """Return the quotas of each principal: the declared values or the tier's defaults, limited to the tier's maxima."""
    default, maxima = DEFAULTS[tier], MAXIMA[tier]
    return QuotaLimits(
        _resolve_quota(quotas.streams_per_principal, default.streams, maxima.streams),
        _resolve_quota(quotas.jobs_per_principal, default.jobs, maxima.jobs),
        _resolve_quota(quotas.download_bytes, default.download_bytes, maxima.download_bytes),
    )


def _resolve_quota(value: int | None, default: int, maximum: int) -> int:
    return default if value is None else min(value, maximum)
