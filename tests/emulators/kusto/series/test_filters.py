"""Tests of the filters of series."""

import numpy as np
import pytest

from emulators.kusto.series import filters
from emulators.kusto.series.filters import apply_fir_filter, apply_iir_filter
from tests.emulators.kusto.series.outputs import require_outputs

POINTS = np.array([1.0, 2.0, 4.0, 8.0])


def _build_array(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def test_weights_without_negatives_are_divided_by_their_sum() -> None:
    """If a query does not state ``normalize``, the weights are normalised unless one weight is negative."""
    averaged = require_outputs(apply_fir_filter(POINTS, _build_array(1, 1), None, center=False))["filtered"]
    assert averaged.tolist() == [0.5, 1.5, 3.0, 6.0]
    difference = require_outputs(apply_fir_filter(POINTS, _build_array(1, -1), None, center=False))["filtered"]
    assert difference.tolist() == [1.0, 1.0, 2.0, 4.0]


def test_filter_results_without_normalisation_are_weighted_sums() -> None:
    """Without normalisation, each result is the sum of the weighted points."""
    assert require_outputs(apply_fir_filter(POINTS, _build_array(1, 1), normalize=False, center=False))[
        "filtered"
    ].tolist() == [
        1,
        3,
        6,
        12,
    ]


def test_a_centred_filter_window_contains_later_points() -> None:
    """With ``center``, a window of three weights covers a point and both neighbours."""
    assert require_outputs(apply_fir_filter(POINTS, _build_array(1, 1, 1), normalize=False, center=True))[
        "filtered"
    ].tolist() == [
        3,
        7,
        14,
        12,
    ]


@pytest.mark.parametrize("weights", [None, _build_array(), _build_array(1, np.nan), _build_array(1, np.inf)])
def test_unusable_filter_weights_give_null(weights: np.ndarray | None) -> None:
    """Missing, empty or infinite weights give null instead of an error."""
    assert apply_fir_filter(POINTS, weights, None, center=False) is None


def test_negative_weights_cannot_be_normalised() -> None:
    """If a query requests the normalisation of negative weights, the result is null."""
    assert apply_fir_filter(POINTS, _build_array(1, -1), normalize=True, center=False) is None


def test_a_long_series_is_filtered_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long series is filtered in parts; the result equals that of filtering it in one step."""
    values, weights = np.arange(23.0), _build_array(1, 2, 3)
    whole = require_outputs(apply_fir_filter(values, weights, normalize=False, center=True))["filtered"]
    monkeypatch.setattr(filters, "_PRODUCTS", 15)
    assert (
        require_outputs(apply_fir_filter(values, weights, normalize=False, center=True))["filtered"].tolist()
        == whole.tolist()
    )


def test_a_recursive_filter_uses_previous_results() -> None:
    """A recursive filter with the denominators 1 and -1 returns the cumulative sums of a series."""
    assert require_outputs(apply_iir_filter(POINTS, _build_array(1), _build_array(1, -1)))["filtered"].tolist() == [
        1,
        3,
        7,
        15,
    ]


def test_filter_coefficients_are_divided_by_the_first_denominator() -> None:
    """All coefficients of a recursive filter are divided by its first denominator."""
    assert require_outputs(apply_iir_filter(POINTS, _build_array(2), _build_array(2, -2)))["filtered"].tolist() == [
        1,
        3,
        7,
        15,
    ]


def test_a_filter_of_second_order_uses_two_previous_results() -> None:
    """The denominators 1, -1 and -1 return the Fibonacci numbers for an impulse."""
    impulse = _build_array(1, 0, 0, 0, 0, 0)
    assert require_outputs(apply_iir_filter(impulse, _build_array(1), _build_array(1, -1, -1)))[
        "filtered"
    ].tolist() == [
        1,
        1,
        2,
        3,
        5,
        8,
    ]


@pytest.mark.parametrize(
    ("numerators", "denominators"),
    [
        (None, _build_array(1)),
        (_build_array(), _build_array(1)),
        (_build_array(1), _build_array()),
        (_build_array(1), _build_array(0, 1)),
        (_build_array(1), None),
    ],
)
def test_unusable_filter_coefficients_give_null(numerators: np.ndarray | None, denominators: np.ndarray | None) -> None:
    """Missing coefficients, or a first denominator of zero, give null."""
    assert apply_iir_filter(POINTS, numerators, denominators) is None
