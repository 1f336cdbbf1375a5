"""Benchmark: time that each regular expression of the source code needs for its slowest texts of 64 and 128 KiB."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from bench.expression_rules import build_slow_text_parts
from bench.expressions import Expression, find_expressions
from bench.figures import Figure
from shared.catalog.kql_tokens import mask_literals, tokenize

LENGTH: Final = 65_536
MOST_RATIO: Final = 2.5
MOST_MILLISECONDS: Final = 50
_REPEATS: Final = 5
_ATTEMPTS: Final = 5
_LEAST_SECONDS: Final = 0.01
"""If a call on the longer text takes less time, it is too short to measure the growth."""
type _FindMatches = Callable[[Any], Iterator[object]]
"""Searches a text and yields after each match or token; other threads can run between two of these steps."""

_KQL_UNITS: Final = (
    '"\\',
    "'\\",
    '"',
    "'",
    '@"',
    "@'",
    '@""',
    "```",
    "~~~",
    "`",
    '"\n',
    "// ",
    "union ",
    "let ",
    "(",
    ";",
)


def measure_expression_times() -> Iterator[Figure]:
    """Measure the regular expressions of the service on their slowest texts.

    Yield two figures: the factor by which the time grows from 64 KiB to 128 KiB of text (about 2 if linear), and at 64
    KiB the longest time for which one match stops all other threads.
    """
    ratios: dict[str, float] = {}
    longest: dict[str, float] = {}
    for name, find_matches, build_text in _iterate_searches_with_slow_texts():
        ratios[name] = max(ratios.get(name, 0), _measure_time_growth_factor(find_matches, build_text))
        longest[name] = max(
            longest.get(name, 0), _measure_longest_step_seconds(find_matches, build_text(LENGTH)) * 1000
        )
    worst = max(ratios, key=lambda name: ratios[name], default="")
    slowest = max(longest, key=lambda name: longest[name])
    detail = {"expressions": len(longest), "worst": worst, "slowest": slowest}
    yield Figure("expression_growth", ratios.get(worst, 1), "ratio", at_most=MOST_RATIO, detail=detail)
    yield Figure("expression_longest", longest[slowest], "ms", at_most=MOST_MILLISECONDS, detail=detail)


def _measure_time_growth_factor(find_matches: _FindMatches, build_text: Callable[[int], Any]) -> float:
    """Return the factor by which an expression's time grows when its text becomes twice as long.

    Both texts are measured alternately, so that a change of the processor's speed affects both. A large factor is
    measured again: it remains large if the time is quadratic, but not if another process was the cause.
    """
    short_text, long_text = build_text(LENGTH), build_text(2 * LENGTH)
    ratio = float("inf")
    for _ in range(_ATTEMPTS):
        short, twice = _measure_cpu_seconds(find_matches, short_text), _measure_cpu_seconds(find_matches, long_text)
        ratio = min(ratio, twice / short if twice > _LEAST_SECONDS else 1)
        if ratio <= MOST_RATIO:
            break
    return ratio


def _measure_longest_step_seconds(find_matches: _FindMatches, text: Any) -> float:
    """Return the longest CPU time in seconds between two matches, during which other threads wait.

    The text is searched several times; the run with the smallest result counts.
    """
    best = float("inf")
    for _ in range(_REPEATS):
        longest, begun = 0.0, time.thread_time()
        for _ in find_matches(text):
            now = time.thread_time()
            longest, begun = max(longest, now - begun), now
        best = min(best, max(longest, time.thread_time() - begun))
    return best


class _SlowSearch(NamedTuple):
    """Search whose time is measured.

    Attributes:
        name: name of the search, such as the file and line of a regular expression.
        find_matches: function that yields the matches in a text.
        build_text: function that builds a text of a given length on which the search is slow.
    """

    name: str
    find_matches: _FindMatches
    build_text: Callable[[int], Any]


def _iterate_searches_with_slow_texts() -> Iterator[_SlowSearch]:
    for expression in find_expressions():
        if expression.pattern is not None:
            yield from _iterate_searches_of_expression(expression)
    for unit in _KQL_UNITS:
        # Only the growth of `blank` is checked: it is Python code, which lets other threads run.
        build_text = partial(_build_repeating_text, "", unit)
        yield _SlowSearch("blank", lambda text: (mask_literals(text) for _ in range(1)), build_text)
        yield _SlowSearch("tokens", tokenize, build_text)


def _iterate_searches_of_expression(expression: Expression) -> Iterator[_SlowSearch]:
    pattern: re.Pattern[Any] = re.compile(expression.pattern or "", expression.flags)
    find_matches: _FindMatches = (
        partial(_yield_result_of_full_match, pattern) if expression.is_anchored else pattern.finditer
    )
    for begin, unit in build_slow_text_parts(expression):
        yield _SlowSearch(
            expression.place,
            find_matches,
            partial(_build_repeating_text, begin, unit, is_bytes=isinstance(expression.pattern, bytes)),
        )


def _yield_result_of_full_match(pattern: re.Pattern[Any], text: Any) -> Iterator[object]:
    """Match the whole text once and yield the result, so that callers can treat the match like a search."""
    yield pattern.fullmatch(text)


def _build_repeating_text(prefix: str, unit: str, length: int, *, is_bytes: bool = False) -> str | bytes:
    """Return a text of ``length`` characters: the prefix, many copies of ``unit``, and a NUL character at the end."""
    text = (prefix + unit * (length // len(unit) + 1))[: length - 1] + "\0"
    return text.encode("latin-1", "replace") if is_bytes else text


def _measure_cpu_seconds(find_matches: _FindMatches, text: Any) -> float:
    """Return the CPU time of the fastest of several runs, because other processes affect the fastest run least."""
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.thread_time()
        deque(find_matches(text), maxlen=0)
        best = min(best, time.thread_time() - started)
        if best > 1:
            break
    return best
