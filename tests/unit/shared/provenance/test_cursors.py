"""Tests of the cursors of lists."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.provenance.cursors import decode_cursor, encode_cursor

PLACE: list[str | int] = ["line-1", 7]
TYPES = (str, int)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers())
def test_a_cursor_is_decoded_to_its_position(text: str, number: int) -> None:
    """Decoding a cursor returns the position that was encoded, for any text and number."""
    assert decode_cursor("list", encode_cursor("list", [text, number]), TYPES) == [text, number]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "?",
        "ü",
        encode_cursor("other", PLACE),
        encode_cursor("list", PLACE[:1]),
        encode_cursor("list", [*PLACE, 1]),
        encode_cursor("list", PLACE[::-1]),
        encode_cursor("list", ["line-1", True]),
        base64.urlsafe_b64encode(b'["list","\\ud800",7]').decode().rstrip("="),
        base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("="),
    ],
)
def test_texts_that_are_no_cursor_of_the_list_are_rejected(cursor: str) -> None:
    """A text is rejected unless it is a cursor of the same list with values of the right types."""
    with pytest.raises(ValueError, match="does not belong to this list"):
        decode_cursor("list", cursor, TYPES)
