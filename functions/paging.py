"""Pages of lists that are sorted by a key: the query parameters `limit` and `cursor`."""

import base64
import binascii
from bisect import bisect_right
from collections.abc import Iterable
from typing import Annotated, Any, Final

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


def _parse_cursor(text: Any) -> str:
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
    cursor: Annotated[str | None, BeforeValidator(_parse_cursor), WithJsonSchema(_CURSOR)] = Field(
        None, description="The `cursor` of the previous page. Default: the first page."
    )


def build_cursor_check(name: str) -> Check[CatalogPageQuery, Any]:
    """Build the check of a list operation that rejects a cursor of another list.

    Args:
        name: name of the list, as in :func:`select_page`.
    """

    async def check_cursor(call: Call[CatalogPageQuery, Any], faults: ValidationErrors) -> None:
        if call.query.cursor is not None and faults.has_valid_fields("cursor"):
            with faults.collect_raised_error():
                _read_last_key(name, call.query.cursor)

    return check_cursor


def select_page(name: str, keys: Iterable[str], query: CatalogPageQuery) -> tuple[list[str], dict[str, str]]:
    """Return the sorted keys of a page, and a dictionary with the reply's property `cursor` (empty for the last page).

    A cursor contains a key and not a position, so that no item is missed or repeated after inserts and removals.

    Args:
        name: name of the list; a cursor is valid only for the list that returned it.
        keys: keys of the whole list, in any order.
        query: validated query parameters `limit` and `cursor`.

    Raises:
        WorkspaceError: INVALID with the field ``cursor`` if the cursor belongs to another list.
    """
    ordered = sorted(keys)
    start = 0 if query.cursor is None else bisect_right(ordered, _read_last_key(name, query.cursor))
    page = ordered[start : start + query.limit]
    has_next = start + len(page) < len(ordered)
    return page, {"cursor": _to_cursor(name, page[-1])} if has_next else {}


def _read_last_key(name: str, cursor: str) -> str:
    """Return the last key of the previous page from a decoded cursor; raise INVALID for a cursor of another list."""
    found, _, key = cursor.partition(":")
    if found != name:
        raise build_invalid_field_error("cursor", _CURSOR_RULE)
    return key


def _to_cursor(name: str, key: str) -> str:
    return base64.urlsafe_b64encode(f"{_PREFIX}{name}:{key}".encode()).decode().rstrip("=")
