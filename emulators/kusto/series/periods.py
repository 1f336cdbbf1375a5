"""Detection of periods in a series by its autocorrelation.

The documentation of Kusto does not state how periods are scored. Here the score of a period is the smallest
autocorrelation at the multiples of the period, up to half of the series. A period is found where the autocorrelation
has a local maximum. This reproduces the printed examples of the documentation. Separate from ``decomposition``, because
``series_periods_detect`` needs no decomposition.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from emulators.kusto.python_functions import FunctionFailure
from emulators.kusto.series_functions import check_stopped

type Numbers = np.ndarray[Any, np.dtype[np.float64]]

SHORTEST_PERIOD = 4
"""Minimum number of points of a period in Kusto."""
MAX_PERIODS = 1000
"""Maximum number of periods that series_periods_detect() returns."""
_MULTIPLE_MARGIN = 0.05
"""A multiple of a found period is another period only if its score is higher by more than this difference."""
_WEAK_SCORE = 0.6
"""If no period has a higher score, the linear trend of the series is removed before the search is repeated."""


def detect_periods(values: Numbers | None, shortest: float | None, longest: float | None, count: int | None) -> Any:
    """Return up to ``count`` periods between ``shortest`` and ``longest`` and their scores, best first.

    The result has ``count`` elements; zeros follow the found periods. It is None without a series, and if a limit is
    missing or NaN.

    Raises:
        FunctionFailure: ``count`` is above ``MAX_PERIODS``.
    """
    if values is None or shortest is None or longest is None or count is None:
        return None
    if count > MAX_PERIODS:
        raise FunctionFailure("EMB0001", f"series_periods_detect() with num_periods above {MAX_PERIODS}")
    if math.isnan(shortest) or math.isnan(longest):
        return None
    found = find_periods(values, shortest, longest)[: max(count, 0)]
    rest = [(0.0, 0.0)] * (max(count, 0) - len(found))
    periods, scores = zip(*found, *rest, strict=True) if count > 0 else ((), ())
    return {"periods": np.asarray(periods, dtype=float), "scores": np.asarray(scores, dtype=float)}


def validate_periods(values: Numbers | None, periods: Numbers | None) -> Any:
    """Return the periods and the score of each; a period outside the limits of Kusto has the score 0."""
    if values is None or periods is None:
        return None
    correlation = _compute_autocorrelation(_fill_gaps(values))
    scores = [_compute_score(correlation, period) for period in periods]
    return {"periods": periods, "scores": np.asarray(scores, dtype=float)}


def find_periods(values: Numbers, shortest: float, longest: float, threshold: float = 0.0) -> list[tuple[float, float]]:
    """Return the periods of a series between ``shortest`` and ``longest`` and their scores, best first.

    Periods with a score below ``threshold`` are omitted.
    """
    filled = _fill_gaps(values)
    found = _find_peaks(filled, (shortest, longest), threshold)
    if not found or found[0][1] < _WEAK_SCORE:
        straight = _find_peaks(_remove_line(filled), (shortest, longest), threshold)
        found = max(found, straight, key=lambda each: each[0][1] if each else 0.0)
    return found


def _find_peaks(values: Numbers, limits: tuple[float, float], threshold: float) -> list[tuple[float, float]]:
    correlation = _compute_autocorrelation(values)
    first = max(SHORTEST_PERIOD, math.ceil(min(max(limits[0], 0), len(correlation))))
    last = int(min(max(limits[1], 0), len(correlation) - 2))
    inner = correlation[1:-1]
    # A score is never above the autocorrelation, so that few peaks need a closer look.
    rising = np.flatnonzero(
        (inner > max(threshold - 1e-12, 0)) & (inner >= correlation[:-2]) & (inner >= correlation[2:])
    )
    lags = [lag for lag in (rising + 1).tolist() if first <= lag <= last and _is_highest_nearby(correlation, lag)]
    scored = [(float(lag), score) for lag in lags if (score := _compute_score(correlation, lag)) > 0]
    kept = [each for each in _drop_multiples(scored) if each[1] >= threshold]
    return sorted(kept, key=lambda each: (-each[1], each[0]))


def _is_highest_nearby(correlation: Numbers, lag: int) -> bool:
    check_stopped()
    near = max(1, lag // 4)
    return bool(correlation[lag] >= correlation[lag - near : lag + near + 1].max())


def _compute_score(correlation: Numbers, period: float) -> float:
    if not SHORTEST_PERIOD <= period <= len(correlation) - 1:
        return 0.0
    multiples = np.arange(1, int((len(correlation) - 1) / period) + 1) * period
    lags = np.minimum(np.rint(multiples).astype(int), len(correlation) - 1)
    return float(min(max(correlation[lags].min(), 0.0), 1.0))


def _drop_multiples(scored: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the periods without those that are multiples of a shorter period with about the same score."""
    kept: list[tuple[float, float]] = []
    for period, score in scored:
        bases = (base for base, best in kept if score - best < _MULTIPLE_MARGIN and _is_multiple(period, base))
        if next(bases, None) is None:
            kept.append((period, score))
    return kept


def _is_multiple(period: float, base: float) -> bool:
    times = round(period / base)
    return times > 1 and abs(period - times * base) <= times / 2


def _compute_autocorrelation(values: Numbers) -> Numbers:
    """Return the unbiased autocorrelation for each lag from 0 to half of the series; zeros for a constant series."""
    count = len(values)
    size = count // 2 + 1
    if count < 2 * SHORTEST_PERIOD:
        return np.zeros(size)
    centered = values - values.mean()
    length = _find_fast_length(count + size)
    spectrum = np.fft.rfft(centered, length)
    products = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, length)[:size]
    if products[0] <= count * np.finfo(float).eps * max(1.0, float(np.square(values).max())):
        return np.zeros(size)
    correlation: Numbers = products / products[0] * (count / (count - np.arange(size)))
    return correlation


def _find_fast_length(count: int) -> int:
    """Return a power of two, or three quarters of one, of at least ``count``; the transform is fast for both."""
    power = 1 << (count - 1).bit_length()
    return power // 4 * 3 if power // 4 * 3 >= count else power


def _fill_gaps(values: Numbers) -> Numbers:
    """Return the series with the mean in place of missing and infinite points."""
    finite = np.isfinite(values)
    if finite.all():
        return values
    return np.where(finite, values, values[finite].mean() if finite.any() else 0.0)


def _remove_line(values: Numbers) -> Numbers:
    positions: Numbers = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    squares = float(positions @ positions)
    return values - positions * (float(positions @ values) / squares) if squares else values
