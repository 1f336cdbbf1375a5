"""Differences between the local query engine and Microsoft's KQL language service that the tests permit.

Each difference has a pattern for the query, and a pattern for the message of the side that rejects the query; a query
that matches both is not compared.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """Difference between the engine and the language service.

    Attributes:
        reason: explanation for the reference.
        query: pattern of the queries with the construct.
        message: pattern of the error that one side reports; of the empty text if columns differ.
    """

    reason: str
    query: re.Pattern[str] = re.compile("")
    message: re.Pattern[str] = re.compile("")


def _permit(reason: str, query: str = "", message: str = "") -> KnownDifference:
    return KnownDifference(reason, re.compile(query), re.compile(message))


KNOWN: Mapping[str, KnownDifference] = {
    "`row_number()`, `prev()` and others without `serialize`": _permit(
        "The language service does not check that rows are in order; Data Explorer and the engine do.",
        r"\b(row_\w+|prev|next)\w*\(",
        "cannot be invoked in current context",
    ),
    '`long == "text"`': _permit(
        "The language service accepts the comparison of a number with a text; Data Explorer and the engine reject it.",
        message="SEM0064",
    ),
    "time zones": _permit(
        "The engine rejects an unknown time zone when it runs the query; the language service does not know the zones.",
        r"datetime_(utc_to_local|local_to_utc)",
        "TimeZone",
    ),
    "`assert(condition, message)`": _permit(
        "The message must be a literal in the engine; the language service also accepts constant expressions.",
        r"\bassert\(",
        "assert",
    ),
    "regex that is not a literal": _permit(
        "The engine accepts literal regular expressions and group numbers only, which it checks when it translates.",
        r"\b(extract|extract_all|trim\w*|replace_regex|matches)\b",
        "must be a constan|regex",
    ),
    "values of arguments": _permit(
        "The engine checks the value of an argument, such as the name of a kind; the language service checks its type.",
        message="the argument .* must be|must be from|must be one of|must be a positive|must be at|between",
    ),
    "`estimate_data_size()`, `bag_pack_columns()`": _permit(
        "The language service requires columns as arguments; the engine accepts any expression.",
        r"\b(estimate_data_size|bag_pack_columns)\(",
        "Column name expected",
    ),
    "values during execution": _permit(
        "An overflow and a failed conversion are errors of the run; the language service does not run queries.",
        message="EMB0004|InvalidInput|OverflowError",
    ),
    "a column that is `pow()`, `exp10()`, `sign()`, `cot()`, `degrees()` or `radians()` without a name": _permit(
        "The language service gives it the name of the argument. Microsoft's Kusto emulator gives it a number, such as "
        "`Column1`, by measurements of the translator library's authors.",
        r"\b(pow|exp10|sign|cot|degrees|radians)\(",
    ),
    "`round()` of whole numbers": _permit(
        "The language service expects the type of the argument. Microsoft's Kusto emulator returns a real, by the same "
        "measurements.",
        r"\bround\(",
    ),
    "`jaccard_index()`": _permit(
        "The language service expects an array; by its documentation the function returns a real.",
        r"\bjaccard_index\(",
    ),
    "`series_fit_poly()` with a degree of type long": _permit(
        "The language service requires an int; the documentation passes literals such as `5`.",
        r"\bseries_fit_poly\(",
        "A value of type int expected",
    ),
    "`countif()` without a name": _permit(
        "The language service adds the name of a column to `countif_`. Microsoft's Kusto emulator does not, by the "
        "same measurements.",
        r"\bcountif\(",
    ),
    "`array_sort_asc()` and `array_sort_desc()` of an expression": _permit(
        "The language service expects the name of the first column in the expression. Microsoft's Kusto emulator "
        "returns `array0_sorted`, by the same measurements.",
        r"\barray_sort_(asc|desc)\(",
    ),
    "`iff()` and `case()` with values of different types": _permit(
        "The language service expects a dynamic, or the other type next to a dynamic. Data Explorer rejects different "
        "types (SEM0525), by the same measurements; the engine returns a dynamic next to a dynamic.",
        r"\b(iff|iif|case)\(",
        r"^$|values of types|must be the same type|mixed-types",
    ),
    "arithmetic with a dynamic": _permit(
        "The language service expects a type; by the documentation a dynamic must be converted first.",
        r"[-+*/%]",
        r"operator '.' does not accept operands of types \(.*dynamic",
    ),
    "arithmetic with datetimes and bools": _permit(
        "The language service accepts the sum and the product of two datetimes, and `-` before a datetime or a bool; "
        "by the documentation they have no such operators.",
        message=r"operator '.' does not accept operands of types \(.*(datetime|bool)",
    ),
    "`bin()`, `floor()`, `bin_at()`, `range()` and `around()` with types that do not fit": _permit(
        "The language service accepts a datetime as the size of a bin, and a mixture of numbers, datetimes and "
        "timespans; by the documentation the types of the arguments must fit.",
        r"\b(bin|bin_at|floor|range|around)\(",
        "(bin|bin_at|range).*an argument has a type that|does not accept operands|values of types",
    ),
    "`binary_all_and()`, `binary_all_or()` and `binary_all_xor()` of other types than whole numbers": _permit(
        "The language service also accepts reals, datetimes and timespans; by the documentation the type is long.",
        r"\bbinary_all_(and|or|xor)\(",
        "does not accept arguments of types",
    ),
    "the text of a literal": _permit(
        "The language service does not read the text in `datetime(...)`, `timespan(...)` and others; Data Explorer "
        "rejects a text that is no value of the type (SYN0002).",
        r"\b(datetime|timespan|guid)\(",
        r"SYN0002|this \w+ literal|is not a valid",
    ),
    "a `dynamic({...})` that contains a datetime, timespan or guid": _permit(
        "The engine computes such a literal when it runs the query, and does not know before that it is a bag.",
        r"dynamic\(.*(datetime|timespan|guid|now|\d[dhms])",
        "must be a dynamic",
    ),
    "`union kind=inner`": _permit(
        "The language service also lists columns that not all inputs have; Data Explorer returns the common columns.",
        "kind=inner",
    ),
}
"""Difference by construct."""

DIFFERENCES: Mapping[str, str] = {construct: difference.reason for construct, difference in KNOWN.items()}
"""Reason by construct; at most 40."""


def is_known(query: str, message: str) -> bool:
    """Return whether a difference is known: the query and the message of the side that rejects it match a pattern."""
    return any(each.query.search(query) and each.message.search(message) for each in KNOWN.values())
