"""Decomposition of a series into seasonal, trend and residual components, and the functions based on it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from emulators.kusto.series.outliers import compute_scores, get_percentiles
from emulators.kusto.series.periods import SHORTEST_PERIOD, find_periods

type Numbers = np.ndarray[Any, np.dtype[np.float64]]

_AUTOMATIC = -1
_DECOMPOSE_THRESHOLD = 0.6
_SEASONAL_THRESHOLD = 0.7
_ANOMALY_THRESHOLD = 1.5


@dataclass(frozen=True)
class Components:
    """Components of a series; the baseline is the sum of the seasonal and the trend component."""

    baseline: Numbers
    seasonal: Numbers
    trend: Numbers
    residual: Numbers


def decompose(
    values: Numbers | None, seasonality: int | None, trend: str | None, tested: int | None, threshold: float | None
) -> Any:
    """Return the components of a series by name: baseline, seasonal, trend and residual; None for a null series."""
    components = compute_components(values, seasonality, trend, tested, threshold)
    return None if components is None else vars(components)


def find_anomalies(
    values: Numbers | None,
    score: float | None,
    seasonality: int | None,
    trend: str | None,
    tested: int | None,
    method: str | None,
    threshold: float | None,
) -> Any:
    """Return an anomaly flag and a score for each point of a series, and the baseline of the series."""
    components = compute_components(values, seasonality, trend, tested, threshold)
    if components is None:
        return None
    scores = compute_scores(components.residual, get_percentiles(method), tested=tested)
    limit = _ANOMALY_THRESHOLD if score is None else score
    flags = (scores > limit).astype(np.int64) - (scores < -limit).astype(np.int64)
    return {"ad_flag": flags, "ad_score": scores, "baseline": components.baseline}


def extract_season(values: Numbers | None, period: int | None, tested: int | None) -> Any:
    """Return the seasonal component of a series; zeros if no period is given and none is found."""
    if values is None:
        return None
    learned = _select_learned(values, tested)
    return {"seasonal": _compute_season(learned, _find_period(learned, period, _SEASONAL_THRESHOLD), len(values))}


def compute_components(
    values: Numbers | None, seasonality: int | None, trend: str | None, tested: int | None, threshold: float | None
) -> Components | None:
    """Return the components of a series; None for a null series, or if no point remains to learn from.

    Args:
        values: points of the series; NaN for a missing point.
        seasonality: number of points of a period, 0 for no seasonal component, -1 to detect the period.
        trend: ``avg``, ``linefit`` or ``none``.
        tested: number of points at the end that do not influence the components.
        threshold: minimum score of a detected period.
    """
    if values is None:
        return None
    learned = _select_learned(values, tested)
    if np.isnan(learned).all():
        return None
    period = _find_period(learned, seasonality, _DECOMPOSE_THRESHOLD if threshold is None else threshold)
    seasonal = _compute_season(learned, period, len(values))
    line = _compute_trend(learned - seasonal[: len(learned)], trend or "avg", len(values))
    baseline = seasonal + line
    with np.errstate(invalid="ignore"):
        return Components(baseline, seasonal, line, values - baseline)


def _select_learned(values: Numbers, tested: int | None) -> Numbers:
    """Return the points from which the model is learned, without ``tested`` points at the end.

    NaN replaces infinity.
    """
    learned = values[: max(len(values) - max(tested or 0, 0), 0)]
    return np.where(np.isfinite(learned), learned, np.nan)


def _find_period(values: Numbers, period: int | None, threshold: float) -> int:
    if period not in (None, _AUTOMATIC):
        return max(int(period or 0), 0)
    found = find_periods(values, SHORTEST_PERIOD, len(values) / 2, threshold)
    return int(found[0][0]) if found else 0


def _compute_season(values: Numbers, period: int, length: int) -> Numbers:
    """Return the seasonal component: the median of each phase of the period, repeated up to ``length`` points."""
    if period == 0 or len(values) == 0:
        return np.zeros(length)
    period = min(period, max(len(values), 1))
    padded = np.full(-(-len(values) // period) * period, np.nan)
    padded[: len(values)] = values
    ordered = np.sort(padded.reshape(-1, period), axis=0)  # NaN is sorted to the end
    counts = np.count_nonzero(~np.isnan(ordered), axis=0)
    phases = np.arange(period)
    middle = (
        ordered[np.maximum(counts - 1, 0) // 2, phases] + ordered[np.minimum(counts // 2, len(ordered) - 1), phases]
    ) / 2
    medians = np.where(counts > 0, middle, 0.0)
    return np.tile(medians, -(-length // period))[:length]


def _compute_trend(values: Numbers, kind: str, length: int) -> Numbers:
    known = ~np.isnan(values)
    if kind == "none":
        return np.zeros(length)
    average = float(values[known].mean())
    if kind == "avg" or np.count_nonzero(known) == 1:
        return np.full(length, average)
    positions = np.flatnonzero(known).astype(float)
    center = positions.mean()
    slope = float((positions - center) @ (values[known] - average)) / float((positions - center) @ (positions - center))
    return average + slope * (np.arange(length) - center)
