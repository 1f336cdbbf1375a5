"""Tests that each regular expression in the service takes linear time."""

import re
from fnmatch import translate

import pytest

from bench.expression_rules import describe_nonlinear_time_faults
from bench.expressions import Expression, find_expressions
from functions import GROUPS
from shared.http import router
from shared.imports import csv_records

EVERY = list(find_expressions())

WHOLE_TEXT = {
    # Each unclosed string is matched as well, so that no text is searched a second time; the benchmark measures it.
    "shared/catalog/kql_tokens.py",
    "emulators/kusto/positions.py",
    "shared/text_formats/strict_json.py",
}
BUILT = {
    "shared/http/router.py": "from the routes of the service; checked below",
    "shared/auth/device_patterns.py": "from globs by fnmatch, in atomic groups; checked below",
    "shared/imports/csv_records.py": "from the delimiter; checked below",
    "emulators/kusto/extensions/parse_kv.py": "from the delimiters and keys of a query, without repetitions",
    "local/http_server/routes.py": "from the routes of the service",
    "emulators/kusto/extensions/strings.py": "from the pattern of extract_all(), to number its groups; matches no text",
}


def find_broken_rules(pattern: str, *, is_anchored: bool = True) -> list[str]:
    """Return the rules about linear time that a pattern breaks."""
    return describe_nonlinear_time_faults(Expression("", pattern, re.DOTALL, is_anchored))


def test_the_expressions_of_the_service_are_found() -> None:
    """The test finds the regular expressions in modules, in functions and in model fields."""
    places = {each.place.partition(":")[0] for each in EVERY}
    assert {
        "shared/catalog/kql_text.py",
        "shared/errors.py",
        "shared/catalog/fields.py",
        "local/http_server/request_head.py",
    } <= places


@pytest.mark.parametrize("expression", EVERY, ids=lambda each: each.place)
def test_every_expression_is_linear(expression: Expression) -> None:
    """No expression repeats the same characters in nested or adjacent groups, or can start again within a match."""
    name = expression.place.partition(":")[0]
    if expression.pattern is None:
        assert name in BUILT, "an expression that is built at run time needs a reason and a check of its own"
    elif name not in WHOLE_TEXT:
        assert describe_nonlinear_time_faults(expression) == []


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"a*a*b", r".*,.*b", r"(?:a|ab|b)*c", r"[^/]*(.*)x", r"(\s*x?)*y"])
def test_a_regex_with_ambiguous_repetitions_is_reported(pattern: str) -> None:
    """A regular expression with nested, alternative or adjacent repetitions of the same characters is reported."""
    assert find_broken_rules(pattern)


@pytest.mark.parametrize("pattern", [r"\s*;", r"\bunion\b[^|;)]*\*", r'"(?:\\.|[^"\\\n])*"', r"a+?b", r"\w+: "])
def test_an_expression_that_searches_text_again_is_found(pattern: str) -> None:
    """A regular expression whose search can start again in text that it has already examined is reported."""
    assert find_broken_rules(pattern, is_anchored=False)


@pytest.mark.parametrize("pattern", [r"(?:^|;)\s*+\.", r"\b\w++: ", r"^(/([^/~]|~[01])*)*$", r'"[^"]*"', r"\W+"])
def test_a_linear_expression_has_no_fault(pattern: str) -> None:
    """A regular expression is accepted if other characters separate its repetitions."""
    assert find_broken_rules(pattern, is_anchored=False) == []


def test_the_patterns_of_routes_are_linear() -> None:
    """The regular expression that is generated for a route takes linear time."""
    routes = {operation.route for group in GROUPS for operation in group.operations}
    assert [route for route in routes if find_broken_rules(router._compile_route_pattern(route).pattern)] == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_patterns_of_csv_are_linear(delimiter: str) -> None:
    """The regular expressions that divide CSV text take linear time for each delimiter."""
    patterns = [
        each.pattern.decode() if isinstance(each.pattern, bytes) else each.pattern
        for each in csv_records._compile_patterns(delimiter)
    ]
    assert [pattern for pattern in patterns if find_broken_rules(pattern)] == []


def test_the_patterns_of_globs_are_atomic() -> None:
    """Matching a file name pattern with many wildcards never tries an earlier wildcard again."""
    assert find_broken_rules(translate("*a*a*a*b")) == []
