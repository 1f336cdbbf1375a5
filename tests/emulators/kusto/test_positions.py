"""Tests of positions of errors in the query text, and of the search for calls."""

import pytest

from emulators.kusto.errors import semantic_error, unresolved_name_error, unsupported_error
from emulators.kusto.positions import find_and_add_position, has_call_of_any_function
from tests.emulators.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    ("text", "subject", "position"),
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
def test_error_positions_ignore_strings_and_comments(text: str, subject: str, position: tuple[int, int] | None) -> None:
    """An error is positioned at the first use of the name outside of strings and comments."""
    assert find_and_add_position(semantic_error("x", subject=subject), text).position == position


def test_errors_with_a_position_keep_this_position(endpoint: Endpoint) -> None:
    """An error that already has a position is unchanged; an error about a name outside of the query gets none."""
    assert find_and_add_position(unsupported_error("a", position=(7, 7)), "a").position == (7, 7)
    assert find_and_add_position(unresolved_name_error("zz"), "T | where a").position is None


@pytest.mark.parametrize("text", ["print f(1)", "print f // comment\n (1)", "print 'it', f(1)"])
def test_a_name_before_a_bracket_is_a_call(text: str) -> None:
    """A name before an opening bracket is found as a call, even with a comment between name and bracket."""
    assert has_call_of_any_function(text, {"f"})


@pytest.mark.parametrize("text", ["print f", "print 'f(1)', @'f(1)', ```f(1)```", "print 1 // f(1)", "print ff(1)"])
def test_calls_are_not_found_in_strings_and_comments(text: str) -> None:
    """A call inside a comment or string is not found as a call, and neither is a name without a bracket."""
    assert not has_call_of_any_function(text, {"f"})
