"""Filters of series: finite impulse response (FIR) and infinite impulse response (IIR).

If a point is missing, every result that depends on it is missing, too.
"""

import itertools
from typing import Any

import numpy as np

from emulators.kusto.series import SqlOutputs
from emulators.kusto.stop_events import raise_if_stopped

type Numbers = np.ndarray[Any, np.dtype[np.float64]]

_PRODUCTS = 1 << 23
"""Number of products between two checks for cancellation, a few milliseconds."""
_STEPS = 4096
"""Number of recursive steps between two checks for cancellation."""


def apply_fir_filter(
    values: Numbers | None,
    weights: Numbers | None,
    normalize: bool | None,  # noqa: FBT001  the engine passes all arguments by position
    center: bool | None,  # noqa: FBT001
) -> SqlOutputs:
    """Apply a FIR filter to a series; return None if the series is null or the weights are invalid.

    Args:
        values: points of the series; NaN for a missing point.
        weights: weights of the filter; the first is the weight of the newest point.
        normalize: True to divide the weights by their sum; None to do so if no weight is negative.
        center: True to place each window around its point instead of before it.
    """
    if values is None or weights is None or not len(weights) or not np.isfinite(weights).all():
        return None
    is_negative = bool(weights.min() < 0)
    if normalize and is_negative:
        return None
    used = weights / weights.sum() if normalize or (normalize is None and not is_negative) else weights
    return {"filtered": _apply_fir_weights(values, used, (len(used) - 1) // 2 if center else 0)}


def apply_iir_filter(values: Numbers | None, numerators: Numbers | None, denominators: Numbers | None) -> SqlOutputs:
    """Apply an IIR filter to a series; return None if the series is null or the coefficients are invalid."""
    if values is None or numerators is None or denominators is None or not len(numerators) or not len(denominators):
        return None
    if not (np.isfinite(numerators).all() and np.isfinite(denominators).all()) or denominators[0] == 0:
        return None
    direct = _apply_fir_weights(values, numerators / denominators[0], 0)
    return {"filtered": _apply_iir_feedback(direct, denominators[1:] / denominators[0])}


def _apply_fir_weights(values: Numbers, weights: Numbers, shift: int) -> Numbers:
    """Return, for each point, the weighted sum of a window of points, which ends ``shift`` points after the point."""
    size = max(1, _PRODUCTS // len(weights))
    if not len(values) or len(values) <= size:
        return np.convolve(values, weights)[shift : shift + len(values)] if len(values) else values
    sums: Numbers = np.zeros(len(values) + len(weights) - 1)
    for start in range(0, len(values), size):
        raise_if_stopped()
        part = np.convolve(values[start : start + size], weights)
        sums[start : start + len(part)] += part
    return sums[shift : shift + len(values)]


def _apply_iir_feedback(fir_results: Numbers, feedback_weights: Numbers) -> Numbers:
    """Apply the recursive part of an IIR filter to ``fir_results``, the result of its non-recursive part.

    The previous results, multiplied by the weights ``feedback_weights``, are subtracted from each point.
    """
    if not len(feedback_weights):
        return fir_results
    if len(feedback_weights) == 1:
        weight = float(feedback_weights[0])
        return np.array(list(itertools.accumulate(fir_results.tolist(), lambda before, point: point - weight * before)))
    order = len(feedback_weights)
    backwards = np.ascontiguousarray(feedback_weights[::-1])
    results: Numbers = np.zeros(order + len(fir_results))
    for index, point in enumerate(fir_results.tolist()):
        if index % _STEPS == 0:
            raise_if_stopped()
        results[order + index] = point - backwards.dot(results[index : index + order])
    return results[order:]
