"""Tests of functions that fit two lines or a polynomial to a series."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

BROKEN = "dynamic([1, 2.2, 2.5, 4.7, 5.0, 12, 10.3, 10.3, 9, 8.3, 6.2])"
LEFT = [0.98, 2.03, 3.08, 4.13, 5.18]
RIGHT = [11.942857142857, 10.905714285714, 9.868571428571, 8.831428571429, 7.794285714286, 6.757142857143]


def test_a_series_is_split_where_two_lines_fit_best(endpoint: Endpoint) -> None:
    """A series is split at the point where two fitted lines have the largest r-square."""
    names = "(rsquare, split, variance, rvariance, fit, rr, rs, ri, rv, rrv, lr, ls, li, lv, lrv)"
    query = f"print y = {BROKEN} | extend {names} = series_fit_2lines(y) | project-away y"
    (row,) = endpoint.query_rows(query)
    assert row[:4] == pytest.approx([0.98651319, 5, 13.894, 0.18738571])
    assert row[4] == pytest.approx([*LEFT, *RIGHT])
    assert row[5:] == pytest.approx(
        [0.94238513, -1.03714286, 11.94285714, 3.995, 0.23017143, 0.93845761, 1.05, 0.98, 2.937, 0.18075]
    )


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
def test_polynomial_coefficients_begin_with_the_highest_power(
    endpoint: Endpoint, arguments: str, expected: list[object]
) -> None:
    """The coefficients of a fitted polynomial begin with the highest power; with too few points, they are null."""
    names = "(rsquare, coefficients, variance, rvariance, fit)"
    (row,) = endpoint.query_rows(f"print y = 1 | extend {names} = series_fit_poly({arguments}) | project-away y")
    for found, wanted in zip(row, expected, strict=True):
        assert found == (wanted if wanted is None else pytest.approx(wanted, abs=1e-9))
