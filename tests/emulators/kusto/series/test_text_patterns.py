"""Tests of the patterns of similar texts."""

from collections.abc import Sequence

from emulators.kusto.series.text_patterns import OTHERS, compute_text_patterns
from tests.emulators.kusto.series.outputs import require_outputs


def _find_patterns(
    texts: Sequence[str], counts: Sequence[float] | None = None, threshold: float = 0.5, characters: str | None = None
) -> list[str]:
    found = compute_text_patterns(texts, counts or [1] * len(texts), threshold, characters)
    patterns: list[str] = require_outputs(found)["patterns"]
    return patterns


def test_words_in_which_similar_texts_differ_become_wildcards() -> None:
    """Words in which similar texts differ become a wildcard; other words and separators stay."""
    assert _find_patterns(["pump a: on", "pump b: on", "pump c: on"]) == ["pump *: on"] * 3


def test_equal_words_at_different_positions_count_as_different_words() -> None:
    """Equal words at different positions count as different words."""
    assert _find_patterns(["a pump", "pump b", "c d"]) == [OTHERS] * 3


def test_a_frequent_text_has_its_own_pattern() -> None:
    """A text that is frequent enough has its own pattern; all rare texts have the pattern ``others``."""
    assert _find_patterns(["pump on", "valve shut", "fan"], [6, 2, 2]) == ["pump on", OTHERS, OTHERS]


def test_a_pattern_needs_at_least_two_occurrences() -> None:
    """A pattern needs at least two occurrences, whatever the threshold is."""
    assert _find_patterns(["pump on", "valve shut"], threshold=0.001) == [OTHERS, OTHERS]


def test_words_of_digits_become_wildcards() -> None:
    """A word of digits becomes a wildcard, also if it is frequent; a pattern of wildcards becomes ``others``."""
    assert _find_patterns(["pump 7", "pump 7"]) == ["pump *"] * 2
    assert _find_patterns(["7", "7"]) == [OTHERS] * 2


def test_separators_that_a_query_names_are_shown_only_between_words() -> None:
    """Separators that the query names are shown only between words; adjacent wildcards become one."""
    texts = ["aXbXcXdXe", "aXbXfXgXh"]
    assert _find_patterns(texts, characters="X") == ["aXb*"] * 2


def test_a_text_may_start_and_end_with_a_separator() -> None:
    """A separator at the start or end of a text counts as next to an empty word."""
    assert _find_patterns(["XaX", "XaX"], characters="X") == ["XaX"] * 2
    assert _find_patterns(["", ""], characters="X") == [""] * 2


def test_null_texts_have_no_patterns() -> None:
    """If the texts or their numbers of occurrences are null, the list of patterns is null."""
    assert compute_text_patterns(None, [1], None, None) is None
    assert compute_text_patterns(["a"], None, None, None) is None
