"""Tests of the error function, the incomplete beta function and the beta distribution."""

import itertools
import math

import pytest

from emulators.kusto.series.significance import (
    compute_erf,
    compute_erfc,
    compute_incomplete_beta,
    compute_log_beta,
    compute_welch_test,
)
from tests.emulators.kusto.endpoints import Endpoint
from tests.emulators.kusto.series.outputs import require_outputs


@pytest.mark.parametrize("x", [0.001, 0.25, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(("a", "b"), [(1, 5), (3, 1), (2, 3)])
def test_incomplete_beta_equals_binomial_sums(x: float, a: int, b: int) -> None:
    """For integer parameters, the incomplete beta function is a sum of binomial probabilities."""
    number = a + b - 1
    expected = sum(math.comb(number, j) * x**j * (1 - x) ** (number - j) for j in range(a, number + 1))
    assert compute_incomplete_beta(x, a, b) == pytest.approx(expected, rel=1e-12)


def test_incomplete_beta_is_a_distribution_function() -> None:
    """The incomplete beta function is 0 up to 0, 1 from 1 on, and grows in between."""
    values = [compute_incomplete_beta(x / 20, 0.5, 40) for x in range(-1, 22)]
    assert (values[0], values[1], values[-2], values[-1]) == (0, 0, 1, 1)
    assert all(one <= following for one, following in itertools.pairwise(values))


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (100, 69), (100, 71), (1000, 2), (0.001, 3)])
def test_log_beta_equals_the_value_from_gamma_functions(a: float, b: float) -> None:
    """The logarithm of the beta function equals that from gamma functions, for small and large parameters."""
    assert compute_log_beta(a, b) == pytest.approx(math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b), abs=1e-9)


def test_null_arguments_of_significance_tests_give_null() -> None:
    """If an argument of a function for significance tests is null, the result is null."""
    assert compute_erf(None) is None
    assert compute_erfc(None) is None
    assert compute_welch_test(1, 1, 10, None, 1, 10) is None


def test_the_p_value_of_welchs_test_does_not_depend_on_the_order_of_samples() -> None:
    """The p-value of Welch's test is equal for exchanged samples, and falls with the distance of the means."""
    near = require_outputs(compute_welch_test(1, 2, 10, 2, 5, 20))["value"]
    assert require_outputs(compute_welch_test(2, 5, 20, 1, 2, 10))["value"] == pytest.approx(near, rel=1e-12)
    assert require_outputs(compute_welch_test(1, 2, 10, 4, 5, 20))["value"] < near


@pytest.mark.parametrize("sample", [(1.0, -1.0, 10.0), (math.inf, 1.0, 10.0), (1.0, 1.0, 1.0)])
def test_welch_test_is_undefined_for_impossible_samples(sample: tuple[float, float, float]) -> None:
    """Welch's test has no p-value for samples with a negative variance, an infinite mean or a single value."""
    assert math.isnan(require_outputs(compute_welch_test(*sample, 2, 1, 10))["value"])


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
def test_the_beta_distribution_has_the_documented_values(endpoint: Endpoint, call: str, expected: object) -> None:
    """The functions of the beta distribution return the documented values; for invalid arguments, NaN or null."""
    ((found,),) = endpoint.query_rows(f"print {call}")
    assert found == (pytest.approx(expected, rel=1e-14) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("probability", [1e-12, 0.001, 0.3, 0.999])
def test_the_inverse_beta_distribution_inverts_the_distribution(endpoint: Endpoint, probability: float) -> None:
    """The inverse of the beta distribution returns the value whose cumulative probability is its argument."""
    query = f"print beta_cdf(beta_inv({probability}, 0.5, 3), 0.5, 3)"
    assert endpoint.query_rows(query) == [[pytest.approx(probability, rel=1e-9)]]
