"""Tests of two lines, polynomials and the Fourier transform of series."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

BROKEN = "dynamic([1, 2.2, 2.5, 4.7, 5.0, 12, 10.3, 10.3, 9, 8.3, 6.2])"
LEFT = [0.98, 2.03, 3.08, 4.13, 5.18]
RIGHT = [11.942857142857, 10.905714285714, 9.868571428571, 8.831428571429, 7.794285714286, 6.757142857143]


def test_a_series_is_split_where_two_lines_fit_best(endpoint: Endpoint) -> None:
    """The split makes r-square of both lines together largest; each line starts at the beginning of its part."""
    names = "(rsquare, split, variance, rvariance, fit, rr, rs, ri, rv, rrv, lr, ls, li, lv, lrv)"
    query = f"print y = {BROKEN} | extend {names} = series_fit_2lines(y) | project-away y"
    (row,) = endpoint.rows(query)
    assert row[:4] == pytest.approx([0.98651319, 5, 13.894, 0.18738571])
    assert row[4] == pytest.approx([*LEFT, *RIGHT])
    assert row[5:] == pytest.approx(
        [0.94238513, -1.03714286, 11.94285714, 3.995, 0.23017143, 0.93845761, 1.05, 0.98, 2.937, 0.18075]
    )


def test_two_lines_as_an_object(endpoint: Endpoint) -> None:
    """``series_fit_2lines_dynamic`` returns an object with an object for each side."""
    query = f"print f = series_fit_2lines_dynamic({BROKEN}) | project f.split_idx, f.left.slope, f.right.rsquare"
    assert endpoint.rows(query) == [[5, pytest.approx(1.05), pytest.approx(0.94238513)]]
    assert endpoint.rows(f"print series_fit_2lines_dynamic({BROKEN}).line_fit") == [[pytest.approx([*LEFT, *RIGHT])]]
    for series in ("dynamic([1,2,3])", "dynamic([1,2,null,4])", "dynamic([])", "dynamic(1)"):
        assert endpoint.rows(f"print series_fit_2lines_dynamic({series})") == [[None]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("dynamic([1,4,9,16]), dynamic([1,2,3,4]), 2", [1.0, [1.0, 0.0, 0.0], 43.0, 0.0, [1.0, 4.0, 9.0, 16.0]]),
        ("dynamic([3,5,7])", [1.0, [2.0, 1.0], 4.0, 0.0, [3.0, 5.0, 7.0]]),
        ("dynamic([3,5,9]), dynamic([10,20,40])", [1.0, [0.2, 1.0], 28 / 3, 0.0, [3.0, 5.0, 9.0]]),
        ("dynamic([1,2]), dynamic([1,2]), 2", [None] * 5),
        ("dynamic([1,2,3]), dynamic([7,7,7])", [None] * 5),
        ("dynamic([1,null,3])", [None] * 5),
        ("dynamic([1,2,3]), dynamic([1,2])", [None] * 5),
    ],
)
def test_polynomials(endpoint: Endpoint, arguments: str, expected: list[object]) -> None:
    """The coefficients start with the highest power; a polynomial that the points do not determine is null."""
    names = "(rsquare, coefficients, variance, rvariance, fit)"
    (row,) = endpoint.rows(f"print y = 1 | extend {names} = series_fit_poly({arguments}) | project-away y")
    for found, wanted in zip(row, expected, strict=True):
        assert found == (wanted if wanted is None else pytest.approx(wanted, abs=1e-9))


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


def test_the_inverse_transform_restores_the_series(endpoint: Endpoint) -> None:
    """A sine wave has two frequencies, and the inverse of its transform is the wave."""
    query = (
        "range x from 0 to 7 step 1 | summarize y = make_list(sin(2 * pi() / 8 * x))"
        " | extend (re, im) = series_fft(y) | extend (back, none) = series_ifft(re, im) | project y, re, im, back, none"
    )
    ((series, real, imaginary, back, none),) = endpoint.rows(query)
    assert real == pytest.approx([0.0] * 8, abs=1e-9)
    assert imaginary == pytest.approx([0, -4, 0, 0, 0, 0, 0, 4], abs=1e-9)
    assert (back, none) == (pytest.approx(series, abs=1e-9), pytest.approx([0.0] * 8, abs=1e-9))


@pytest.mark.parametrize(
    "arguments", ["dynamic([1,null])", "dynamic([1,2]), dynamic([1])", "dynamic(['NaN'])", "dynamic(1)"]
)
def test_transforms_of_incomplete_series_are_null(endpoint: Endpoint, arguments: str) -> None:
    """A series with a missing point, or whose parts differ in length, has no transform."""
    assert endpoint.rows(f"print y = 1 | extend (re, im) = series_fft({arguments}) | project re, im") == [[None, None]]


def test_an_empty_series_has_an_empty_transform(endpoint: Endpoint) -> None:
    """The transform of an empty series is empty."""
    assert endpoint.rows("print y = 1 | extend (re, im) = series_fft(dynamic([])) | project re, im") == [[[], []]]


def test_long_series(endpoint: Endpoint) -> None:
    """Series of 100,000 points are analysed."""
    query = (
        "range x from 1 to 100000 step 1 | summarize y = make_list(x % 50)"
        " | extend (flag, score, baseline) = series_decompose_anomalies(y), (re, im) = series_fft(y),"
        " (r, split) = series_fit_2lines(y), (rp, coefficients) = series_fit_poly(y, dynamic(null), 3)"
        " | project array_length(flag), array_length(re), isnotnull(split), array_length(coefficients)"
    )
    assert endpoint.rows(query) == [[100_000, 100_000, True, 4]]
