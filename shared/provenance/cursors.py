"""Cursors of paged lists: opaque texts with which clients request the next page."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.errors import ValidationErrors, build_invalid_field_error


def encode_cursor(list_name: str, position_values: Sequence[str | int]) -> str:
    """Return the cursor for the page that begins after a certain item of a list.

    Args:
        list_name: name of the list, so that other lists reject the cursor.
        position_values: texts and integers that identify the last item of the page.
    """
    return (
        base64.urlsafe_b64encode(json.dumps([list_name, *position_values], ensure_ascii=False).encode())
        .decode()
        .rstrip("=")
    )


def decode_cursor(list_name: str, cursor: str, types: Sequence[type]) -> list[str | int]:
    """Decode a cursor; return its values, which identify the last item of the previous page.

    Args:
        list_name: name of the list.
        cursor: cursor that a client sent.
        types: expected type of each value.

    Raises:
        ValueError: the cursor does not belong to this list.
    """
    message = "the cursor does not belong to this list"
    try:
        value = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise ValueError(message) from None
    if not isinstance(value, list) or value[:1] != [list_name] or [type(one) for one in value[1:]] != list(types):
        raise ValueError(message)
    # A lone surrogate cannot be stored, so no place contains one.
    if any(isinstance(one, str) and not _is_valid_unicode(one) for one in value):
        raise ValueError(message)
    return value[1:]


def _is_valid_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ListCursor[Place]:
    """Cursor of a list that query parameters filter; it is valid only for its list and for the same filters.

    Attributes:
        name: name of the list.
        types: types of the values that identify the last item of a page.
        to_place: converts these values to a position in the list; raises ValueError if they identify no position.
        filter_names: names of the query parameters that filter the list.
    """

    name: str
    types: tuple[type, ...]
    to_place: Callable[..., Place]
    filter_names: tuple[str, ...]

    def encode(self, filters: str, position_values: Sequence[str | int]) -> str:
        """Return the cursor for the page that begins after a certain item of the list.

        Args:
            filters: values of the filters as one text.
            position_values: texts and integers that identify the last item of the page.
        """
        return encode_cursor(self.name, (filters, *position_values))

    def decode(self, cursor: str | None, filters: str) -> Place | None:
        """Return the position of the previous page's last item; None for the first page, which has no cursor.

        Args:
            cursor: cursor that a client sent.
            filters: values of the filters as one text.

        Raises:
            WorkspaceError: INVALID if the cursor belongs to another list, or to a list with other filters.
        """
        if cursor is None:
            return None
        stored_filters, place = self._decode_filters_and_place(cursor)
        _require_same_filters(stored_filters, filters)
        return place

    def add_cursor_error_if_invalid(self, faults: ValidationErrors, cursor: str | None, filters: str) -> None:
        """Add the error of an invalid cursor to the errors of its request; do nothing for a valid cursor.

        The cursor is compared with the filters only if the request's filters are valid.

        Args:
            faults: errors of the request, to which the error is added.
            cursor: cursor that a client sent.
            filters: values of the filters as one text.
        """
        if cursor is None or not faults.has_valid_fields("cursor"):
            return
        with faults.collect_raised_error():
            stored_filters, _ = self._decode_filters_and_place(cursor)
            if faults.has_valid_fields(*self.filter_names):
                _require_same_filters(stored_filters, filters)

    def _decode_filters_and_place(self, cursor: str) -> tuple[str, Place]:
        try:
            filters, *values = decode_cursor(self.name, cursor, (str, *self.types))
            return str(filters), self.to_place(*values)
        except ValueError as error:
            raise build_invalid_field_error("cursor", str(error)) from error


def _require_same_filters(stored_filters: str, filters: str) -> None:
    if stored_filters != filters:
        raise build_invalid_field_error(
            "cursor", "belongs to a list with other filters; omit the cursor to request the first page"
        )
