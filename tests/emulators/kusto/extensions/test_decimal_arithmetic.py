"""Tests of decimal literals and of arithmetic with decimals."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint


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
def test_decimals(endpoint: Endpoint, expression: str, expected: str | None) -> None:
    """Arithmetic with decimals is exact to nine digits after the decimal point, and its result is a decimal."""
    table = endpoint.table(f"print x = {expression}")
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
def test_conversions_of_decimals(endpoint: Endpoint, expression: str, expected: object) -> None:
    """Decimals are compared and converted by value; their text has no trailing zeros."""
    assert endpoint.rows(f"print {expression}") == [[expected]]


def test_decimals_in_tables(endpoint: Endpoint) -> None:
    """Tables and `let` statements can contain decimals, including null."""
    query = (
        "let most = decimal(2); datatable(a:decimal)[decimal(1.5), 2.25, decimal(null)] | where a < most or isnull(a)"
        " | summarize sum(a), count()"
    )
    assert endpoint.rows(query) == [["1.5", 2]]


def test_averages_of_decimals(endpoint: Endpoint) -> None:
    """An average of decimals is a decimal, rounded to nine digits after the point, or null without values."""
    table = endpoint.table(
        "datatable(a:decimal)[1, 2, 2, decimal(null)] | summarize avg(a), avgif(a, a < 2), n = avgif(a, a > 5)"
        " | extend m = avg_a + 1"
    )
    assert [column.column_type for column in table.columns] == ["decimal"] * 4
    assert table.raw_rows == [["1.666666667", "1", None, "2.666666667"]]


@pytest.mark.parametrize("literal", ["decimal(0.1234567891)", "decimal(1e30)", "decimal(x)", "decimal(1e999999)"])
def test_rejected_literals(endpoint: Endpoint, literal: str) -> None:
    """A literal with more digits than the engine stores, or without a number, is rejected."""
    assert endpoint.code(f"print {literal}").startswith("BadRequest")
