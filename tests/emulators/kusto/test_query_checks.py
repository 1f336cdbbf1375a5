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
def test_deeply_nested_expressions_are_rejected(endpoint: Endpoint, form: str) -> None:
    """An expression whose cost doubles with each level can have only a few levels."""
    assert len(endpoint.rows(f"print x = 5 | project y = gettype({build_nested_expression(form, 2)})")) == 1
    assert "EMB0003" in str(endpoint.error(f"print x = 5 | extend y = {build_nested_expression(form, 40)}"))


def test_branches_calls_and_divisions_may_be_nested_deeply(endpoint: Endpoint) -> None:
    """Branches, calls and divisions may be nested deeply."""
    # DuckDB needs nearly twice the time for each further level of calls.
    for form, levels in (("iff(x > 1, x, {})", 20), ("abs({})", 12), ("({} / 2)", 20)):
        assert len(endpoint.rows(f"print x = 5 | extend y = {build_nested_expression(form, levels)}")) == 1


def test_slow_translations_fail_for_each_caller(endpoint: Endpoint) -> None:
    """If translating a text takes too long, each request with it fails, and other queries succeed."""
    text = f"let f = (a:long) {{ a + a + a + a }}; print x = {build_nested_expression('f({})', 12).replace('x', '1')}"
    with ThreadPoolExecutor(4) as callers:
        errors = [callers.submit(endpoint.error, text) for _ in range(4)]
        assert endpoint.rows("print other = 1") == [[1]]
        assert all("EMB0003" in str(error.result()) for error in errors)
