"""Scores of anomalous points by Tukey's fence test.

A point above the high percentile has the score (x - high) / (high - low) times a factor, a point below the low
percentile (x - low) / (high - low) times the factor. The factor makes the scores of all percentiles comparable: for a
normal distribution, a point has the same score with any percentiles. For the percentiles 10 and 90, Kusto uses a factor
that differs slightly from the factor of a normal distribution. Separate from ``decomposition``, because
``series_outliers`` scores a series as it is.
"""

from statistics import NormalDist
from typing import Any

import numpy as np

type Numbers = np.ndarray[Any, np.dtype[np.float64]]
type Flags = np.ndarray[Any, np.dtype[np.bool_]]

_TUKEY = (25.0, 75.0)
_CUSTOM = (10.0, 90.0)
_CUSTOM_FACTOR = 2.772605605507915
"""Factor that results from published scores of Kusto for the percentiles 10 and 90."""
_MILD_SCORE = 1.5
_LOWEST_PERCENTILE, _HIGHEST_PERCENTILE = 2.0, 98.0


def score_outliers(
    values: Numbers | None,
    kind: str | None,
    ignored: float | None,
    low: float | None,
    high: float | None,
    tested: int | None,
) -> Any:
    """Return the score of each point of a series; 0 for missing points and for points with the value ``ignored``.

    Args:
        values: points of the series; NaN for a missing point.
        kind: ``tukey`` or ``ctukey``.
        ignored: value of missing points.
        low: low percentile for ``ctukey``.
        high: high percentile for ``ctukey``.
        tested: number of points at the end that do not influence the percentiles.
    """
    if values is None:
        return None
    custom = _CUSTOM[0] if low is None else low, _CUSTOM[1] if high is None else high
    known = np.isfinite(values) if ignored is None else np.isfinite(values) & (values != ignored)
    return {"scores": compute_scores(values, _TUKEY if kind == "tukey" else custom, known, tested)}


def compute_scores(
    values: Numbers, percentiles: tuple[float, float], known: Flags | None = None, tested: int | None = None
) -> Numbers:
    """Return the score of each point of a series, relative to two percentiles of the series.

    Args:
        values: points of the series.
        percentiles: the low and the high percentile.
        known: flags of the points that are not missing; None for all finite points.
        tested: number of points at the end that do not influence the percentiles.
    """
    present = np.isfinite(values) if known is None else known
    learned = slice(max(len(values) - max(tested or 0, 0), 0))
    ordered = np.sort(values[learned][present[learned]])
    scores = np.zeros(len(values))
    if len(ordered) == 0:
        return scores
    low, high = (_interpolate_percentile(ordered, percentile) for percentile in percentiles)
    below, above = _compute_factors(*percentiles)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores = np.where(values > high, (values - high) / (high - low) * above, scores)
        scores = np.where(values < low, (values - low) / (high - low) * below, scores)
    return np.where(present, scores, 0.0)


def get_percentiles(method: str | None) -> tuple[float, float]:
    """Return the percentiles of a detection method, ``tukey`` or ``ctukey``."""
    return _TUKEY if method == "tukey" else _CUSTOM


def _interpolate_percentile(ordered: Numbers, percentile: float) -> float:
    limited = min(max(percentile, _LOWEST_PERCENTILE), _HIGHEST_PERCENTILE)
    position = (len(ordered) - 1) * limited / 100
    index = int(position)
    following = min(index + 1, len(ordered) - 1)
    return float(ordered[index] + (position - index) * (ordered[following] - ordered[index]))


def _compute_factors(low: float, high: float) -> tuple[float, float]:
    """Compute the factors by which scores below the low and above the high percentile are scaled."""
    if (low, high) == _CUSTOM:
        return _CUSTOM_FACTOR, _CUSTOM_FACTOR
    quantile = NormalDist().inv_cdf
    below, above, quartile = quantile(low / 100), quantile(high / 100), quantile(0.75)
    fence = quartile * (1 + 2 * _MILD_SCORE)
    width = _MILD_SCORE * (above - below)
    return width / max(fence + below, 1e-9), width / max(fence - above, 1e-9)
