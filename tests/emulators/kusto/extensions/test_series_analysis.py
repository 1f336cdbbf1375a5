"""Tests of the functions that analyse series: decomposition, outliers, forecasts, fitted models, and statistics."""

import math
from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint
from tests.emulators.kusto.series.test_regression import BROKEN, LEFT, RIGHT

SIX = "dynamic([2,5,3,4,3,2,1,2,3,4,3,2,1,2,3,4,3,2,1,2,3,4,3,2,1])"
FIVE = "dynamic([8,12,14,12,10,10,12,14,12,10,10,12,14,12,10,10,12,14,12,10])"
SHORT = "dynamic([1,3,5,2,4,6,1,3,5,2,4,6])"
SCORED = "dynamic([-3, 2.4, 15, 3.9, 5, 6, 4.5, 5.2, 3, 4, 5, 16, 7, 5, 5, 4])"
SCORES = [-1.9040785483608571, -0.10021466044004519, 1.3361954725339347, *[0.0] * 8, 1.6702443406674186, *[0.0] * 4]
WEEKS = """range t from 1 to 24*7*{weeks} step 1
| extend y = (t * 7919 % 101) / 50.5 + iff((t/24)%7>=5, 5.0, 15.0) - (((t%24)/10)*((t%24)/10)) + t/72.0
| extend y = iff(t in (150, 200, 780), y - 8.0, iff(t in (300, 400, 600), y + 8.0, y))
| summarize y = make_list(y, 10000)"""


def evaluate_expression(endpoint: Endpoint, expression: str) -> Any:
    """Evaluate an expression and return its value."""
    return endpoint.query_rows(f"print x = {expression}")[0][0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"series_seasonal({SIX})", [1.0, 2.0, 3.0, 4.0, 3.0, 2.0] * 4 + [1.0]),
        (f"series_seasonal({FIVE})", [10.0, 12.0, 14.0, 12.0, 10.0] * 4),
        (f"series_seasonal({SHORT})", [0.0] * 12),
        (f"series_seasonal({SHORT}, 3)", [1.5, 3.5, 5.5] * 4),
        ("series_seasonal(dynamic([1,3,5,1,3,5,2,4,6]), 3)", [1.0, 3.0, 5.0] * 3),
        ("series_seasonal(dynamic([1,null,3,1,8,3]), 3)", [1.0, 8.0, 3.0] * 2),
        ("series_seasonal(dynamic([]))", []),
        ("series_seasonal(dynamic('text'))", None),
        (f"series_outliers({SCORED})", SCORES),
        (f"series_outliers({SCORED}, 'ctukey', double(null), 10, 90)", SCORES),
        ("series_outliers(dynamic([1,2,3,4,13]), 'tukey')", [-0.5, 0.0, 0.0, 0.0, 4.5]),
        ("series_outliers(dynamic([1,2,3,4,13,99,null]), 'tukey', 99)", [-0.5, 0.0, 0.0, 0.0, 4.5, 0.0, 0.0]),
        ("series_outliers(dynamic([5,5,5,5,5,5,5,5,5,5,5,9]))", [0.0] * 11 + ["Infinity"]),
        ("series_outliers(dynamic([]))", []),
        (
            "series_outliers(dynamic([1,2,3,4,99,99]), 'tukey', 0, 10, 90, 2)",
            [-0.5, 0.0, 0.0, 0.5, 63.833333333333336, 63.833333333333336],
        ),
        ("series_seasonal(dynamic([1,2,1,2,9,9]), 2, 2)", [1.0, 2.0] * 3),
        ("series_outliers(dynamic([null]))", [0.0]),
        ("series_decompose_forecast(dynamic([1,2,1,2,1,2,0,0]), 2, 2)", [1.0, 2.0] * 4),
        ("series_decompose_forecast(dynamic([1,2,3,4,0,0]), 2, 0, 'linefit')", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ],
)
def test_series_functions_return_the_documented_values(endpoint: Endpoint, expression: str, expected: Any) -> None:
    """Seasons, anomaly scores and forecasts of series equal the documented values."""
    found = evaluate_expression(endpoint, expression)
    comparable = [each for each in found or [] if not isinstance(each, str)]
    assert comparable == pytest.approx([each for each in expected or [] if not isinstance(each, str)], abs=1e-12)
    assert (found is None) == (expected is None)
    assert [each for each in found or [] if isinstance(each, str)] == [e for e in expected or [] if isinstance(e, str)]


def test_with_a_weekly_season_exactly_the_inserted_outliers_are_found(endpoint: Endpoint) -> None:
    """With the season of a week and a linear trend, exactly the inserted outliers are found."""
    query = WEEKS.format(weeks=5) + (
        " | extend (flag, score, baseline) = series_decompose_anomalies(y, 2.5, -1, 'linefit')"
        " | mv-expand with_itemindex=i flag to typeof(long), score to typeof(real)"
        " | where flag != 0 | project t = i + 1, flag, sign(score)"
    )
    up, down = (300, 400, 600), (150, 200, 780)
    assert sorted(endpoint.query_rows(query)) == sorted([[t, 1, 1] for t in up] + [[t, -1, -1] for t in down])


def test_a_forecast_continues_season_and_trend(endpoint: Endpoint) -> None:
    """A forecast repeats the weekly season with the trend; empty points do not influence it."""
    query = WEEKS.format(weeks=4) + (
        " | extend y = array_concat(y, repeat(0.0, 168))"
        " | extend f = series_decompose_forecast(y, 168, -1, 'linefit')"
        " | project todouble(f[700]) - todouble(f[700 - 168]), array_length(f)"
    )
    assert endpoint.query_rows(query) == [[pytest.approx(168 / 72, rel=0.2), 840]]


def test_a_decomposition_adds_the_documented_columns(endpoint: Endpoint) -> None:
    """A decomposition of a series, which has several results, adds the documented columns."""
    table = endpoint.query_table("print y = dynamic([1,null,1,2]) | extend series_decompose_anomalies(y, 1.5, 2)")
    prefix = "series_decompose_anomalies_y_"
    assert [each.column_name for each in table.columns][1:] == [
        f"{prefix}ad_flag",
        f"{prefix}ad_score",
        f"{prefix}baseline",
    ]
    assert table.raw_rows[0][1:] == [[0, 0, 0, 0], [0.0] * 4, [1.0, 2.0, 1.0, 2.0]]
    query = "print y = dynamic([1,null,1,2]) | project series_decompose(y, 2)"
    assert endpoint.query_rows(query) == [
        [[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0], [0.0] * 4, [0.0, None, 0.0, 0.0]]
    ]


def test_the_decomposition_of_a_series_without_numbers_is_null(endpoint: Endpoint) -> None:
    """The components of a series without numbers are null, and so are those of a value that is no array."""
    for series in ("dynamic([null])", "dynamic([])", "dynamic({})", "dynamic(null)"):
        assert endpoint.query_rows(f"print x = {series} | project series_decompose(x)") == [[None] * 4]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("series_decompose(y, 2, 'line')", "Trend must be 'avg' or 'linefit' or 'none'"),
        ("series_decompose(y, '2')", "does not accept arguments of the types (unknown, string)"),
        ("series_decompose_anomalies(y, 1.5, -1, 'avg', 0, 'mad')", "AD_method must be 'ctukey' or 'tukey'"),
        ("series_outliers(y, 'ctukey', 0, 1, 90)", "min_percentile must be between 2.0 and 98.0"),
        ("series_outliers(y, method)", "kind must be 'ctukey' or 'tukey'"),
        ("series_periods_detect(y)", "series_periods_detect() with 1 arguments"),
        (f"series_periods_validate(y{', 4' * 17})", "series_periods_validate() with 18 arguments"),
    ],
)
def test_invalid_arguments_of_series_functions_are_rejected(endpoint: Endpoint, expression: str, message: str) -> None:
    """The error about an argument of a series function contains function, argument and accepted values."""
    assert message in str(endpoint.query_error(f"print y = dynamic([1,2]), method = 'x' | extend {expression}"))


def test_series_fit_2lines_dynamic_returns_an_object(endpoint: Endpoint) -> None:
    """``series_fit_2lines_dynamic`` returns an object with an object for each line."""
    query = f"print f = series_fit_2lines_dynamic({BROKEN}) | project f.split_idx, f.left.slope, f.right.rsquare"
    assert endpoint.query_rows(query) == [[5, pytest.approx(1.05), pytest.approx(0.94238513)]]
    assert endpoint.query_rows(f"print series_fit_2lines_dynamic({BROKEN}).line_fit") == [
        [pytest.approx([*LEFT, *RIGHT])]
    ]
    for series in ("dynamic([1,2,3])", "dynamic([1,2,null,4])", "dynamic([])", "dynamic(1)"):
        assert endpoint.query_rows(f"print series_fit_2lines_dynamic({series})") == [[None]]


def test_a_fitted_polynomial_adds_the_documented_columns(endpoint: Endpoint) -> None:
    """With ``extend`` without names, a fitted polynomial adds all results under the documented names."""
    table = endpoint.query_table("print y = dynamic([1,2]) | extend series_fit_poly(y)")
    assert [each.column_name.removeprefix("series_fit_poly_y_") for each in table.columns] == [
        "y",
        "rsquare",
        "coefficients",
        "variance",
        "rvariance",
        "poly_fit",
    ]
    assert [each.column_type for each in table.columns][1:] == ["real", "dynamic", "real", "real", "dynamic"]


def test_a_series_can_have_100000_points(endpoint: Endpoint) -> None:
    """Series of 100,000 points are analysed."""
    query = (
        "range x from 1 to 100000 step 1 | summarize y = make_list(x % 50)"
        " | extend (flag, score, baseline) = series_decompose_anomalies(y), (re, im) = series_fft(y),"
        " (r, split) = series_fit_2lines(y), (rp, coefficients) = series_fit_poly(y, dynamic(null), 3)"
        " | project array_length(flag), array_length(re), isnotnull(split), array_length(coefficients)"
    )
    assert endpoint.query_rows(query) == [[100_000, 100_000, True, 4]]


FIRST = "dynamic([27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4])"
SECOND = "dynamic([27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4])"


def test_the_error_function_has_the_documented_values(endpoint: Endpoint) -> None:
    """The functions ``erf`` and ``erfc`` return the documented values."""
    expected = [-0.999977909503001, -0.995322265018953, -0.842700792949715, 0, 0.842700792949715]
    rows = endpoint.query_rows("range x from -3 to 1 step 1 | project erf(x), erfc(x)")
    assert rows == [pytest.approx([each, 1 - each], abs=1e-15) for each in expected]
    assert endpoint.query_rows("print erf(real(null)), erf(real(+inf)), erfc(real(nan))") == [[None, 1.0, "NaN"]]


def test_welchs_test_has_the_documented_p_value(endpoint: Endpoint) -> None:
    """Welch's test returns the documented p-value 0.021 for the documented samples."""
    query = (
        f"print s1 = {FIRST}, s2 = {SECOND} | mv-expand s1 to typeof(double), s2 to typeof(double)"
        " | summarize m1=avg(s1), v1=variance(s1), c1=count(), m2=avg(s2), v2=variance(s2), c2=count()"
        " | project welch_test(m1, v1, c1, m2, v2, c2)"
    )
    assert endpoint.query_rows(query) == [[pytest.approx(0.0213780015)]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("5, 1, 10, 5, 2, 20", 1.0),
        ("1, 1, 2, 2, 1, 2", 1 - 1 / math.sqrt(3)),
        ("0, 1, 100, 50, 1, 100", 0.0),
        ("0, 1, 1, 5, 1, 10", "NaN"),
        ("0, 0, 10, 5, 0, 10", "NaN"),
        ("real(null), 1, 10, 5, 1, 10", None),
    ],
)
def test_samples_with_equal_means_have_the_p_value_1(endpoint: Endpoint, arguments: str, expected: object) -> None:
    """For equal means the p-value is 1; samples with one value or without variance have no p-value."""
    ((found,),) = endpoint.query_rows(f"print welch_test({arguments})")
    assert found == (pytest.approx(expected, abs=1e-12) if isinstance(expected, float) else expected)
