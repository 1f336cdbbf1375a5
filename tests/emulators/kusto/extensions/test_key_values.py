"""Tests of the parser of key-value texts."""

import pytest

from emulators.kusto.extensions.key_values import KeyValueReader


@pytest.mark.parametrize("text", ["", "=", "a", "a=", '"', 'a="x', 'a="x\\', "  = ,", "a==b,,", "a=1" * 5000])
def test_any_text_ends(text: str) -> None:
    """The parser ends for every text, even with a quote that is not closed."""
    reader = KeyValueReader(text, ("a",), ",", "=", {'"': '"'}, "\\", greedy=False)
    assert set(reader.read()) <= {"a"}
    assert set(KeyValueReader(text, ("a",), "", "", {'"': '"'}, "", greedy=False).read()) <= {"a"}
