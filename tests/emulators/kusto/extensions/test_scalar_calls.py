"""Tests of functions over single values, mostly with documented examples."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

EXAMPLES: list[tuple[str, Any]] = [
    ("jaccard_index(dynamic([1, 2, 3]), dynamic([1, 2, 3, 4]))", 0.75),
    ('indexof_regex("abcabc", @"a.c")', 0),
    ('indexof_regex("abcabcdefg", @"a.c", 0, 9, 2)', 3),
    ('indexof_regex("abcabc", @"a.c", 1, -1, 2)', -1),
    ('indexof_regex("ababaa", @"a.a", 0, -1, 2)', -1),
    ('indexof_regex("abcabc", @"a.c", -3)', None),
    ("around(5, 4, 1)", 1),
    ("around(datetime(2024-01-01), datetime(2024-01-03), 1d)", 0),
    ("isutf8('x')", 1),
    ("ingestion_time()", None),
    ("array_index_of(datetime_list_timezones(), 'Europe/Berlin') > 0", 1),
    ("assert(1 < 2, 'never')", 1),
    ("binary_shift_left(1, 66)", 4),
    ("binary_shift_left(int(-1), 3)", -8),
    ("binary_shift_left(3, 63)", -(2**63)),
    ("binary_shift_left(1, -1)", None),
    ("binary_shift_right(5, 65)", 2),
    ("binary_shift_right(-5, 1)", -3),
    ("binary_shift_right(5, -1)", None),
    ("bag_has_key(dynamic({'a': 1}), '')", 0),
    ("bag_has_key(dynamic({'x \"y': 1}), 'x \"y')", 1),
    ("bag_has_key(dynamic({'a': {'b': 1}}), '$.a.b')", 1),
    ("set_intersect(parse_json('{\"a\": 1}'), dynamic([1]))", None),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_scalar_functions_have_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A scalar function has the documented result; for an invalid argument, it is null or an empty string."""
    assert endpoint.query_rows(f"print {expression}") == [[value]]


@pytest.mark.parametrize(
    "expression",
    [
        "has_ipv4(1, '1.1.1.1')",
        "convert_length('1', 'Meter', 'Foot')",
        "assert(1 == 2, 'no')",
        "assert(1, 'no')",
        "hash()",
        "treepath(1)",
    ],
)
def test_a_scalar_argument_of_a_wrong_type_is_rejected(endpoint: Endpoint, expression: str) -> None:
    """A scalar argument of a wrong type, and a failed assertion, are reported as errors of the query."""
    assert endpoint.query_error_code(f"print {expression}") in ("General_BadRequest", "BadRequest_NotSupported")


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("treepath({bag})", ["['a']", "['b']"]),
        ("toscalar(print v = {bag} | summarize buildschema(v))", {"a": "double", "b": "long"}),
    ],
)
def test_an_integer_beyond_the_range_of_a_double_is_a_real(endpoint: Endpoint, call: str, value: Any) -> None:
    """Functions accept a dynamic value with an integer beyond the range of a double; the integer counts as a real."""
    bag = f'parse_json(\'{{"a": {"9" * 310}, "b": 1}}\')'
    assert endpoint.query_rows(f"print x = {call.format(bag=bag)}") == [[value]]


@pytest.mark.parametrize("digit_count", [310, 4300, 5000])
def test_different_integers_beyond_the_range_of_a_double_are_different(endpoint: Endpoint, digit_count: int) -> None:
    """Different integers beyond the range of a double differ, unless both have more than 4,300 digits."""
    number = "-" + "9" * (digit_count - 1)
    first, second = (f"parse_json('[{number}{last}]')" for last in "12")
    assert endpoint.query_rows(f"print jaccard_index({first}, {second})") == [[float(digit_count > 4300)]]
