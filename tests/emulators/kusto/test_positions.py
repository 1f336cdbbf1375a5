"""Tests of the positions of errors in the query text."""

import pytest

from emulators.kusto.errors import semantic_error, unresolved_name_error, unsupported_error
from emulators.kusto.positions import add_position
from tests.emulators.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    ("text", "subject", "place"),
    [
        ("T | extend a = b.a | where a", "a", (1, 28)),
        ("T | where f == f(1)", "f()", (1, 16)),
        ("T // a\n| where 'a' == a", "a", (2, 16)),
        ("T | where 'it\\'s a' == a", "a", (1, 24)),
        ("T | where @'a\\' == a", "a", (1, 20)),
        ("T | where ```\na\n``` == a", "a", (3, 8)),
        ("T | extend a = 1", "a", (1, 12)),
        ("T | where x", "a", None),
    ],
)
def test_positions_ignore_strings_and_comments(text: str, subject: str, place: tuple[int, int] | None) -> None:
    """The position of an error is the first use of the name outside strings and comments."""
    assert add_position(semantic_error("x", subject=subject), text).position == place


def test_known_positions_are_unchanged(endpoint: Endpoint) -> None:
    """An error that has a position keeps it; an error about an unknown name gets none."""
    assert add_position(unsupported_error("a", position=(7, 7)), "a").position == (7, 7)
    assert add_position(unresolved_name_error("zz"), "T | where a").position is None
