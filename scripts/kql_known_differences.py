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
        r"(extend|project|by|distinct|,) *(pow|exp10|sign|cot|degrees|radians)\(",
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
