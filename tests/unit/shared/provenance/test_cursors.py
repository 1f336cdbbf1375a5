"""Tests of the cursors of lists."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.provenance.cursors import ListCursor, decode_cursor, encode_cursor

PLACE: list[str | int] = ["line-1", 7]
TYPES = (str, int)
CURSOR = ListCursor("list", (str,), str, ("state",))


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


def test_a_list_cursor_is_decoded_to_the_last_item_of_its_page() -> None:
    """A cursor of a list is decoded to the last item of its page; the first page has no cursor."""
    assert CURSOR.decode(None, "open") is None
    assert CURSOR.decode(CURSOR.encode("open", ["a"]), "open") == "a"


@pytest.mark.parametrize(
    ("cursor", "rule"),
    [("x", "does not belong to this list"), (CURSOR.encode("open", ["a"]), "belongs to a list with other filters")],
)
def test_a_list_cursor_of_another_list_is_rejected(cursor: str, rule: str) -> None:
    """A cursor of another list, or of the same list with other filters, is rejected."""
    faults = ValidationErrors()
    CURSOR.add_cursor_error_if_invalid(faults, cursor, "closed")
    with pytest.raises(WorkspaceError, match=rule) as collected:
        faults.raise_all()
    with pytest.raises(WorkspaceError, match=rule) as raised:
        CURSOR.decode(cursor, "closed")
    assert collected.value.members == raised.value.members


@pytest.mark.parametrize(
    ("invalid_field", "cursor", "fields"),
    [
        ("limit", "x", ["limit", "cursor"]),
        ("state", "x", ["state", "cursor"]),
        ("state", CURSOR.encode("open", ["a"]), ["state"]),
        ("cursor", "x", ["cursor"]),
        ("limit", None, ["limit"]),
    ],
)
def test_a_list_cursor_is_compared_with_valid_filters_only(
    invalid_field: str, cursor: str | None, fields: list[str]
) -> None:
    """An invalid cursor is added to other errors; a cursor is compared with the filters only if all are valid."""
    faults = ValidationErrors()
    faults.add(build_invalid_field_error(invalid_field, "is invalid"))
    CURSOR.add_cursor_error_if_invalid(faults, cursor, "")
    with pytest.raises(WorkspaceError) as caught:
        faults.raise_all()
    assert [error["field"] for error in caught.value.members["errors"]] == fields  # type: ignore[attr-defined]
