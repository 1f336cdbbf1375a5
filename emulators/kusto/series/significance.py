"""Error function, Welch's test and beta distribution: density, cumulative distribution function and inverse."""

import math

from emulators.kusto.series import SqlOutputs

_SMALLEST = 1e-300
_PRECISION = 3e-16
_MAX_STEPS = 10_000
_LARGEST_GAMMA = 170
"""Approximately the largest number whose gamma function is a double."""


def compute_erf(value: float | None) -> SqlOutputs:
    """Return the error function of a number."""
    return None if value is None else {"value": math.erf(value)}


def compute_erfc(value: float | None) -> SqlOutputs:
    """Return the complementary error function of a number."""
    return None if value is None else {"value": math.erfc(value)}


def compute_welch_test(
    mean1: float | None,
    variance1: float | None,
    count1: float | None,
    mean2: float | None,
    variance2: float | None,
    count2: float | None,
) -> SqlOutputs:
    """Return the two-sided p-value of Welch's test that two samples have the same mean; NaN if it is undefined."""
    given = (mean1, variance1, count1, mean2, variance2, count2)
    if any(each is None for each in given):
        return None
    m1, v1, n1, m2, v2, n2 = (float(each) for each in given if each is not None)
    if not (n1 > 1 and n2 > 1 and v1 >= 0 and v2 >= 0 and v1 + v2 > 0 and math.isfinite(m1 + m2 + v1 + v2 + n1 + n2)):
        return {"value": math.nan}
    error1, error2 = v1 / n1, v2 / n2
    squared = (m1 - m2) ** 2 / (error1 + error2)
    freedom = (error1 + error2) ** 2 / (error1**2 / (n1 - 1) + error2**2 / (n2 - 1))
    return {"value": compute_incomplete_beta(freedom / (freedom + squared), freedom / 2, 0.5)}


def compute_incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, the probability of a beta distribution below ``x``."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - compute_log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _compute_beta_continued_fraction(x, a, b) / a
    return 1 - front * _compute_beta_continued_fraction(1 - x, b, a) / b


def compute_log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function."""
    if a + b < _LARGEST_GAMMA and min(a, b) > 1 / _LARGEST_GAMMA:  # more precise than the difference of logarithms
        return math.log(math.gamma(a) * (math.gamma(b) / math.gamma(a + b)))
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _compute_beta_continued_fraction(x: float, a: float, b: float) -> float:
    """Compute the continued fraction of the incomplete beta function by the method of Lentz."""
    upper, lower = 1.0, 1 / _replace_almost_zero(1 - (a + b) * x / (a + 1))
    result = lower
    for step in range(1, _MAX_STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            lower = 1 / _replace_almost_zero(1 + term * lower)
            upper = _replace_almost_zero(1 + term / upper)
            result *= lower * upper
        if abs(lower * upper - 1) < _PRECISION:
            break
    return result


def _replace_almost_zero(value: float) -> float:
    """Return the number, or a tiny positive number instead of a number near zero, so that divisions by it succeed."""
    return value if abs(value) > _SMALLEST else _SMALLEST


_LARGEST = 10_000
_QUANTILE_PRECISION = 1e-16
_MAX_QUANTILE_STEPS = 200


def compute_beta_cdf(x: float | None, alpha: float | None, beta: float | None) -> SqlOutputs:
    """Return the probability of a beta distribution below ``x``; NaN for arguments outside the documented ranges."""
    if x is None or alpha is None or beta is None:
        return None
    if not (0 <= x <= 1 and 0 < alpha <= _LARGEST and 0 < beta <= _LARGEST):
        return {"value": math.nan}
    return {"value": compute_incomplete_beta(x, alpha, beta)}


def compute_beta_pdf(x: float | None, alpha: float | None, beta: float | None) -> SqlOutputs:
    """Return the density of a beta distribution at ``x``; NaN for arguments outside the documented ranges."""
    if x is None or alpha is None or beta is None:
        return None
    if not (0 < x < 1 and 0 < alpha < math.inf and 0 < beta < math.inf):
        return {"value": math.nan}
    return {"value": _compute_beta_density(x, alpha, beta)}


def compute_beta_inv(probability: float | None, alpha: float | None, beta: float | None) -> SqlOutputs:
    """Return the quantile of a beta distribution: the value below which a number lies with ``probability``.

    Return null for a null argument or an invalid probability, and NaN for an invalid alpha or beta.
    """
    if probability is None or alpha is None or beta is None or not 0 < probability <= 1:
        return None
    if not (0 < alpha < math.inf and 0 < beta < math.inf):
        return {"value": math.nan}
    return {"value": 1.0 if probability == 1 else _compute_beta_quantile(probability, alpha, beta)}


def _compute_beta_density(x: float, alpha: float, beta: float) -> float:
    return math.exp((alpha - 1) * math.log(x) + (beta - 1) * math.log1p(-x) - compute_log_beta(alpha, beta))


def _compute_beta_quantile(probability: float, alpha: float, beta: float) -> float:
    """Compute a quantile by Newton's method; if a step leaves the valid range, use bisection for this step."""
    low, high = 0.0, 1.0
    x = alpha / (alpha + beta)
    for _ in range(_MAX_QUANTILE_STEPS):
        error = compute_incomplete_beta(x, alpha, beta) - probability
        low, high = (x, high) if error < 0 else (low, x)
        density = _compute_beta_density(x, alpha, beta)
        following = x - error / density if density > 0 else (low + high) / 2
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - x) <= _QUANTILE_PRECISION * x:
            return following
        x = following
    return x
