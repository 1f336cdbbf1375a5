"""Pages of lists that are sorted by a key: the query parameters `limit` and `cursor`."""

import base64
import binascii
from bisect import bisect_right
from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from shared.errors import ValidationErrors, build_invalid_field_error
from shared.http.operations import Call, Check
from shared.validation.whole_numbers import parse_whole_number

MAX_LIMIT: Final = 1_000
_PREFIX: Final = "after:"
_LIMIT: Final = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_LIMIT}
_CURSOR_RULE: Final = "must be the `cursor` of an earlier reply of this list"
_CURSOR: Final = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": 4_096}


def _parse_limit(text: Any) -> int:
    return parse_whole_number(text, MAX_LIMIT)


def _decode_cursor_to_list_and_key(text: Any) -> str:
    """Decode a cursor to ``name:key``: the name of its list, and the last key of the previous page."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        decoded = ""
    if not decoded.startswith(_PREFIX):
        raise ValueError(_CURSOR_RULE)
    return decoded.removeprefix(_PREFIX)


class CatalogPageQuery(BaseModel):
    """Query parameters `limit` and `cursor` of a paged list of catalog items."""

    limit: Annotated[int, BeforeValidator(_parse_limit), WithJsonSchema(_LIMIT)] = Field(
        MAX_LIMIT, description="Maximum number of items, 1 to 1000. Default: 1000."
    )
    cursor: Annotated[str | None, BeforeValidator(_decode_cursor_to_list_and_key), WithJsonSchema(_CURSOR)] = Field(
        None, description="The `cursor` of the previous page. Default: the first page."
    )


def build_cursor_check(list_name: str) -> Check[CatalogPageQuery, Any]:
    """Build the check with which a list operation rejects a cursor of another list.

    Args:
        list_name: name of the list, as in :func:`select_page`.
    """

    async def check_cursor(call: Call[CatalogPageQuery, Any], faults: ValidationErrors) -> None:
        if call.query.cursor is not None and faults.has_valid_fields("cursor"):
            with faults.collect_raised_error():
                _get_last_key_of_cursor(list_name, call.query.cursor)

    return check_cursor


class SelectedPage(NamedTuple):
    """Page of a list: the sorted keys of its items, and the reply's property `cursor` (empty for the last page)."""

    keys: list[str]
    cursor_property: dict[str, str]


def select_page(list_name: str, keys: Iterable[str], query: CatalogPageQuery) -> SelectedPage:
    """Select a page of a list by the query parameters `limit` and `cursor`.

    A cursor contains a key and not a position, so that no item is missed or repeated after inserts and removals.

    Args:
        list_name: name of the list; a cursor is valid only for the list that returned it.
        keys: keys of the whole list, in any order.
        query: validated query parameters `limit` and `cursor`.

    Raises:
        WorkspaceError: INVALID with the field ``cursor`` if the cursor belongs to another list.
    """
    ordered = sorted(keys)
    start = 0 if query.cursor is None else bisect_right(ordered, _get_last_key_of_cursor(list_name, query.cursor))
    page = ordered[start : start + query.limit]
    has_next = start + len(page) < len(ordered)
    return SelectedPage(page, {"cursor": _encode_cursor(list_name, page[-1])} if has_next else {})


def _get_last_key_of_cursor(list_name: str, decoded_cursor: str) -> str:
    """Return the last key of the previous page from a decoded cursor; raise INVALID for a cursor of another list."""
    found, _, key = decoded_cursor.partition(":")
    if found != list_name:
        raise build_invalid_field_error("cursor", _CURSOR_RULE)
    return key


def _encode_cursor(list_name: str, last_key: str) -> str:
    return base64.urlsafe_b64encode(f"{_PREFIX}{list_name}:{last_key}".encode()).decode().rstrip("=")
