"""Differences between the local query engine and Microsoft's KQL language service that the tests accept.

Each difference has a pattern for the query, and a pattern for the engine's error message or for the differing columns.
If a query and its error message or columns match these patterns, the tests do not count the difference as a failure. If
the engine accepts a query that the language service rejects, the tests always fail.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """Accepted difference between the local query engine and Microsoft's KQL language service.

    Attributes:
        reason: explanation, which the reference page kql-language.md contains.
        query: pattern of the queries to which the difference applies.
        rejected: pattern of the error that the engine reports; None if the engine accepts the queries.
        columns: pattern of the description of a differing column; None if the columns must agree. The description
            ``x:int -> x:long`` states that the language service determines the type int, and the engine long; ``none``
            stands for a missing column.
    """

    reason: str
    query: re.Pattern[str]
    rejected: re.Pattern[str] | None
    columns: re.Pattern[str] | None


def _build_difference(
    reason: str, query_pattern: str = "", rejected_pattern: str | None = None, columns_pattern: str | None = None
) -> KnownDifference:
    return KnownDifference(
        reason,
        re.compile(query_pattern),
        None if rejected_pattern is None else re.compile(rejected_pattern),
        None if columns_pattern is None else re.compile(columns_pattern),
    )


KNOWN: Mapping[str, KnownDifference] = {
    "`row_number()`, `prev()` and others without `serialize`": _build_difference(
        "The language service does not check that rows are in order; Data Explorer and the engine do.",
        r"\b(row_\w+|prev|next)\w*\(",
        rejected_pattern="cannot be invoked in current context",
    ),
    '`long == "text"`': _build_difference(
        "The language service accepts the comparison of a number or bool with a text; Data Explorer and the engine "
        "reject it.",
        rejected_pattern=(
            r"SEM0064.* types (string and (int|long|real|decimal|bool)|(int|long|real|decimal|bool) and string)\b"
        ),
    ),
    "time zones": _build_difference(
        "The engine rejects an unknown time zone when it runs the query; the language service does not know the zones.",
        r"datetime_(utc_to_local|local_to_utc)\(",
        rejected_pattern="Unknown TimeZone",
    ),
    "`assert(condition, message)`": _build_difference(
        "The message must be a literal in the engine; the language service also accepts constant expressions.",
        r"\bassert\(",
        rejected_pattern=r"assert\(\): the message must be|assert\(\) has failed",
    ),
    "regex that is not a literal": _build_difference(
        "The engine accepts literal regular expressions and group numbers only, which it checks when it translates.",
        r"\b(extract|extract_all|trim\w*|replace_regex|matches)\b",
        rejected_pattern="must be a constan|regex",
    ),
    "values of arguments": _build_difference(
        "The engine checks the value of an argument, such as the name of a kind; the language service checks its type.",
        rejected_pattern="the argument .* must be|must be from|must be one of|must be a positive|must be at|between",
    ),
    "values during execution": _build_difference(
        "An overflow and a failed conversion are errors of the run; the language service does not run queries.",
        rejected_pattern="EMB0004|InvalidInput|OverflowError",
    ),
    "a column `pow()`, `exp10()`, `sign()`, `cot()`, `degrees()` or `radians()` without a name": _build_difference(
        "The language service gives it the name of the argument. Microsoft's Kusto emulator gives it a number, such as "
        "`Column1`, by measurements of the translator library's authors.",
        r"\b(pow|exp10|sign|cot|degrees|radians)\(",
        columns_pattern=r"(\w+) -> Column\d+:\w+|none -> Column\d+:\w+",
    ),
    "`round()` of whole numbers and decimals": _build_difference(
        "The language service expects the type of the argument. Microsoft's Kusto emulator returns a real, by the same "
        "measurements.",
        r"\bround\(",
        columns_pattern=r"(\w+):(int|long|decimal|dynamic) -> \1:real",
    ),
    "`jaccard_index()`": _build_difference(
        "The language service expects an array; by its documentation the function returns a real.",
        r"\bjaccard_index\(",
        columns_pattern=r"(\w+):dynamic -> \1:real",
    ),
    "`countif()` without a name": _build_difference(
        "The language service adds the name of a column to `countif_`. Microsoft's Kusto emulator does not, by the "
        "same measurements.",
        r"\bcountif\(",
        columns_pattern=r"countif_\w*:long -> countif_\d*:long",
    ),
    "`array_sort_asc()` and `array_sort_desc()` of a path or call, without a name": _build_difference(
        "The language service makes a name such as `J_a_sorted` from `J.a`, and `S_sorted` from `todynamic(S)`. "
        "Microsoft's Kusto emulator returns `array0_sorted`, by the same measurements.",
        r"\barray_sort_(asc|desc)\(",
        columns_pattern=r"\w+_sorted\d*:dynamic -> array\d+_sorted\d*:dynamic",
    ),
    "`iff()` and `case()` with values of different types": _build_difference(
        "The language service expects a dynamic. Data Explorer rejects different types (SEM0525), by the same "
        "measurements; so does the engine, except that numbers of all types fit each other.",
        r"\b(iff|iif|case)\(",
        rejected_pattern=r"SEM0525.*\b(iff|iif|case)\(\)|values of types .* cannot be compared or combined",
    ),
    "`iff()` and `case()` with a dynamic next to another type": _build_difference(
        "The language service expects the other type. The result of the engine is a dynamic, which can hold both.",
        r"\b(iff|iif|case)\(",
        columns_pattern=r"(\w+):\w+ -> \1:dynamic",
    ),
    "arithmetic with a dynamic": _build_difference(
        "The language service expects a type; by the documentation a dynamic must be converted first.",
        r"[-+*/%]",
        rejected_pattern=r"operator '.' does not accept operands of (types \(.*dynamic|these types)",
    ),
    "arithmetic with datetimes": _build_difference(
        "The language service accepts the sum of two datetimes, and `-` before a datetime; by the documentation they "
        "have no such operators.",
        rejected_pattern=r"operator '[-+]' does not accept operands of types \((datetime|datetime, datetime)\)",
    ),
    "`bin()`, `floor()`, `bin_at()`, `range()` and `around()` with types that do not fit": _build_difference(
        "The language service accepts a datetime as the size of a bin, and a mixture of numbers, datetimes and "
        "timespans; by the documentation the types of the arguments must fit.",
        r"\b(bin|bin_at|floor|range|around)\(",
        rejected_pattern="(bin|bin_at|range).*an argument has a type that|does not accept operands|values of types",
    ),
    "`binary_all_and()`, `binary_all_or()` and `binary_all_xor()` of other types than whole numbers": _build_difference(
        "The language service also accepts reals, datetimes and timespans; by the documentation the type is long.",
        r"\bbinary_all_(and|or|xor)\(",
        rejected_pattern="does not accept arguments of types",
    ),
    "the text of a literal": _build_difference(
        "The language service does not read the text in `datetime(...)`, `timespan(...)`, `decimal(...)` and others; "
        "Data Explorer rejects a text that is no value of the type (SYN0002).",
        r"\b(datetime|timespan|guid|decimal)\(",
        rejected_pattern=r"SYN0002|this \w+ literal|is not a valid",
    ),
    "`union kind=inner`": _build_difference(
        "The language service also lists columns that not all inputs have; Data Explorer returns the common columns.",
        "kind=inner",
        columns_pattern="",
    ),
}
"""Accepted differences, by the KQL construct to which they apply, in Markdown."""

DIFFERENCES: Mapping[str, str] = {construct: difference.reason for construct, difference in KNOWN.items()}
"""Reason of each accepted difference, by KQL construct; a test permits at most 40 differences."""


def is_rejection_known(query: str, message: str) -> bool:
    """Return whether a known difference allows the engine to reject a query that the language service accepts."""
    return any(each.query.search(query) and each.rejected and each.rejected.search(message) for each in KNOWN.values())


def is_column_difference_known(
    query: str, service_columns: Iterable[Iterable[str]], engine_columns: Iterable[Iterable[str]]
) -> bool:
    """Return whether a known difference allows that the engine's result columns differ from the language service's.

    Args:
        query: text of the query.
        service_columns: name and type of each result column, as the language service determines them.
        engine_columns: name and type of each result column, as the engine determines them.
    """
    pairs = [
        f"{':'.join(left)} -> {':'.join(right)}"
        for left, right in zip_longest(service_columns, engine_columns, fillvalue=("none",))
        if list(left) != list(right)
    ]
    patterns = [each.columns for each in KNOWN.values() if each.columns is not None and each.query.search(query)]
    return all(any(pattern.search(pair) for pattern in patterns) for pair in pairs)
