"""Quotas of a principal by tier: the defaults, and the most that a workspace document may set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.catalog.models import Quotas, Tier

GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The quotas that apply to each principal.

    Attributes:
        streams: open live streams.
        jobs: unfinished downloads.
        download_bytes: bytes of all stored files of downloads.
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
    """Return the quotas of a workspace: what its document sets, else the tier's defaults, never above the maxima."""
    default, most = DEFAULTS[tier], MAXIMA[tier]
    return QuotaLimits(
        _chosen(quotas.streams_per_principal, default.streams, most.streams),
        _chosen(quotas.jobs_per_principal, default.jobs, most.jobs),
        _chosen(quotas.download_bytes, default.download_bytes, most.download_bytes),
    )


def _chosen(value: int | None, default: int, most: int) -> int:
    return default if value is None else min(value, most)
