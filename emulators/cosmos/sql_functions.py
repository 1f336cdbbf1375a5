"""Functions and aggregates of Cosmos DB SQL; an argument of the wrong type gives the result undefined."""

from collections.abc import Callable
from typing import Any

from emulators.cosmos.sql_values import UNDEFINED, SqlBoolean, are_equal, get_type_rank


def _build_text_comparison(compare: Callable[[str, str], bool]) -> Callable[..., Any]:
    """Build an SQL function that applies ``compare`` to two texts; an optional third argument ignores letter case."""

    def compare_texts(text: Any, part: Any, ignore_case: Any = None) -> SqlBoolean:
        if not isinstance(text, str) or not isinstance(part, str):
            return UNDEFINED
        return compare(text.lower(), part.lower()) if ignore_case is True else compare(text, part)

    return compare_texts


def _build_type_test(*type_ranks: int) -> Callable[[Any], bool]:
    """Build an SQL function that returns whether the type of a value has one of these ranks of ``get_type_rank``."""
    return lambda value: get_type_rank(value) in type_ranks


def _contains_element(values: Any, searched: Any, ignore_other_properties: Any = None) -> SqlBoolean:
    """Compute ARRAY_CONTAINS.

    If ``ignore_other_properties`` is True, an object with all properties of ``searched`` also matches.
    """
    if not isinstance(values, list) or searched is UNDEFINED:
        return UNDEFINED
    return any(
        _is_contained_in(searched, value) if ignore_other_properties is True else are_equal(searched, value)
        for value in values
    )


def _is_contained_in(part: Any, whole: Any) -> bool:
    """Return whether the JSON value ``whole`` contains ``part``.

    An object contains ``part`` if it has all properties of ``part``, and its value of each property contains the value
    in ``part``. Values that are not objects must be equal.
    """
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_contained_in(value, whole[name]) for name, value in part.items())
    return are_equal(part, whole)


def _restrict_argument_type(argument_type: type, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Build an SQL function whose result is undefined unless its argument is of the Python type ``argument_type``."""
    return lambda value: (
        function(value) if isinstance(value, argument_type) and not isinstance(value, bool) else UNDEFINED
    )


FUNCTIONS: dict[str, tuple[int, int, Callable[..., Any]]] = {
    # name: (minimum number of arguments, maximum number of arguments, function)
    "IS_DEFINED": (1, 1, lambda value: value is not UNDEFINED),
    "IS_NULL": (1, 1, _build_type_test(1)),
    "IS_BOOL": (1, 1, _build_type_test(2)),
    "IS_NUMBER": (1, 1, _build_type_test(4)),
    "IS_STRING": (1, 1, _build_type_test(5)),
    "IS_ARRAY": (1, 1, _build_type_test(6)),
    "IS_OBJECT": (1, 1, _build_type_test(7)),
    "IS_PRIMITIVE": (1, 1, _build_type_test(1, 2, 4, 5)),
    "STARTSWITH": (2, 3, _build_text_comparison(str.startswith)),
    "ENDSWITH": (2, 3, _build_text_comparison(str.endswith)),
    "CONTAINS": (2, 3, _build_text_comparison(lambda text, part: part in text)),
    "STRINGEQUALS": (2, 3, _build_text_comparison(lambda text, other: text == other)),
    "ARRAY_CONTAINS": (2, 3, _contains_element),
    "ARRAY_LENGTH": (1, 1, _restrict_argument_type(list, len)),
    "LENGTH": (1, 1, _restrict_argument_type(str, len)),
    "LOWER": (1, 1, _restrict_argument_type(str, str.lower)),
    "UPPER": (1, 1, _restrict_argument_type(str, str.upper)),
    "ABS": (1, 1, lambda value: abs(value) if get_type_rank(value) == 4 else UNDEFINED),
}


def compute_aggregate(aggregate_name: str, values: list[Any]) -> Any:
    """Compute an aggregate over the argument's values in all rows.

    Args:
        aggregate_name: COUNT, SUM, MIN, MAX or AVG.
        values: The value of the argument for each row; undefined values are ignored.
    """
    defined = [value for value in values if value is not UNDEFINED]
    if aggregate_name == "COUNT":
        return len(defined)
    if aggregate_name in ("MIN", "MAX"):
        if not defined:
            return UNDEFINED
        return (min if aggregate_name == "MIN" else max)(defined, key=lambda value: (get_type_rank(value), value))
    if any(get_type_rank(value) != 4 for value in defined):
        return UNDEFINED
    if aggregate_name == "SUM":
        return sum(defined)
    return sum(defined) / len(defined) if defined else UNDEFINED


AGGREGATES = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG"})
