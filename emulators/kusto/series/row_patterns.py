"""Patterns of values that many rows share, for the KQL plugins ``basket``, ``autocluster`` and ``diffpatterns``.

A pattern has a value or a wildcard for each column. All patterns here are closed: replacing a wildcard by a value would
exclude some of the rows. A row is an array of codes for values; code 0 means null, which is never part of a pattern.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from emulators.kusto.python_functions import FunctionFailure
from emulators.kusto.series import SqlOutputs

MAX_PATTERNS = 20_000
"""Maximum number of patterns that are examined."""
MAX_EFFORT = 1_000_000_000
"""Maximum number of values that a search reads, about two seconds."""
_MAX_CLUSTERS = 10
_MOST_SHARED = 0.5
"""Maximum share of rows that two patterns of ``autocluster`` or ``diffpatterns`` have in common."""
_LEAST_SCORE = 0.5
_LEAST_CLUSTER = 0.05

type Codes = np.ndarray[Any, np.dtype[np.int64]]
type Weights = np.ndarray[Any, np.dtype[np.float64]]
type RowMask = np.ndarray[Any, np.dtype[np.bool_]]
type Pattern = tuple[int, ...]


class MatchedPattern(NamedTuple):
    """Pattern, and the mask of the rows that match it."""

    pattern: Pattern
    rows: RowMask


class _ScoredPattern(NamedTuple):
    """Pattern with its score, the number of matching rows in each set of rows, and the mask of the matching rows."""

    score: float
    counts: tuple[float, ...]
    pattern: Pattern
    rows: RowMask


def compute_basket_patterns(
    codes: Any, weights: Any, column_count: float, min_share: float, max_values: float
) -> SqlOutputs:
    """Return each pattern that at least a given share of all rows match, and the number of these rows.

    Args:
        codes: codes of the values in the first column of all rows, then in the second column, and so on.
        weights: number of input rows that each row represents.
        column_count: number of columns.
        min_share: minimum share of the rows.
        max_values: maximum number of values that define a pattern.
    """
    table = _reshape_codes_to_table(codes, column_count)
    if table is None:
        return None
    found = [
        (pattern, float(weights[mask].sum()))
        for pattern, mask in _iterate_closed_patterns(table, weights, min_share * weights.sum(), int(max_values))
    ]
    found.sort(key=lambda each: (-each[1] * _count_pattern_values(each[0]), each[0]))
    return _to_pattern_result([pattern for pattern, _ in found], [[count for _, count in found]])


def compute_cluster_patterns(codes: Any, weights: Any, column_count: float, size_weight: float) -> SqlOutputs:
    """Return a few patterns that cover many rows and contain many values.

    The score of a pattern is a weighted geometric mean of two shares: matching rows among all rows, and columns with a
    value among all columns. ``size_weight`` is the weight of the first share, from 0 to 1. `compute_basket_patterns`
    describes the other arguments.
    """
    table = _reshape_codes_to_table(codes, column_count)
    if table is None:
        return None
    total = weights.sum()
    scored = []
    for pattern, mask in _iterate_closed_patterns(table, weights, _LEAST_CLUSTER * total, int(column_count)):
        count = float(weights[mask].sum())
        score = (count / total) ** size_weight * (_count_pattern_values(pattern) / column_count) ** (1 - size_weight)
        scored.append(_ScoredPattern(float(score), (count,), pattern, mask))
    scored.sort(key=lambda each: (-each.score, each.pattern))
    chosen = _choose_distinct_patterns(scored, weights, _LEAST_SCORE * scored[0].score if scored else 0.0)
    return _to_pattern_result([each.pattern for each in chosen], [[each.counts[0] for each in chosen]])


def compute_difference_patterns(
    codes: Any, weights: Any, other_weights: Any, column_count: float, min_difference: float, max_values: float
) -> SqlOutputs:
    """Return patterns whose share of rows differs between two sets by at least a threshold, without near duplicates.

    Args:
        codes: codes of all rows, column by column.
        weights: number of times that each row occurs in the first set.
        other_weights: number of times that each row occurs in the second set.
        column_count: number of columns.
        min_difference: minimum difference of the shares.
        max_values: maximum number of values that define a pattern.
    """
    table = _reshape_codes_to_table(codes, column_count)
    if table is None or not weights.sum() or not other_weights.sum():
        return None
    # A pattern with this difference has at least this share of one of the sets.
    shares = np.maximum(weights / weights.sum(), other_weights / other_weights.sum())
    scored = []
    for pattern, mask in _iterate_closed_patterns(table, shares, min_difference, int(max_values)):
        first, second = float(weights[mask].sum()), float(other_weights[mask].sum())
        difference = abs(first / weights.sum() - second / other_weights.sum())
        if difference >= min_difference:
            scored.append(_ScoredPattern(float(difference), (first, second), pattern, mask))
    scored.sort(key=lambda each: (-each.score, each.pattern))
    chosen = _choose_distinct_patterns(scored, weights + other_weights, 0.0, len(scored))
    counts = [[each.counts[index] for each in chosen] for index in range(2)]
    return _to_pattern_result([each.pattern for each in chosen], counts)


def _reshape_codes_to_table(codes: Any, column_count: float) -> Codes | None:
    if codes is None or not len(codes):
        return None
    table: Codes = np.asarray(codes, dtype=np.int64).reshape(int(column_count), -1)
    return table


def _count_pattern_values(pattern: Pattern) -> int:
    return sum(code != 0 for code in pattern)


def _iterate_closed_patterns(
    table: Codes, weights: Weights, min_weight: float, max_values: int
) -> Iterator[MatchedPattern]:
    """Yield each closed pattern whose matching rows weigh at least ``min_weight``, with the mask of these rows.

    Raises:
        FunctionFailure: there are too many patterns.
    """
    seen: set[Pattern] = set()
    stack: list[tuple[RowMask, int, int]] = [(np.ones(table.shape[1], dtype=bool), 0, 0)]
    examined = read = 0
    while stack:
        mask, start, size = stack.pop()
        for column in range(start, len(table)):
            read += mask.size
            if read > MAX_EFFORT:
                raise FunctionFailure(
                    "EMB0001",
                    "a search for patterns in so many rows is not supported by the embedded query engine; "
                    "use fewer rows or columns",
                )
            totals = np.bincount(table[column][mask], weights=weights[mask])
            for code in np.flatnonzero(totals >= min_weight - 1e-9):
                examined += 1
                if examined > MAX_PATTERNS:
                    raise FunctionFailure(
                        "EMB0001",
                        f"a search for patterns among more than {MAX_PATTERNS} candidates is not supported by the "
                        "embedded query engine; use fewer columns",
                    )
                if code == 0:
                    continue
                chosen = mask & (table[column] == code)
                pattern = _find_closed_pattern(table, chosen)
                if pattern not in seen:
                    seen.add(pattern)
                    yield MatchedPattern(pattern, chosen)
                if size + 1 < max_values:
                    stack.append((chosen, column + 1, size + 1))


def _find_closed_pattern(table: Codes, mask: RowMask) -> Pattern:
    """Return the closed pattern of the rows in ``mask``, which contains all values that these rows share."""
    rows = table[:, mask]
    first = rows[:, 0]
    same = (rows == first[:, None]).all(axis=1)
    return tuple(int(code) if is_same else 0 for code, is_same in zip(first, same, strict=True))


def _choose_distinct_patterns(
    scored: Sequence[_ScoredPattern],
    weights: Weights,
    min_score: float,
    max_patterns: int = _MAX_CLUSTERS,
) -> list[_ScoredPattern]:
    """Return the best patterns, without patterns that share most of their rows with a better pattern."""
    chosen: list[_ScoredPattern] = []
    for each in scored:
        if each.score < min_score or len(chosen) == max_patterns:
            break
        if all(_compute_shared_row_share(each.rows, other.rows, weights) <= _MOST_SHARED for other in chosen):
            chosen.append(each)
    return chosen


def _compute_shared_row_share(left: RowMask, right: RowMask, weights: Weights) -> float:
    """Return the share of the rows in both masks among the rows in at least one mask, by weight."""
    return float(weights[left & right].sum() / weights[left | right].sum())


def _to_pattern_result(patterns: Sequence[Pattern], counts: Sequence[Sequence[float]]) -> Mapping[str, Any]:
    flat = [code for pattern in patterns for code in pattern]
    return {"patterns": flat} | {f"counts{index}": list(each) for index, each in enumerate(counts)}
