"""Tests of the error function and Welch's test."""

import math

import pytest

from tests.emulators.kusto.endpoints import Endpoint

FIRST = "dynamic([27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4])"
SECOND = "dynamic([27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4])"


def test_error_function(endpoint: Endpoint) -> None:
    """The error function returns the documented values."""
    expected = [-0.999977909503001, -0.995322265018953, -0.842700792949715, 0, 0.842700792949715]
    rows = endpoint.rows("range x from -3 to 1 step 1 | project erf(x), erfc(x)")
    assert rows == [pytest.approx([each, 1 - each], abs=1e-15) for each in expected]
    assert endpoint.rows("print erf(real(null)), erf(real(+inf)), erfc(real(nan))") == [[None, 1.0, "NaN"]]


def test_welch_test(endpoint: Endpoint) -> None:
    """Welch's test returns the documented p-value 0.021 for the documented samples."""
    query = (
        f"print s1 = {FIRST}, s2 = {SECOND} | mv-expand s1 to typeof(double), s2 to typeof(double)"
        " | summarize m1=avg(s1), v1=variance(s1), c1=count(), m2=avg(s2), v2=variance(s2), c2=count()"
        " | project welch_test(m1, v1, c1, m2, v2, c2)"
    )
    assert endpoint.rows(query) == [[pytest.approx(0.0213780015)]]


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
def test_special_samples(endpoint: Endpoint, arguments: str, expected: object) -> None:
    """If the means are equal, the p-value is 1; samples without variance or with one value have no p-value."""
    ((found,),) = endpoint.rows(f"print welch_test({arguments})")
    assert found == (pytest.approx(expected, abs=1e-12) if isinstance(expected, float) else expected)
