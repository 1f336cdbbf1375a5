"""Tests of the beta distribution."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint


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
    """The functions return the documented values, and NaN or null for arguments outside their ranges."""
    ((found,),) = endpoint.rows(f"print {call}")
    assert found == (pytest.approx(expected, rel=1e-14) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("probability", [1e-12, 0.001, 0.3, 0.999])
def test_inverse_of_beta_distribution(endpoint: Endpoint, probability: float) -> None:
    """The inverse of the beta distribution returns the value whose cumulative probability is its argument."""
    query = f"print beta_cdf(beta_inv({probability}, 0.5, 3), 0.5, 3)"
    assert endpoint.rows(query) == [[pytest.approx(probability, rel=1e-9)]]
