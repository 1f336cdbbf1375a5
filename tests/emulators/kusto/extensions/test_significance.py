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
    """Equal means have the p-value 1; samples without variance or with one value have no p-value."""
    ((found,),) = endpoint.rows(f"print welch_test({arguments})")
    assert found == (pytest.approx(expected, abs=1e-12) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("beta_cdf(0.9, 10.0, 20.0)", 0.999999999999959),
        ("beta_cdf(0.0, 2, 3)", 0.0),
        ("beta_cdf(1.5, 10.0, 20.0)", "NaN"),
        ("beta_cdf(double(-10), 10.0, 20.0)", "NaN"),
        ("beta_cdf(0.1, double(-1.0), 20.0)", "NaN"),
        ("beta_cdf(0.5, 10001, 1)", "NaN"),
        ("beta_inv(0.1, 10.0, 20.0)", 0.226415022388749),
        ("beta_inv(0.5, 10000, 10000)", 0.5),
        ("beta_inv(1, 2, 3)", 1.0),
        ("beta_inv(1.5, 10.0, 20.0)", None),
        ("beta_inv(0.1, double(-1.0), 20.0)", "NaN"),
        ("beta_pdf(0.5, 10.0, 20.0)", 0.746176019310951),
        ("beta_pdf(1.5, 10.0, 20.0)", "NaN"),
        ("beta_pdf(real(null), 10.0, 20.0)", None),
        ("beta_pdf(0.5, real(+inf), 20.0)", "NaN"),
    ],
)
def test_beta_distribution(endpoint: Endpoint, call: str, expected: object) -> None:
    """The functions of the beta distribution have the documented values, and NaN or null outside their ranges."""
    ((found,),) = endpoint.rows(f"print {call}")
    assert found == (pytest.approx(expected, rel=1e-14) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("probability", [1e-12, 0.001, 0.3, 0.999])
def test_inverse_of_beta_distribution(endpoint: Endpoint, probability: float) -> None:
    """The inverse returns the value at which the cumulative distribution has the probability."""
    query = f"print beta_cdf(beta_inv({probability}, 0.5, 3), 0.5, 3)"
    assert endpoint.rows(query) == [[pytest.approx(probability, rel=1e-9)]]
