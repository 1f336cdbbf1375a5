"""Time of every regular expression on the texts that are hardest for it, at 64 KiB and at twice that."""

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from bench.expression_rules import hard_texts
from bench.expressions import Expression, expressions
from bench.figures import Figure
from shared.catalog.kql_tokens import blank, tokens

LENGTH: Final = 65_536
MOST_RATIO: Final = 2.5
MOST_MILLISECONDS: Final = 50
_REPEATS: Final = 5
_ATTEMPTS: Final = 5
_LEAST_SECONDS: Final = 0.01
"""A call that is shorter at twice the length says nothing about its growth."""
_IN_PYTHON: Final = frozenset({"blank", "_count_tokens"})
"""Run in a worker thread and switch to others meanwhile: only their growth counts."""
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


def expression_times() -> Iterator[Figure]:
    """Measure the growth from 64 KiB to 128 KiB, and the longest time at 64 KiB."""
    ratios: dict[str, float] = {}
    longest: dict[str, float] = {}
    for name, work, make in _cases():
        short, ratio = _growth(work, make)
        if name not in _IN_PYTHON:
            longest[name] = max(longest.get(name, 0), short * 1000)
        ratios[name] = max(ratios.get(name, 0), ratio)
    worst = max(ratios, key=lambda name: ratios[name], default="")
    slowest = max(longest, key=lambda name: longest[name])
    detail = {"expressions": len(longest), "worst": worst, "slowest": slowest}
    yield Figure("expression_growth", ratios.get(worst, 1), "ratio", at_most=MOST_RATIO, detail=detail)
    yield Figure("expression_longest", longest[slowest], "ms", at_most=MOST_MILLISECONDS, detail=detail)


def _growth(work: Callable[[Any], object], make: Callable[[int], Any]) -> tuple[float, float]:
    """Return the seconds at the length, and how often that a text of twice the length takes.

    What takes too long is measured again: quadratic time stays, the work of other processes does not.
    """
    short_text, long_text = make(LENGTH), make(2 * LENGTH)
    short, ratio = float("inf"), float("inf")
    for _ in range(_ATTEMPTS):
        short, twice = min(short, _seconds(work, short_text)), _seconds(work, long_text)
        ratio = min(ratio, twice / short if twice > _LEAST_SECONDS else 1)
        if ratio <= MOST_RATIO:
            break
    return short, ratio


def _cases() -> Iterator[tuple[str, Callable[[Any], object], Callable[[int], Any]]]:
    for expression in expressions():
        if expression.pattern is not None:
            yield from _of_expression(expression)
    for unit in _KQL_UNITS:
        for work in (blank, _count_tokens):
            yield work.__name__, work, partial(_text, "", unit)


def _of_expression(expression: Expression) -> Iterator[tuple[str, Callable[[Any], object], Callable[[int], Any]]]:
    pattern: re.Pattern[Any] = re.compile(expression.pattern or "", expression.flags)
    work = pattern.fullmatch if expression.one_start else _searcher(pattern)
    for begin, unit in hard_texts(expression):
        yield expression.place, work, partial(_text, begin, unit, is_bytes=isinstance(expression.pattern, bytes))


def _count_tokens(text: str) -> int:
    return sum(1 for _ in tokens(text))


def _searcher(pattern: re.Pattern[Any]) -> Callable[[Any], object]:
    return lambda text: sum(1 for _ in pattern.finditer(text))


def _text(begin: str, unit: str, length: int, *, is_bytes: bool = False) -> str | bytes:
    text = (begin + unit * (length // len(unit) + 1))[: length - 1] + "\0"
    return text.encode("latin-1", "replace") if is_bytes else text


def _seconds(work: Callable[[Any], object], text: Any) -> float:
    """Return the shortest of some runs, in processor time: other processes then count least."""
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - started)
        if best > 1:
            break
    return best
