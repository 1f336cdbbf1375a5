"""Beta distribution: its density, its cumulative distribution function and the inverse."""

import math
from typing import Any

from emulators.kusto.series.significance import compute_incomplete_beta, compute_log_beta

_LARGEST = 10_000
_PRECISION = 1e-16
_MAX_STEPS = 200


def compute_beta_cdf(x: float | None, alpha: float | None, beta: float | None) -> Any:
    """Return the probability of a beta distribution below ``x``; NaN for arguments outside the documented ranges."""
    if x is None or alpha is None or beta is None:
        return None
    if not (0 <= x <= 1 and 0 < alpha <= _LARGEST and 0 < beta <= _LARGEST):
        return {"value": math.nan}
    return {"value": compute_incomplete_beta(x, alpha, beta)}


def compute_beta_pdf(x: float | None, alpha: float | None, beta: float | None) -> Any:
    """Return the density of a beta distribution at ``x``; NaN for arguments outside the documented ranges."""
    if x is None or alpha is None or beta is None:
        return None
    if not (0 < x < 1 and 0 < alpha < math.inf and 0 < beta < math.inf):
        return {"value": math.nan}
    return {"value": _compute_density(x, alpha, beta)}


def compute_beta_inv(probability: float | None, alpha: float | None, beta: float | None) -> Any:
    """Return a quantile of a beta distribution.

    Null for a null argument or an invalid probability, NaN for an invalid alpha or beta.
    """
    if probability is None or alpha is None or beta is None or not 0 < probability <= 1:
        return None
    if not (0 < alpha < math.inf and 0 < beta < math.inf):
        return {"value": math.nan}
    return {"value": 1.0 if probability == 1 else _compute_quantile(probability, alpha, beta)}


def _compute_density(x: float, alpha: float, beta: float) -> float:
    return math.exp((alpha - 1) * math.log(x) + (beta - 1) * math.log1p(-x) - compute_log_beta(alpha, beta))


def _compute_quantile(probability: float, alpha: float, beta: float) -> float:
    """Compute a quantile by Newton's method; if a step leaves the valid range, use bisection for this step."""
    low, high = 0.0, 1.0
    x = alpha / (alpha + beta)
    for _ in range(_MAX_STEPS):
        error = compute_incomplete_beta(x, alpha, beta) - probability
        low, high = (x, high) if error < 0 else (low, x)
        density = _compute_density(x, alpha, beta)
        following = x - error / density if density > 0 else (low + high) / 2
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= _PRECISION * x:
            return following
        x = following
    return x
