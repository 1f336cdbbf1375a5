"""Least-squares fits of a series: two lines, and polynomials."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from emulators.kusto.series import SqlOutputs

type Numbers = np.ndarray[Any, np.dtype[np.float64]]

_LEAST_POINTS = 4
"""Minimum number of points of a fit with two lines, two for each line."""
MAX_DEGREE = 64
"""Degree above which doubles do not distinguish the powers of any points, so that no polynomial fits."""


def fit_two_lines(values: Numbers | None) -> SqlOutputs:
    """Return the best fit of a series by two lines: the split with the smallest sum of squared residuals.

    None for a series with fewer than four points or with a missing point.
    """
    if values is None or len(values) < _LEAST_POINTS or not np.isfinite(values).all():
        return None
    left, right = _sum_squared_residuals_of_prefixes(values), _sum_squared_residuals_of_prefixes(values[::-1])[::-1]
    split = int(np.argmin(left[1:-2] + right[2:-1])) + 2
    parts = {"left": _fit_line(values[:split]), "right": _fit_line(values[split:])}
    fitted = np.concatenate([parts["left"].pop("line_fit"), parts["right"].pop("line_fit")])
    whole = _compute_fit_statistics(values, fitted)
    sides = {f"{side}_{name}": value for side, part in parts.items() for name, value in part.items()}
    return {**whole, "split_idx": split, "line_fit": fitted, **sides}


def fit_polynomial(values: Numbers | None, positions: Numbers | None, degree: int | None) -> SqlOutputs:
    """Return the polynomial that fits a series best; the coefficient of the highest power comes first.

    None if a point is missing, or if the points do not determine a polynomial of this degree.

    Args:
        values: points of the series.
        positions: independent variable of each point; None for 1, 2, 3 ...
        degree: degree of the polynomial; None for a line.
    """
    if values is None:
        return None
    places = np.arange(1.0, len(values) + 1) if positions is None else positions
    order = 1 if degree is None else degree
    if len(places) != len(values) or not 0 <= order < len(values) or order > MAX_DEGREE:
        return None
    if not (np.isfinite(values).all() and np.isfinite(places).all()):
        return None
    center, scale = float(places.max() + places.min()) / 2, float(places.max() - places.min()) / 2 or 1.0
    powers = np.vander((places - center) / scale, order + 1)
    solution, _, rank, _ = np.linalg.lstsq(powers, values)
    if rank <= order:
        return None
    fitted: Numbers = powers @ solution
    return {
        **_compute_fit_statistics(values, fitted),
        "coefficients": _expand_scaled_polynomial(solution, center, scale),
        "poly_fit": fitted,
    }


def _expand_scaled_polynomial(coefficients: Numbers, center: float, scale: float) -> Numbers:
    """Convert the coefficients of a polynomial in (x - center) / scale to those of the polynomial in x."""
    shifted = np.zeros(1)
    for coefficient in coefficients:
        product = np.convolve(shifted, [1 / scale, -center / scale])
        product[-1] += coefficient
        shifted = product
    return shifted[1:]


def _sum_squared_residuals_of_prefixes(values: Numbers) -> Numbers:
    """Return the sums of squared residuals for lines fitted to the first 1, 2, 3, ... points of a series."""
    centered = values - values.mean()
    count = np.arange(1.0, len(values) + 1)
    total, squares = np.cumsum(centered), np.cumsum(centered * centered)
    products = np.cumsum(centered * (count - 1)) - total * (count - 1) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(count > 1, products**2 / (count * (count * count - 1) / 12), 0.0)
    return np.maximum(squares - total * total / count - explained, 0.0)


def _fit_line(values: Numbers) -> dict[str, Any]:
    positions: Numbers = np.arange(len(values), dtype=np.float64) - (len(values) - 1) / 2
    average = float(values.mean())
    slope = float(positions @ values) / float(positions @ positions)
    fitted = average + slope * positions
    first = average - slope * (len(values) - 1) / 2
    return {**_compute_fit_statistics(values, fitted), "slope": slope, "interception": first, "line_fit": fitted}


def _compute_fit_statistics(values: Numbers, fitted: Numbers) -> Mapping[str, Any]:
    freedom = max(len(values) - 1, 1)
    variance = float(np.square(values - values.mean()).sum()) / freedom
    remaining = float(np.square(values - fitted).sum()) / freedom
    rsquare = 1 - remaining / variance if variance > 0 else None
    return {"rsquare": rsquare, "variance": variance, "rvariance": remaining}
