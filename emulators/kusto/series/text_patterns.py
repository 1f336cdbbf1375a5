"""Patterns of similar texts for the KQL operator ``reduce``.

The method is SLCT: a word that is frequent at its position is constant; all other words are variable. Texts with the
same constant words have the same pattern.
"""

import collections
import itertools
import re
from collections.abc import Sequence

from emulators.kusto.series import SqlOutputs

OTHERS = "others"
"""Pattern of the texts that are similar to too few others."""
_WILDCARD = "*"
_LEAST_COUNT = 2
_DEFAULT_THRESHOLD = 0.1
_NOT_IN_WORDS = re.compile(r"([^0-9A-Za-z]+)")

type PatternWords = tuple[str, ...]
"""Words of a pattern in order; a wildcard represents a variable word."""

type IndexAndWord = tuple[int, str]
"""Index of a word in a text, and the word."""


def compute_text_patterns(
    texts: Sequence[str] | None, counts: Sequence[float] | None, min_share: float | None, separators: str | None
) -> SqlOutputs:
    """Group similar texts; return ``{"patterns": [...]}`` with the pattern of each text, in the order of ``texts``.

    Return None if ``texts`` or ``counts`` is None (null in SQL).

    Args:
        texts: distinct texts.
        counts: number of occurrences of each text.
        min_share: minimum share (0 to 1) of all occurrences. A rarer word becomes a wildcard, and the texts of a rarer
            pattern get the pattern :data:`OTHERS`. None for the default.
        separators: characters between the words; None for all except ASCII letters and digits.
    """
    if texts is None or counts is None:
        return None
    parts = [_split_words_and_separators(text, separators) for text in texts]
    least = max(_LEAST_COUNT, (_DEFAULT_THRESHOLD if min_share is None else min_share) * sum(counts))
    frequent = _find_frequent_words(parts, counts, least)
    keys = [_replace_rare_words_by_wildcard(each, frequent) for each in parts]
    totals: dict[PatternWords, float] = collections.defaultdict(float)
    for key, count in zip(keys, counts, strict=True):
        totals[key] += count
    return {
        "patterns": [
            _format_pattern(each, key, keeps_separators=not separators)
            if totals[key] >= least and any(word != _WILDCARD for word in key)
            else OTHERS
            for each, key in zip(parts, keys, strict=True)
        ]
    }


def _split_words_and_separators(text: str, separators: str | None) -> list[str]:
    """Split a text into words alternating with separators; the first and last word may be empty."""
    if not separators:
        return _NOT_IN_WORDS.split(text)
    runs = [(is_word, "".join(run)) for is_word, run in itertools.groupby(text, lambda each: each not in separators)]
    parts = [run for _, run in runs]
    if not runs or not runs[0][0]:
        parts.insert(0, "")
    if runs and not runs[-1][0]:
        parts.append("")
    return parts


def _find_frequent_words(
    parts: Sequence[Sequence[str]], counts: Sequence[float], min_count: float
) -> set[IndexAndWord]:
    totals: dict[IndexAndWord, float] = collections.defaultdict(float)
    for each, count in zip(parts, counts, strict=True):
        for index, word in enumerate(each[::2]):
            totals[index, word] += count
    return {place for place, total in totals.items() if total >= min_count and not place[1].isdigit()}


def _replace_rare_words_by_wildcard(parts: Sequence[str], frequent_words: set[IndexAndWord]) -> PatternWords:
    return tuple(word if (index, word) in frequent_words else _WILDCARD for index, word in enumerate(parts[::2]))


def _format_pattern(parts: Sequence[str], pattern_words: PatternWords, *, keeps_separators: bool) -> str:
    """Return the text of a pattern: the words and wildcards in ``pattern_words``, with the separators in ``parts``.

    ``keeps_separators`` is False if the query defines the separators. Separators next to a wildcard are then omitted.
    """
    pattern = pattern_words[0]
    for before, word, separator in zip(pattern_words[:-1], pattern_words[1:], parts[1::2], strict=True):
        if keeps_separators or _WILDCARD not in (before, word):
            pattern += separator + word
        elif not (before == _WILDCARD and word == _WILDCARD):
            pattern += word
    return pattern
