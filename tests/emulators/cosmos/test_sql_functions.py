"""Tests of the functions and aggregates of Cosmos SQL."""

from typing import Any

import pytest

from emulators.cosmos.sql_functions import FUNCTIONS, compute_aggregate
from emulators.cosmos.sql_values import UNDEFINED

VALUES = {
    "undefined": UNDEFINED,
    "null": None,
    "bool": True,
    "number": 1.5,
    "string": "a",
    "array": [1],
    "object": {"a": 1},
}


def _call_function(name: str, *arguments: Any) -> Any:
    return FUNCTIONS[name][2](*arguments)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("IS_DEFINED", {"null", "bool", "number", "string", "array", "object"}),
        ("IS_NULL", {"null"}),
        ("IS_BOOL", {"bool"}),
        ("IS_NUMBER", {"number"}),
        ("IS_STRING", {"string"}),
        ("IS_ARRAY", {"array"}),
        ("IS_OBJECT", {"object"}),
        ("IS_PRIMITIVE", {"null", "bool", "number", "string"}),
    ],
)
def test_type_test_functions_accept_only_their_types(name: str, kinds: set[str]) -> None:
    """Each type test, such as IS_NUMBER, is true exactly for the values of its type."""
    assert {kind for kind, value in VALUES.items() if _call_function(name, value)} == kinds


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("STARTSWITH", "Pump 1", "Pump"),
        ("ENDSWITH", "Pump 1", "p 1"),
        ("CONTAINS", "Pump 1", "mp"),
        ("STRINGEQUALS", "Pump", "Pump"),
    ],
)
def test_text_functions_are_case_sensitive_by_default(name: str, text: str, part: str) -> None:
    """Text functions distinguish letter case, unless the third argument is true."""
    assert _call_function(name, text, part) is True
    assert _call_function(name, text, part.swapcase()) is False
    assert _call_function(name, text, part.swapcase(), False) is False
    assert _call_function(name, text, part.swapcase(), True) is True


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("STARTSWITH", ("a", 1)),
        ("CONTAINS", (UNDEFINED, "a")),
        ("ARRAY_CONTAINS", ("a", "a")),
        ("ARRAY_CONTAINS", ([1], UNDEFINED)),
        ("ARRAY_LENGTH", ("a",)),
        ("LENGTH", ([1],)),
        ("LOWER", (1,)),
        ("UPPER", (None,)),
        ("ABS", (True,)),
    ],
)
def test_a_function_of_an_argument_with_a_wrong_type_is_undefined(name: str, arguments: tuple[Any, ...]) -> None:
    """If an argument of a function has the wrong type, the result is undefined instead of an error."""
    assert _call_function(name, *arguments) is UNDEFINED


def test_functions_of_one_argument_return_the_documented_result() -> None:
    """Functions of one argument return a length, a text in another letter case, or an absolute value."""
    assert [_call_function("ARRAY_LENGTH", [1, 2]), _call_function("LENGTH", "abc")] == [2, 3]
    assert [_call_function("LOWER", "Ab"), _call_function("UPPER", "Ab"), _call_function("ABS", -2)] == ["ab", "AB", 2]


def test_array_contains_compares_whole_elements_by_default() -> None:
    """ARRAY_CONTAINS compares whole elements.

    With ``partial``, an element may have more properties than the object that is searched for.
    """
    elements = [{"a": 1, "b": {"c": 2, "d": 3}}, True]
    assert _call_function("ARRAY_CONTAINS", elements, {"a": 1}) is False
    assert _call_function("ARRAY_CONTAINS", elements, {"a": 1}, True) is True
    assert _call_function("ARRAY_CONTAINS", elements, {"b": {"d": 3}}, True) is True
    assert _call_function("ARRAY_CONTAINS", elements, {"a": 2}, True) is False
    assert _call_function("ARRAY_CONTAINS", elements, 1) is False


@pytest.mark.parametrize(("name", "expected"), [("COUNT", 3), ("SUM", 6), ("MIN", 1), ("MAX", 3), ("AVG", 2)])
def test_aggregates_ignore_undefined_values(name: str, expected: object) -> None:
    """Aggregates ignore undefined values."""
    assert compute_aggregate(name, [3, UNDEFINED, 1, 2]) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("COUNT", 0), ("SUM", 0), ("MIN", UNDEFINED), ("MAX", UNDEFINED), ("AVG", UNDEFINED)]
)
def test_aggregates_without_values_are_zero_or_undefined(name: str, expected: object) -> None:
    """Without values, COUNT and SUM are 0, and the other aggregates are undefined."""
    assert compute_aggregate(name, [UNDEFINED]) == expected


def test_sums_of_values_that_are_not_numbers_are_undefined() -> None:
    """A value that is not a number makes SUM and AVG undefined; MIN and MAX compare it by type."""
    assert compute_aggregate("SUM", [1, "a"]) is UNDEFINED
    assert compute_aggregate("AVG", [1, None]) is UNDEFINED
    assert [compute_aggregate("MIN", ["a", 1, True]), compute_aggregate("MAX", [5, "a", True])] == [True, "a"]
