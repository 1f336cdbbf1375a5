"""Tests of limits on nested expressions and on the time of translation."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.emulators.kusto.endpoints import Endpoint


def build_nested_expression(form: str, depth: int) -> str:
    """Return an expression that is nested this many levels deep."""
    expression = "x"
    for _ in range(depth):
        expression = form.format(expression)
    return expression


@pytest.mark.parametrize(
    "form", ["({} in (1, 2))", "({} !between (1 .. 2))", "todecimal({})", "(7 / {})", "make_timespan(1, toint({}))"]
)
def test_nested_expressions_of_doubling_cost_are_rejected(endpoint: Endpoint, form: str) -> None:
    """An expression whose translation cost doubles with each level can have only a few levels."""
    assert len(endpoint.query_rows(f"print x = 5 | project y = gettype({build_nested_expression(form, 2)})")) == 1
    assert "EMB0003" in str(endpoint.query_error(f"print x = 5 | extend y = {build_nested_expression(form, 40)}"))


def test_branches_calls_and_divisions_can_be_nested_deeply(endpoint: Endpoint) -> None:
    """Expressions with deeply nested branches, calls and divisions are accepted."""
    # DuckDB needs nearly twice the time for each further level of calls.
    for form, levels in (("iff(x > 1, x, {})", 20), ("abs({})", 12), ("({} / 2)", 20)):
        assert len(endpoint.query_rows(f"print x = 5 | extend y = {build_nested_expression(form, levels)}")) == 1


def test_each_request_with_a_text_of_too_slow_translation_fails(endpoint: Endpoint) -> None:
    """If the translation of a query text takes too long, each request with this text fails; others succeed."""
    text = f"let f = (a:long) {{ a + a + a + a }}; print x = {build_nested_expression('f({})', 12).replace('x', '1')}"
    with ThreadPoolExecutor(4) as callers:
        errors = [callers.submit(endpoint.query_error, text) for _ in range(4)]
        assert endpoint.query_rows("print other = 1") == [[1]]
        assert all("EMB0003" in str(error.result()) for error in errors)
