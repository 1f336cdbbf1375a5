"""Functions that find seasons, trends, periods and anomalous points in a series.

Periods: Kusto's documentation does not state how periods are scored. Here, the score of a period is the smallest
autocorrelation at its multiples, up to half the length of the series. A period is found where the autocorrelation has a
local maximum. This reproduces the printed examples of the documentation.

Outliers: the scores of anomalous points follow Tukey's fence test. A point above the high percentile has the score (x -
high) / (high - low) times a factor; a point below the low percentile has the score (x - low) / (high - low) times the
factor. The factor makes scores comparable: in a normal distribution, a point has the same score for any choice of
percentiles. For the percentiles 10 and 90, Kusto uses a factor that differs slightly from the factor of a normal
distribution.

Decomposition: a series is the sum of a seasonal, a trend and a residual component.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from emulators.kusto.python_functions import FunctionFailure
from emulators.kusto.series import SqlOutputs
from emulators.kusto.stop_events import raise_if_stopped

type Numbers = np.ndarray[Any, np.dtype[np.float64]]

SHORTEST_PERIOD = 4
"""Minimum number of points of a period in Kusto."""
MAX_PERIODS = 1000
"""Maximum number of periods that series_periods_detect() returns."""
_MULTIPLE_MARGIN = 0.05
"""A multiple of a found period is another period only if its score is higher by more than this difference."""
_WEAK_SCORE = 0.6
"""If no period has a higher score, the linear trend of the series is removed before the search is repeated."""


class ScoredPeriod(NamedTuple):
    """Period of a series in points, and its score from 0 to 1."""

    period: float
    score: float


def detect_periods(
    values: Numbers | None, shortest: float | None, longest: float | None, period_count: int | None
) -> SqlOutputs:
    """Return up to ``period_count`` periods between ``shortest`` and ``longest``, and their scores, best first.

    If fewer periods are found, zeros follow them, so that the result always has ``period_count`` periods and scores.
    Return None if the series or an argument is None, or if ``shortest`` or ``longest`` is NaN.

    Raises:
        FunctionFailure: ``period_count`` is above ``MAX_PERIODS``.
    """
    if values is None or shortest is None or longest is None or period_count is None:
        return None
    if period_count > MAX_PERIODS:
        raise FunctionFailure(
            "EMB0001",
            f"series_periods_detect() with num_periods above {MAX_PERIODS} is not supported by the embedded query "
            "engine",
        )
    if math.isnan(shortest) or math.isnan(longest):
        return None
    found = list_detected_periods(values, shortest, longest)[: max(period_count, 0)]
    rest = [ScoredPeriod(0.0, 0.0)] * (max(period_count, 0) - len(found))
    periods, scores = zip(*found, *rest, strict=True) if period_count > 0 else ((), ())
    return {"periods": np.asarray(periods, dtype=float), "scores": np.asarray(scores, dtype=float)}


def score_periods(values: Numbers | None, periods: Numbers | None) -> SqlOutputs:
    """Return the given periods and the score of each period in a series; None for a null series or null periods.

    The score is 0 for a period that is shorter than ``SHORTEST_PERIOD`` or longer than half of the series.
    """
    if values is None or periods is None:
        return None
    correlation = _compute_autocorrelation(_replace_gaps_by_mean(values))
    scores = [_compute_period_score(correlation, period) for period in periods]
    return {"periods": periods, "scores": np.asarray(scores, dtype=float)}


def list_detected_periods(
    values: Numbers, shortest: float, longest: float, min_score: float = 0.0
) -> list[ScoredPeriod]:
    """Return the periods of a series between ``shortest`` and ``longest``, best first.

    Periods with a score below ``min_score`` are omitted.
    """
    filled = _replace_gaps_by_mean(values)
    found = _list_correlation_peaks(filled, shortest, longest, min_score)
    if not found or found[0].score < _WEAK_SCORE:
        straight = _list_correlation_peaks(_subtract_trend_line(filled), shortest, longest, min_score)
        found = max(found, straight, key=lambda each: each[0].score if each else 0.0)
    return found


def _list_correlation_peaks(values: Numbers, shortest: float, longest: float, min_score: float) -> list[ScoredPeriod]:
    correlation = _compute_autocorrelation(values)
    first = max(SHORTEST_PERIOD, math.ceil(min(max(shortest, 0), len(correlation))))
    last = int(min(max(longest, 0), len(correlation) - 2))
    inner = correlation[1:-1]
    # A score is never above the autocorrelation, so that few peaks need a closer look.
    rising = np.flatnonzero(
        (inner > max(min_score - 1e-12, 0)) & (inner >= correlation[:-2]) & (inner >= correlation[2:])
    )
    lags = [lag for lag in (rising + 1).tolist() if first <= lag <= last and _is_local_maximum(correlation, lag)]
    scored = [ScoredPeriod(float(lag), score) for lag in lags if (score := _compute_period_score(correlation, lag)) > 0]
    kept = [each for each in _drop_multiples_of_periods(scored) if each.score >= min_score]
    return sorted(kept, key=lambda each: (-each.score, each.period))


def _is_local_maximum(correlation: Numbers, lag: int) -> bool:
    raise_if_stopped()
    near = max(1, lag // 4)
    return bool(correlation[lag] >= correlation[lag - near : lag + near + 1].max())


def _compute_period_score(correlation: Numbers, period: float) -> float:
    if not SHORTEST_PERIOD <= period <= len(correlation) - 1:
        return 0.0
    multiples = np.arange(1, int((len(correlation) - 1) / period) + 1) * period
    lags = np.minimum(np.rint(multiples).astype(int), len(correlation) - 1)
    return float(min(max(correlation[lags].min(), 0.0), 1.0))


def _drop_multiples_of_periods(scored: Sequence[ScoredPeriod]) -> list[ScoredPeriod]:
    """Return the periods without multiples of a shorter period that has about the same score."""
    kept: list[ScoredPeriod] = []
    for period, score in scored:
        bases = (base for base, best in kept if score - best < _MULTIPLE_MARGIN and _is_multiple(period, base))
        if next(bases, None) is None:
            kept.append(ScoredPeriod(period, score))
    return kept


def _is_multiple(period: float, base_period: float) -> bool:
    times = round(period / base_period)
    return times > 1 and abs(period - times * base_period) <= times / 2


def _compute_autocorrelation(values: Numbers) -> Numbers:
    """Return the unbiased autocorrelation for each lag from 0 to half of the series; zeros for a constant series."""
    count = len(values)
    size = count // 2 + 1
    if count < 2 * SHORTEST_PERIOD:
        return np.zeros(size)
    centered = values - values.mean()
    length = _get_fast_fft_length(count + size)
    spectrum = np.fft.rfft(centered, length)
    products = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, length)[:size]
    if products[0] <= count * np.finfo(float).eps * max(1.0, float(np.square(values).max())):
        return np.zeros(size)
    correlation: Numbers = products / products[0] * (count / (count - np.arange(size)))
    return correlation


def _get_fast_fft_length(min_length: int) -> int:
    """Return the smallest FFT length of at least ``min_length`` that is a power of two, or three quarters of one."""
    power = 1 << (min_length - 1).bit_length()
    return power // 4 * 3 if power // 4 * 3 >= min_length else power


def _replace_gaps_by_mean(values: Numbers) -> Numbers:
    """Return the series with missing and infinite points replaced by the mean."""
    finite = np.isfinite(values)
    if finite.all():
        return values
    return np.where(finite, values, values[finite].mean() if finite.any() else 0.0)


def _subtract_trend_line(values: Numbers) -> Numbers:
    positions: Numbers = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    squares = float(positions @ positions)
    return values - positions * (float(positions @ values) / squares) if squares else values


type Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Percentiles(NamedTuple):
    """Low and high percentile of a series, outside of which points can be outliers."""

    low: float
    high: float


_TUKEY = Percentiles(25.0, 75.0)
_CUSTOM = Percentiles(10.0, 90.0)
_CUSTOM_FACTOR = 2.772605605507915
"""Factor that results from published scores of Kusto for the percentiles 10 and 90."""
_MILD_SCORE = 1.5
_LOWEST_PERCENTILE, _HIGHEST_PERCENTILE = 2.0, 98.0


def score_outliers(
    values: Numbers | None,
    method: str | None,
    ignored_value: float | None,
    low_percentile: float | None,
    high_percentile: float | None,
    tested_points: int | None,
) -> SqlOutputs:
    """Return the score of each point of a series; 0 for missing points and for points with the value ``ignored_value``.

    Args:
        values: points of the series; NaN for a missing point.
        method: ``tukey`` or ``ctukey``.
        ignored_value: value that marks a missing point.
        low_percentile: low percentile for ``ctukey``.
        high_percentile: high percentile for ``ctukey``.
        tested_points: number of points at the end that do not influence the percentiles.
    """
    if values is None:
        return None
    custom = Percentiles(
        _CUSTOM.low if low_percentile is None else low_percentile,
        _CUSTOM.high if high_percentile is None else high_percentile,
    )
    known = np.isfinite(values) if ignored_value is None else np.isfinite(values) & (values != ignored_value)
    return {"scores": compute_outlier_scores(values, _TUKEY if method == "tukey" else custom, known, tested_points)}


def compute_outlier_scores(
    values: Numbers,
    percentiles: Percentiles,
    known_points: Flags | None = None,
    tested_points: int | None = None,
) -> Numbers:
    """Return the score of each point of a series relative to a low and a high percentile of the series.

    Args:
        values: points of the series.
        percentiles: the low and the high percentile.
        known_points: flags of the points that are not missing; None for all finite points.
        tested_points: number of points at the end that do not influence the percentiles.
    """
    present = np.isfinite(values) if known_points is None else known_points
    learned = slice(max(len(values) - max(tested_points or 0, 0), 0))
    ordered = np.sort(values[learned][present[learned]])
    scores = np.zeros(len(values))
    if len(ordered) == 0:
        return scores
    low, high = (_interpolate_percentile(ordered, percentile) for percentile in percentiles)
    below, above = _compute_outlier_score_factors(*percentiles)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores = np.where(values > high, (values - high) / (high - low) * above, scores)
        scores = np.where(values < low, (values - low) / (high - low) * below, scores)
    return np.where(present, scores, 0.0)


def get_outlier_percentiles(method: str | None) -> Percentiles:
    """Return the low and high percentile of a detection method, ``tukey`` or ``ctukey``."""
    return _TUKEY if method == "tukey" else _CUSTOM


def _interpolate_percentile(sorted_values: Numbers, percentile: float) -> float:
    limited = min(max(percentile, _LOWEST_PERCENTILE), _HIGHEST_PERCENTILE)
    position = (len(sorted_values) - 1) * limited / 100
    index = int(position)
    following = min(index + 1, len(sorted_values) - 1)
    return float(sorted_values[index] + (position - index) * (sorted_values[following] - sorted_values[index]))


class _ScoreFactors(NamedTuple):
    """Factors by which outlier scores are multiplied.

    Attributes:
        below: factor for points below the low percentile.
        above: factor for points above the high percentile.
    """

    below: float
    above: float


def _compute_outlier_score_factors(low_percentile: float, high_percentile: float) -> _ScoreFactors:
    """Compute the factors for the scores of points that are below the low or above the high percentile.

    The factors make scores comparable: in a normal distribution, a point has the same score for any two percentiles.
    """
    if (low_percentile, high_percentile) == _CUSTOM:
        return _ScoreFactors(_CUSTOM_FACTOR, _CUSTOM_FACTOR)
    quantile = NormalDist().inv_cdf
    below, above, quartile = quantile(low_percentile / 100), quantile(high_percentile / 100), quantile(0.75)
    fence = quartile * (1 + 2 * _MILD_SCORE)
    width = _MILD_SCORE * (above - below)
    return _ScoreFactors(width / max(fence + below, 1e-9), width / max(fence - above, 1e-9))


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


def decompose_series(
    values: Numbers | None,
    seasonality: int | None,
    trend: str | None,
    tested_points: int | None,
    min_period_score: float | None,
) -> SqlOutputs:
    """Return the components of a series by name: baseline, seasonal, trend and residual; None for a null series."""
    components = compute_series_components(values, seasonality, trend, tested_points, min_period_score)
    return None if components is None else vars(components)


def score_anomalies(
    values: Numbers | None,
    score_threshold: float | None,
    seasonality: int | None,
    trend: str | None,
    tested_points: int | None,
    method: str | None,
    min_period_score: float | None,
) -> SqlOutputs:
    """Return an anomaly flag and a score for each point of a series, and the baseline of the series.

    A point is an anomaly if its score is above ``score_threshold`` (flag 1) or below ``-score_threshold`` (flag -1).
    `compute_series_components` describes the other arguments; ``method`` is that of `get_outlier_percentiles`.
    """
    components = compute_series_components(values, seasonality, trend, tested_points, min_period_score)
    if components is None:
        return None
    scores = compute_outlier_scores(components.residual, get_outlier_percentiles(method), tested_points=tested_points)
    limit = _ANOMALY_THRESHOLD if score_threshold is None else score_threshold
    flags = (scores > limit).astype(np.int64) - (scores < -limit).astype(np.int64)
    return {"ad_flag": flags, "ad_score": scores, "baseline": components.baseline}


def extract_seasonal_component(values: Numbers | None, period: int | None, tested_points: int | None) -> SqlOutputs:
    """Return the seasonal component of a series; zeros if ``period`` is 0 or if no period can be detected.

    The period is detected if ``period`` is None or -1.
    """
    if values is None:
        return None
    learned = _select_training_points(values, tested_points)
    return {
        "seasonal": _compute_seasonal_component(
            learned, _get_or_detect_period(learned, period, _SEASONAL_THRESHOLD), len(values)
        )
    }


def compute_series_components(
    values: Numbers | None,
    seasonality: int | None,
    trend: str | None,
    tested_points: int | None,
    min_period_score: float | None,
) -> Components | None:
    """Divide a series into its seasonal component, trend and residual.

    Return None for a null series, or if all points that may influence the components are missing.

    Args:
        values: points of the series; NaN for a missing point.
        seasonality: number of points of a period, 0 for no seasonal component, -1 to detect the period.
        trend: ``avg``, ``linefit`` or ``none``.
        tested_points: number of points at the end that do not influence the components.
        min_period_score: minimum score of a detected period.
    """
    if values is None:
        return None
    learned = _select_training_points(values, tested_points)
    if np.isnan(learned).all():
        return None
    period = _get_or_detect_period(
        learned, seasonality, _DECOMPOSE_THRESHOLD if min_period_score is None else min_period_score
    )
    seasonal = _compute_seasonal_component(learned, period, len(values))
    line = _compute_trend_component(learned - seasonal[: len(learned)], trend or "avg", len(values))
    baseline = seasonal + line
    with np.errstate(invalid="ignore"):
        return Components(baseline, seasonal, line, values - baseline)


def _select_training_points(values: Numbers, tested_points: int | None) -> Numbers:
    """Return the points from which the components are computed: all except the last ``tested_points``.

    Infinite points are replaced by NaN.
    """
    learned = values[: max(len(values) - max(tested_points or 0, 0), 0)]
    return np.where(np.isfinite(learned), learned, np.nan)


def _get_or_detect_period(values: Numbers, period: int | None, min_score: float) -> int:
    if period not in (None, _AUTOMATIC):
        return max(int(period or 0), 0)
    found = list_detected_periods(values, SHORTEST_PERIOD, len(values) / 2, min_score)
    return int(found[0].period) if found else 0


def _compute_seasonal_component(values: Numbers, period: int, length: int) -> Numbers:
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


def _compute_trend_component(values: Numbers, trend: str, length: int) -> Numbers:
    known = ~np.isnan(values)
    if trend == "none":
        return np.zeros(length)
    average = float(values[known].mean())
    if trend == "avg" or np.count_nonzero(known) == 1:
        return np.full(length, average)
    positions = np.flatnonzero(known).astype(float)
    center = positions.mean()
    slope = float((positions - center) @ (values[known] - average)) / float((positions - center) @ (positions - center))
    return average + slope * (np.arange(length) - center)
