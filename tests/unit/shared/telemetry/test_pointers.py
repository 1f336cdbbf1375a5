"""Tests of JSON pointers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.pointers import format_pointer, parse_pointer, remove_at_pointer, resolve_pointer

# The example document of RFC 6901 section 5.
DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_json_pointers_of_the_rfc_find_their_values(pointer: str, value: object) -> None:
    """Each example of RFC 6901 section 5 returns its value."""
    assert resolve_pointer(DOCUMENT, parse_pointer(pointer)) == value


@pytest.mark.parametrize("pointer", ["/foo/2", "/foo/-", "/foo/00", "/foo/٣", "/foo/-1", "/nothing", "/foo/0/x", "//a"])
def test_pointers_to_missing_values_give_none(pointer: str) -> None:
    """A pointer to a missing property, an index out of range, or a property of a scalar returns None."""
    missing = object()
    assert resolve_pointer(DOCUMENT, parse_pointer(pointer)) is None
    assert resolve_pointer(DOCUMENT, parse_pointer(pointer), missing) is missing


@pytest.mark.parametrize("pointer", ["foo", "/~", "/~2", "/a~"])
def test_malformed_pointers_are_rejected(pointer: str) -> None:
    """A text that is not a JSON pointer raises a ValueError."""
    with pytest.raises(ValueError, match="JSON pointer"):
        parse_pointer(pointer)


def _escape_token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


@given(st.lists(st.text(), min_size=1), st.integers(), st.dictionaries(st.text(), st.integers()))
def test_any_property_is_found_and_removed(names: list[str], value: int, others: dict[str, int]) -> None:
    """A pointer finds a property with any name; removing this property does not change other properties."""
    inner: dict[str, Any] = {**others, names[-1]: value}
    document = inner
    for name in reversed(names[:-1]):
        document = {name: document}
    pointer = parse_pointer("".join(f"/{_escape_token(name)}" for name in names))
    assert parse_pointer(format_pointer(pointer)) == pointer
    assert resolve_pointer(document, pointer) == value
    remove_at_pointer(document, pointer)
    others.pop(names[-1], None)
    assert inner == others
    remove_at_pointer(document, pointer)
    assert inner == others


def test_array_elements_are_not_removed() -> None:
    """An array element is not removed, because the following elements would move."""
    document = {"a": [1, 2]}
    remove_at_pointer(document, ("a", "0"))
    assert document == {"a": [1, 2]}
