"""Column names with wildcards."""

import re

from hypothesis import given
from hypothesis import strategies as st

from emulators.kusto.extensions.tabular import ColumnPattern

NAMES = st.text(alphabet="ab", max_size=12)


@given(NAMES, st.lists(st.text(alphabet="ab", max_size=3), min_size=2, max_size=5))
def test_a_wildcard_stands_for_any_characters(name: str, parts: list[str]) -> None:
    """A name fits a pattern exactly where the regular expression of the pattern matches it."""
    fits = re.fullmatch(".*".join(parts), name) is not None
    assert ColumnPattern("*".join(parts)).matches([name]) == [name] * fits


def test_many_wildcards_do_not_multiply() -> None:
    """A pattern of many wildcards is refused by a long name at once."""
    assert ColumnPattern("*a" * 200 + "*b").matches(["a" * 1_000]) == []
