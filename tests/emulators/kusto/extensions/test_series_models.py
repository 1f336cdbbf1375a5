"""Tests of fitted models as objects and columns, and of long series."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint
from tests.emulators.kusto.series.test_regression import BROKEN, LEFT, RIGHT


def test_two_lines_as_an_object(endpoint: Endpoint) -> None:
    """``series_fit_2lines_dynamic`` returns an object that contains one object for each line."""
    query = f"print f = series_fit_2lines_dynamic({BROKEN}) | project f.split_idx, f.left.slope, f.right.rsquare"
    assert endpoint.rows(query) == [[5, pytest.approx(1.05), pytest.approx(0.94238513)]]
    assert endpoint.rows(f"print series_fit_2lines_dynamic({BROKEN}).line_fit") == [[pytest.approx([*LEFT, *RIGHT])]]
    for series in ("dynamic([1,2,3])", "dynamic([1,2,null,4])", "dynamic([])", "dynamic(1)"):
        assert endpoint.rows(f"print series_fit_2lines_dynamic({series})") == [[None]]


def test_columns_of_a_polynomial(endpoint: Endpoint) -> None:
    """``extend`` without names adds all results under the documented names."""
    table = endpoint.table("print y = dynamic([1,2]) | extend series_fit_poly(y)")
    assert [each.column_name.removeprefix("series_fit_poly_y_") for each in table.columns] == [
        "y",
        "rsquare",
        "coefficients",
        "variance",
        "rvariance",
        "poly_fit",
    ]
    assert [each.column_type for each in table.columns][1:] == ["real", "dynamic", "real", "real", "dynamic"]


def test_long_series(endpoint: Endpoint) -> None:
    """Series of 100,000 points are analysed."""
    query = (
        "range x from 1 to 100000 step 1 | summarize y = make_list(x % 50)"
        " | extend (flag, score, baseline) = series_decompose_anomalies(y), (re, im) = series_fft(y),"
        " (r, split) = series_fit_2lines(y), (rp, coefficients) = series_fit_poly(y, dynamic(null), 3)"
        " | project array_length(flag), array_length(re), isnotnull(split), array_length(coefficients)"
    )
    assert endpoint.rows(query) == [[100_000, 100_000, True, 4]]
