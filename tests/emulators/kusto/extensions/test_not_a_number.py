"""Tests of comparisons with NaN, which follow IEEE 754."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

REALS = "datatable(d:real)[real(nan), 5.0]"


@pytest.mark.parametrize("operand", ["0", "0.0", "real(-inf)", "real(+inf)", "real(nan)", "d", "other", "todouble(t)"])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_nan_has_no_order_and_is_unequal_to_every_number(endpoint: Endpoint, operator: str, operand: str) -> None:
    """Each comparison with NaN is false, except for ``!=``, on both sides of the operator."""
    source = 'datatable(d:real, t:string)[real(nan), "NaN"] | extend other = d + 1'
    query = f"{source} | project left = d {operator} {operand}, right = {operand} {operator} d"
    assert endpoint.query_rows(query) == [[operator == "!=", operator == "!="]]


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        ("d in (real(nan), 1.0)", False),
        ("d !in (real(nan), 1.0)", True),
        (f"d in (({REALS}))", False),
        (f"d !in (({REALS}))", True),
        ("d between (0.0 .. real(+inf))", False),
        ("1.0 between (0.0 .. d)", False),
        ("d between (d .. d)", False),
        ("1.0 !between (0.0 .. d)", True),
        ("not(d > 0)", True),
        ("isnan(d)", True),
        ("iff(d > 0, true, false)", False),
        ("case(d > 0, true, d <= 0, true, false)", False),
        ('dynamic({"v": "NaN"}).v > 1e13', False),
        ("iff(iff(d > 0, d, 1.0) > d, d, 1.0) > 0.5", True),
    ],
)
def test_nan_is_outside_of_each_list_and_range(endpoint: Endpoint, condition: str, is_true: bool) -> None:  # noqa: FBT001  a table's column
    """NaN is in no list and no range, and its comparisons select the same branch in each construct."""
    assert endpoint.query_rows(f"datatable(d:real)[real(nan)] | project x = {condition}") == [[is_true]]


@pytest.mark.parametrize(
    ("operators", "rows"),
    [
        ("where d > 1", [[5.0]]),
        ("extend e = d | where e >= 1 | project e", [[5.0]]),
        ("summarize countif(d > 1), sumif(1, d != d)", [[1, 1]]),
        ("extend u = real(null) | project d > u, d == u, d != u", [[None, False, True], [None, False, True]]),
    ],
)
def test_filters_and_conditional_aggregates_skip_nan(endpoint: Endpoint, operators: str, rows: list[list[Any]]) -> None:
    """A limit selects no row with NaN; a comparison with null stays null, or false for equality."""
    assert endpoint.query_rows(f"{REALS} | {operators}") == rows


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        ("n > 1", True),
        ("t > datetime(2025-01-01)", True),
        ("s >= 1h", True),
        ("t between (datetime(2025-01-01) .. 800d)", True),
        ("g == g", True),
        ("b == true", True),
        ("m > 1", True),
    ],
)
def test_values_of_other_types_are_compared_as_before(endpoint: Endpoint, condition: str, is_true: bool) -> None:  # noqa: FBT001  a table's column
    """The test for NaN has no effect on values that are no reals, also if their type is unknown."""
    row = "print n = 2, t = datetime(2026-01-01), s = 1h, g = new_guid(), b = true, m = todecimal('1.5')"
    assert endpoint.query_rows(f"{row} | extend n = n, t = t, s = s, m = m | project x = {condition}") == [[is_true]]
