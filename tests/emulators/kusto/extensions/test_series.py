"""Tests of series functions, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

GAPS = "dynamic([null, 111, null, 36, 41, null, null, 16, 61, 33, null, null])"
REAL_GAPS = "dynamic([null, 111.0, null, 36.0, 41.0, null, null, 16.0, 61.0, 33.0, null, null])"
NUMBERS = "dynamic([23, 46, 23, 87, 4, 8, 3, 75, 2, 56, 13, 75, 32, 16, 29])"
LINE = "dynamic([2, 5, 6, 8, 11, 15, 17, 18, 25, 26, 30, 30])"
FITTED = [1.064, 3.795, 6.526, 9.256, 11.987, 14.718, 17.449, 20.18, 22.91, 25.641, 28.372, 31.103]


def evaluate_expression(endpoint: Endpoint, expression: str) -> Any:
    """Evaluate an expression and return its value."""
    return endpoint.query_rows(f"print x = {expression}")[0][0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("series_add(dynamic([1,2,4]), dynamic([4,2,1]))", [5, 4, 5]),
        ("series_subtract(dynamic([1,2,4]), dynamic([4,2,1]))", [-3, 0, 3]),
        ("series_multiply(dynamic([1,2,4]), dynamic([4,2,1]))", [4, 4, 4]),
        ("series_divide(dynamic([1,2,4]), dynamic([4,2,1]))", [0.25, 1.0, 4.0]),
        ("series_pow(dynamic([1,2,3,4]), dynamic([1,2,3,0.5]))", [1.0, 4.0, 27.0, 2.0]),
        ("series_multiply(10, dynamic([1,-1,0]))", [10, -10, 0]),
        ("series_add(dynamic([1,2,3]), dynamic([1,'x']))", [2.0, None, None]),
        ("series_equals(dynamic([1,2,4]), dynamic([4,2,1]))", [False, True, False]),
        ("series_greater_equals(dynamic([1,2,null]), 2)", [False, True, None]),
        ("series_less(dynamic([1,2,4]), dynamic([4,2,1]))", [True, False, False]),
        ("series_abs(dynamic([-6.5,0,8]))", [6.5, 0.0, 8.0]),
        ("series_sign(dynamic([-6,0,8]))", [-1, 0, 1]),
        ("series_floor(dynamic([-1.5,1,2.5]))", [-2.0, 1.0, 2.0]),
        ("series_divide(dynamic([1,-1,0]), 0)", ["Infinity", "-Infinity", "NaN"]),
        ("series_dot_product(dynamic([1,2,4]), dynamic([4,2,1]))", 12.0),
        ("series_dot_product(dynamic([1,2,4]), 1)", 7.0),
        ("series_pearson_correlation(dynamic([1,2,3,4,5]), dynamic([2,4,6,8,10]))", 1.0),
        ("round(series_magnitude(dynamic([1,2,3,4])), 9)", 5.477225575),
        ("series_sum(dynamic([1,2,3]))", 6.0),
        ("round(series_cosine_similarity(dynamic([0.1,0.2,0.1,0.2]), dynamic([1,2,3,4])), 9)", 0.923760431),
        ("round(series_cosine_similarity(dynamic([1,2,3]), dynamic([1,2])), 9)", 1.0),
        ("round(series_cosine_similarity(dynamic([1,'a',2]), dynamic([1,2,2])), 9)", 1.0),
        ("series_cosine_similarity(dynamic([]), dynamic([1,2]))", None),
        ("series_cosine_similarity(dynamic([3,4]), dynamic([3,4]), 5, 5)", 1.0),
        ("series_cosine_similarity(dynamic([3,4]), dynamic([3,4]), 10)", 0.5),
        ("series_add(parse_json('{}'), 1)", None),
    ],
)
def test_series_arithmetic_applies_to_each_element(endpoint: Endpoint, expression: str, expected: Any) -> None:
    """Arithmetic applies to each element and keeps integers; an element that is no number gives null."""
    assert evaluate_expression(endpoint, expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"series_fill_forward({GAPS})", [None, 111, 111, 36, 41, 41, 41, 16, 61, 33, 33, 33]),
        (f"series_fill_backward({GAPS})", [111, 111, 36, 36, 41, 16, 16, 16, 61, 33, None, None]),
        (f"series_fill_const({GAPS}, -1)", [-1, 111, -1, 36, 41, -1, -1, 16, 61, 33, -1, -1]),
        ("series_fill_const(dynamic([0, 5, null]), 7, 0)", [7, 5, None]),
        ("series_fill_const(dynamic([0, 5, null]))", [0, 5, 0]),
        (f"series_fill_linear({GAPS})", [111, 111, 73, 36, 41, 32, 24, 16, 61, 33, 33, 33]),
        (
            f"series_fill_linear({REAL_GAPS}, double(null), false)",
            [None, 111.0, 73.5, 36.0, 41.0, 41 - 25 / 3, 41 - 50 / 3, 16.0, 61.0, 33.0, None, None],
        ),
        ("series_fill_linear(dynamic([null, null]), double(null), true, 3.14159)", [3.14159, 3.14159]),
        ("series_fill_linear(dynamic([null, null]))", [0.0, 0.0]),
    ],
)
def test_gaps_in_a_series_are_filled_from_neighbours(endpoint: Endpoint, expression: str, expected: list[Any]) -> None:
    """Gaps in a series are filled from their neighbours, and the elements keep their type."""
    assert evaluate_expression(endpoint, expression) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("series_fir(dynamic([2,4,6,8]), dynamic([1,1,1]), true, true)", [2.0, 4.0, 6.0, 14 / 3]),
        ("series_fir(dynamic([2,4,6,8]), dynamic([1,1]))", [1.0, 3.0, 5.0, 7.0]),
        ("series_fir(dynamic([2,4,6,8]), dynamic([1,-1]))", [2.0, 2.0, 2.0, 2.0]),
        ("series_fir(dynamic([2,4,6,8]), dynamic([1,1]), false)", [2.0, 6.0, 10.0, 14.0]),
        ("series_iir(dynamic([1.0,2,3,4]), dynamic([1]), dynamic([1,-1]))", [1.0, 3.0, 6.0, 10.0]),
        ("series_iir(dynamic([1,1,1,1,1]), dynamic([1]), dynamic([1,-1.0,0.5]))", [1.0, 2.0, 2.5, 2.5, 2.25]),
        ("series_iir(dynamic([2,4]), dynamic([1]), dynamic([2]))", [1.0, 2.0]),
    ],
)
def test_series_filters_follow_the_documented_formulas(
    endpoint: Endpoint, expression: str, expected: list[float]
) -> None:
    """Filters follow the documented formulas; weights are normalised by default if none is negative."""
    assert evaluate_expression(endpoint, expression) == pytest.approx(expected)


def test_normalising_weights_of_which_one_is_negative_gives_null(endpoint: Endpoint) -> None:
    """Normalising the weights of a filter gives null if one weight is negative."""
    assert evaluate_expression(endpoint, "series_fir(dynamic([1,2]), dynamic([1,-1]), true, false)") is None


def test_series_stats_returns_the_documented_columns(endpoint: Endpoint) -> None:
    """``series_stats`` without names returns the seven documented columns."""
    table = endpoint.query_table(f"print x = {NUMBERS} | project series_stats(x)")
    names = ("min", "min_idx", "max", "max_idx", "avg", "stdev", "variance")
    assert [each.column_name for each in table.columns] == [f"series_stats_x_{name}" for name in names]
    assert [each.column_type for each in table.columns] == ["real", "long", "real", "long", "real", "real", "real"]
    assert table.raw_rows == [pytest.approx([2.0, 8, 87.0, 3, 32.8, 28.5036338535483, 812.457142857143])]


def test_statistics_of_a_series_with_missing_elements_are_null(endpoint: Endpoint) -> None:
    """If an element is missing, the statistics are null, unless the call ignores missing elements."""
    query = "print s = series_stats_dynamic({}, {}) | project tostring(s.avg), tolong(s.len)"
    assert endpoint.query_rows(query.format("dynamic([1,null,3])", "false")) == [["", 3]]
    assert endpoint.query_rows(query.format("dynamic([1,null,3])", "true")) == [["2.0", 3]]


def test_extend_adds_the_named_columns_and_project_all_columns_of_a_regression(endpoint: Endpoint) -> None:
    """``extend`` adds the named columns of a regression, ``project`` adds all columns."""
    (row,) = endpoint.query_rows(
        f"print y = {LINE} | extend (r, slope, v, rv, b, fit) = series_fit_line(y) | project-away y"
    )
    assert row[:4] == pytest.approx([0.982900730884447, 2.7307692307, 98.628787878, 1.6864801864])
    assert row[5] == pytest.approx(FITTED, abs=6e-4)
    named = endpoint.query_table(f"print y = {LINE} | project (r, slope) = series_fit_line(y)")
    assert [each.column_name for each in named.columns] == [
        "r",
        "slope",
        *(f"series_fit_line_y_{name}" for name in ("variance", "rvariance", "interception", "line_fit")),
    ]
    assert len(endpoint.query_table(f"print y = {LINE} | extend (r, slope) = series_fit_line(y)").columns) == 7


def test_a_decomposition_has_season_trend_and_residual(endpoint: Endpoint) -> None:
    """A decomposition of a series consists of the medians of the phases, the trend and the residual."""
    query = "print x = dynamic([1,3,2,4,3,5]) | extend (b,s,t,r) = series_decompose(x, 2, 'avg') | project-away x"
    assert endpoint.query_rows(query) == [[[2.0, 4.0] * 3, [2.0, 4.0] * 3, [0.0] * 6, [-1.0, -1.0, 0.0, 0.0, 1.0, 1.0]]]
    flat = "print x = dynamic([1,2,3]) | extend (b,s,t,r) = series_decompose(x, 0, 'linefit') | project b, s, r"
    assert endpoint.query_rows(flat) == [
        [pytest.approx([1.0, 2.0, 3.0]), [0.0] * 3, pytest.approx([0.0] * 3, abs=1e-12)]
    ]


def test_a_series_function_with_several_results_cannot_be_in_an_expression(endpoint: Endpoint) -> None:
    """A function with several results cannot be part of an expression; the error contains its name."""
    assert "'series_stats()" in str(endpoint.query_error("print x0 = 1 | extend tolong(series_stats(dynamic([1])))"))


def test_result_columns_of_a_series_expression_contain_no_argument_name(endpoint: Endpoint) -> None:
    """If a series function has an expression as argument, the names of its columns contain no argument name."""
    table = endpoint.query_table("print x = 1 | project series_stats(dynamic([1]))")
    assert [each.column_name for each in table.columns][:2] == ["series_stats__min", "series_stats__min_idx"]


def test_a_series_with_inexact_integers_is_rejected(endpoint: Endpoint) -> None:
    """A series with integers that a double cannot represent is rejected."""
    assert "2^53" in str(endpoint.query_error("print series_add(dynamic([9007199254740993]), 1)"))


def test_sql_for_nested_series_calls_grows_linearly(endpoint: Endpoint) -> None:
    """The length of the generated SQL grows linearly with the number of nested calls."""
    expression = "dynamic([1,2,3])"
    for _ in range(24):
        expression = f"series_add({expression}, dynamic([1,1,1]))"
    assert evaluate_expression(endpoint, expression) == [25, 26, 27]
