"""Tests of comparison and arithmetic with operands of different types, and of decimals."""

from datetime import timedelta
from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    "query",
    [
        'print a = 1 | where a == "1"',
        'print a = "1" | where a == 1',
        'print a = "1" | where a < 2',
        'print a = 1 | where a in ("1", "2")',
        'print a = true | where a == "true"',
        'datatable(a:long, b:string)[1, "1"] | where a == b',
        'Telemetry | where Number == "5"',
        "Telemetry | where DeviceId > 5",
        "Telemetry | where Number in ('5')",
        'print a = "1" | join kind=inner (print a = 1) on a',
        'print a = datetime(2024-01-01) | join kind=inner (print a = "2024-01-01") on a',
        'print a = "1" | lookup (print a = 1, b = 2) on a',
    ],
)
def test_texts_cannot_be_compared_with_numbers(endpoint: Endpoint, query: str) -> None:
    """Comparing a text with a number, a bool or (in a join) a datetime is an error."""
    assert "Semantic error: SEM00" in str(endpoint.query_error(query))


@pytest.mark.parametrize(
    "condition", ['"a" < "b"', "d.a > d.b", 'd.a < "x"', "d.a > datetime(2024-01-01)", "s < s", "d > d", "d == d"]
)
def test_comparing_the_order_of_texts_or_dynamics_is_rejected(endpoint: Endpoint, condition: str) -> None:
    """Comparing two texts or two dynamics with ``<`` or ``>`` is an error."""
    error = str(endpoint.query_error(f'print d = dynamic({{"a": 10, "b": 9}}), s = "x" | where {condition}'))
    assert "Semantic error" in error


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        ("d.a > 9", True),
        ("d.a < 100", True),
        ("9 < d.a", True),
        ("d.a == 10", True),
        ("d.r > 9.25", True),
        ("d.r > 9.75", False),
        ("d.a > 9.5", True),
        ("d.t > 9", False),
        ("d.none > 9", False),
        ('d.t == "x"', True),
        ("e > 9", True),
    ],
)
def test_a_dynamic_is_compared_with_a_number_as_a_number(endpoint: Endpoint, condition: str, is_true: bool) -> None:  # noqa: FBT001  a table's column
    """A number in a dynamic is compared as a number; other values of the dynamic count as null."""
    query = f'print d = dynamic({{"a": 10, "r": 9.5, "t": "x"}}), e = dynamic(10) | where {condition} | count'
    assert endpoint.query_rows(query) == [[int(is_true)]]


def test_a_fraction_in_a_dynamic_cannot_be_compared_with_an_integer(endpoint: Endpoint) -> None:
    """Comparing a fraction in a dynamic with an integer is rejected, because Kusto does not document the result."""
    assert "EMB0001" in str(endpoint.query_error('print d = dynamic({"r": 9.5}) | where d.r > 9'))
    assert endpoint.query_rows('print d = dynamic({"r": 9.5}) | project d.r > 9.0, todouble(d.r) > 9') == [[True, True]]


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        ("t between (ago(1h) .. now())", True),
        ("t !between (ago(1h) .. now())", False),
        ("n between (2 + 2 .. 3 * 2)", True),
        ("n !between ((1 + 1) .. n - 1)", True),
        ("n between (n .. n) and n between (iff(n between (1 .. 2), 9, 5) .. toint(strlen('12345')))", True),
        ("t between (ago(1h) .. 2h)", True),
    ],
)
def test_the_bounds_of_between_can_be_any_expressions(endpoint: Endpoint, condition: str, is_true: bool) -> None:  # noqa: FBT001  a table's column
    """The bounds of ``between`` can be any expressions."""
    assert endpoint.query_rows(f"print t = now(), n = 5 | where {condition} | count") == [[int(is_true)]]


@pytest.mark.parametrize("bounds", ["(d.a .. 9)", "(1 .. d.a)"])
def test_between_with_a_dynamic_bound_is_rejected(endpoint: Endpoint, bounds: str) -> None:
    """``between`` with a dynamic bound is an error."""
    assert "EMB0001" in str(endpoint.query_error(f'print d = dynamic({{"a": 10}}), n = 5 | where n between {bounds}'))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1h / 2", "00:30:00"),
        ("1h / 0.5", "02:00:00"),
        ("3h / 2h", 1.5),
        ("3h % 2h", "01:00:00"),
        ("1h * 1.5", "01:30:00"),
        ("1.5 * 1h", "01:30:00"),
        ("2 * 1h", "02:00:00"),
        ("1h / n", "00:15:00"),
        ("totimespan('02:00:00') / 1h", 2.0),
        ("set_union(dynamic([3, 1, 2]), dynamic([5, 3, 4, 1]))", [3, 1, 2, 5, 4]),
        ("set_intersect(dynamic([3, 1, 2]), dynamic([2, 3]))", [3, 2]),
        ("set_difference(dynamic([3, 1, 2, 3]), dynamic([2]))", [3, 1]),
    ],
)
def test_timespans_can_be_divided(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A timespan can be divided by a number or a timespan; set functions keep the order of elements."""
    (row,) = endpoint.query_table(f"let n = 4; print x = {expression}").to_dict()["data"]
    (raw,) = endpoint.query_rows(f"let n = 4; print x = {expression}")
    assert value in (raw[0], row["x"])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("span / whole", "00:15:00"),
        ("span / 0.5", "02:00:00"),
        ("(span + span) / whole", "00:30:00"),
        ("span / part", 60.0),
        ("real_ / zero", "Infinity"),
        ("-real_ / zero", "-Infinity"),
        ("(real_ - real_) / zero", "NaN"),
        ("whole / zero", None),
        ("7 / whole", 1),
        ("-7 / whole", -1),
        ("whole / real_", 2.0),
        ("whole / long(null)", None),
    ],
)
def test_division_by_0_gives_null_for_integers_and_infinity_for_reals(
    endpoint: Endpoint, expression: str, value: Any
) -> None:
    """Division by 0 gives null for integers and infinity for reals."""
    row = "print span = 1h, part = 1m, whole = 4, real_ = 2.0, zero = 0"
    assert endpoint.query_rows(f"{row} | extend x = {expression} | project x") == [[value]]


def test_a_quotient_of_aggregates_has_the_type_of_their_types(endpoint: Endpoint) -> None:
    """The type of a quotient of aggregates follows from their types."""
    rows = "datatable(t:timespan, n:long, v:real)[1h, 1, 1.0, 2h, 4, 2.0]"
    query = f"{rows} | summarize sum(t) / count(), sum(n) / count(), sum(v) / count(), sum(t) / 2 / count()"
    assert endpoint.query_rows(query) == [["01:30:00", 2, 1.5, "00:45:00"]]


@pytest.mark.parametrize("start", ["1h", "toint('7')", "x"])
def test_the_sql_of_nested_divisions_grows_linearly(endpoint: Endpoint, start: str) -> None:
    """Each nested division adds the same length of SQL."""
    assert (
        len(endpoint.query_rows(f"print x = 7 | extend y = {start}{' / 2' * 40}", servertimeout=timedelta(seconds=20)))
        == 1
    )


def test_dynamic_null_has_the_type_dynamic(endpoint: Endpoint) -> None:
    """``dynamic(null)`` has the type dynamic."""
    assert endpoint.query_rows("print x = dynamic(null) | getschema | project ColumnType") == [["dynamic"]]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("decimal(1.5)", "1.5"),
        ("decimal(0.1)", "0.1"),
        ("decimal(1e5)", "100000"),
        ("decimal(-2.50)", "-2.5"),
        ("decimal(null)", None),
        ("decimal(0.1) + decimal(0.2)", "0.3"),
        ("decimal(1.5) * 2.25", "3.375"),
        ("7 - decimal(0.5)", "6.5"),
        ("decimal(7.5) % 2", "1.5"),
        ("decimal(1) / 4", "0.25"),
        ("decimal(2) / 3", "0.666666667"),
        ("decimal(1) / 0", None),
        ("5 / decimal(2)", "2.5"),
        ("decimal(123456789012345) * decimal(1000.5)", "123518517406851172.5"),
        ("bin(decimal(4.57), decimal(0.1))", "4.5"),
        ("floor(decimal(-4.5), 2)", "-6"),
        ("bin(decimal(4), 0)", None),
        ("coalesce(decimal(null), 1.5)", "1.5"),
        ("max_of(2.5, decimal(2))", "2.5"),
        ("iff(1 > 2, decimal(1.25), toreal('2.5'))", "2.5"),
        ("case(1 > 2, 1, 2 > 1, toreal('2.5'), decimal(7))", "2.5"),
    ],
)
def test_decimal_arithmetic_is_exact(endpoint: Endpoint, expression: str, expected: str | None) -> None:
    """Arithmetic with decimals is exact to nine digits after the point and returns decimals."""
    table = endpoint.query_table(f"print x = {expression}")
    assert table.columns[0].column_type == "decimal"
    assert table.raw_rows == [[expected]]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("tostring(decimal(1.50))", "1.5"),
        ("strcat(decimal(2.0), 'x')", "2x"),
        ("decimal(0.1) + decimal(0.2) == decimal(0.3)", True),
        ("decimal(5) > 3", True),
        ("isnull(decimal(null))", True),
        ("gettype(decimal(1))", "decimal"),
        ("toint(decimal(1.9))", 1),
    ],
)
def test_decimals_are_compared_and_converted_by_value(endpoint: Endpoint, expression: str, expected: object) -> None:
    """Decimals are compared and converted by value; their text has no trailing zeros."""
    assert endpoint.query_rows(f"print {expression}") == [[expected]]


def test_datatables_and_let_statements_may_contain_decimals(endpoint: Endpoint) -> None:
    """Tables and `let` statements can contain decimals, including null."""
    query = (
        "let most = decimal(2); datatable(a:decimal)[decimal(1.5), 2.25, decimal(null)] | where a < most or isnull(a)"
        " | summarize sum(a), count()"
    )
    assert endpoint.query_rows(query) == [["1.5", 2]]


def test_the_average_of_decimals_is_a_decimal(endpoint: Endpoint) -> None:
    """The average of decimals is a decimal with nine digits after the point, or null without values."""
    table = endpoint.query_table(
        "datatable(a:decimal)[1, 2, 2, decimal(null)] | summarize avg(a), avgif(a, a < 2), n = avgif(a, a > 5)"
        " | extend m = avg_a + 1"
    )
    assert [column.column_type for column in table.columns] == ["decimal"] * 4
    assert table.raw_rows == [["1.666666667", "1", None, "2.666666667"]]


@pytest.mark.parametrize("literal", ["decimal(0.1234567891)", "decimal(1e30)", "decimal(x)", "decimal(1e999999)"])
def test_decimal_literals_with_too_many_digits_are_rejected(endpoint: Endpoint, literal: str) -> None:
    """A literal with more digits than the engine stores, or without a number, is rejected."""
    assert endpoint.query_error_code(f"print {literal}").startswith("BadRequest")
