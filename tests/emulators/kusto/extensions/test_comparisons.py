"""Which types may be compared, and what a dynamic compares as."""

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
def test_texts_are_not_compared_with_numbers(endpoint: Endpoint, query: str) -> None:
    """A text beside a number, a truth value or, as a key, an instant is an error in the query."""
    assert "Semantic error: SEM00" in str(endpoint.error(query))


@pytest.mark.parametrize(
    "condition", ['"a" < "b"', "d.a > d.b", 'd.a < "x"', "d.a > datetime(2024-01-01)", "s < s", "d > d", "d == d"]
)
def test_texts_and_dynamics_have_no_order(endpoint: Endpoint, condition: str) -> None:
    """Neither two texts nor two dynamics are compared by an order; what Data Explorer refuses too says so."""
    error = str(endpoint.error(f'print d = dynamic({{"a": 10, "b": 9}}), s = "x" | where {condition}'))
    assert "Semantic error" in error


@pytest.mark.parametrize(
    ("condition", "holds"),
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
def test_a_dynamic_beside_a_number_compares_as_one(endpoint: Endpoint, condition: str, holds: bool) -> None:  # noqa: FBT001  a table's column
    """What is inside a dynamic compares as a number, not as text; what is none is null."""
    query = f'print d = dynamic({{"a": 10, "r": 9.5, "t": "x"}}), e = dynamic(10) | where {condition} | count'
    assert endpoint.rows(query) == [[int(holds)]]


def test_a_fraction_beside_a_whole_number_is_refused(endpoint: Endpoint) -> None:
    """How a fraction inside a dynamic is rounded for a whole number is not guessed."""
    assert "EMB0001" in str(endpoint.error('print d = dynamic({"r": 9.5}) | where d.r > 9'))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("t between (ago(1h) .. now())", True),
        ("t !between (ago(1h) .. now())", False),
        ("n between (2 + 2 .. 3 * 2)", True),
        ("n !between ((1 + 1) .. n - 1)", True),
        ("n between (n .. n) and n between (iff(n between (1 .. 2), 9, 5) .. toint(strlen('12345')))", True),
        ("t between (ago(1h) .. 2h)", True),
    ],
)
def test_between_takes_expressions(endpoint: Endpoint, condition: str, holds: bool) -> None:  # noqa: FBT001  a table's column
    """The bounds of ``between`` may be any expressions, also such as hold another ``between``."""
    assert endpoint.rows(f"print t = now(), n = 5 | where {condition} | count") == [[int(holds)]]


@pytest.mark.parametrize("bounds", ["(d.a .. 9)", "(1 .. d.a)"])
def test_between_over_a_dynamic_is_refused(endpoint: Endpoint, bounds: str) -> None:
    """A dynamic as a bound is refused by name."""
    assert "EMB0001" in str(endpoint.error(f'print d = dynamic({{"a": 10}}), n = 5 | where n between {bounds}'))


@pytest.mark.parametrize(
    "query",
    [
        'datatable(a:long)[1] | union (datatable(a:string)["x"])',
        "union (datatable(a:long)[1]), (datatable(a:real)[1.5])",
        "union (Telemetry | project Number), (print Number = 1.5)",
    ],
)
def test_union_of_types_is_refused(endpoint: Endpoint, query: str) -> None:
    """Columns of one name and different types are not made one in silence."""
    assert "EMB0001" in str(endpoint.error(query))


def test_union_of_one_type(endpoint: Endpoint) -> None:
    """Columns of one type come together, whichever input names them."""
    query = 'datatable(a:long)[1] | union (datatable(a:long)[2]) | union withsource=s (datatable(b:string)["x"])'
    assert sorted(endpoint.rows(query), key=str) == [
        ["union_arg0", 1, ""],
        ["union_arg0", 2, ""],
        ["union_arg1", None, "x"],
    ]
