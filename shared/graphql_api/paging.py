"""Paging of the root lists of GraphQL queries, by cursor or by offset."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.snapshot import CatalogEntry
from shared.errors import WorkspaceError, build_invalid_field_error

DEFAULT_SIZE: Final = 50
MAX_SIZE: Final = 500
_PREFIX: Final = "after:"


@dataclass(frozen=True, slots=True)
class ListPage:
    """Page of a list at the root of a GraphQL query, such as ``queries``.

    Attributes:
        list_name: name of the list's field; a cursor is valid only for the list that returned it.
        nodes: items of the page.
        total: number of items in the whole list.
        has_next: True if another page follows.
    """

    list_name: str
    nodes: Sequence[CatalogEntry[Any]]
    total: int
    has_next: bool

    @property
    def end_cursor(self) -> str | None:
        """Cursor of the last item on the page; None for an empty page."""
        return self.to_cursor(self.nodes[-1]) if self.nodes else None

    def to_cursor(self, stored: CatalogEntry[Any]) -> str:
        """Build the cursor of an item of the list from the item's lookup (id in URLs)."""
        text = f"{_PREFIX}{self.list_name}:{stored.value.lookup}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Paging arguments of a list at the root of a GraphQL query; a missing argument is None."""

    limit: int | None = None
    offset: int | None = None
    first: int | None = None
    after: str | None = None

    def get_page_size(self) -> int:
        """Return the requested page size, after a check of its range.

        Raises:
            WorkspaceError: INVALID with the name of the argument.
        """
        name, value = ("first", self.first) if self.limit is None else ("limit", self.limit)
        if value is None:
            return DEFAULT_SIZE
        if not 0 <= value <= MAX_SIZE:
            raise build_invalid_field_error(name, f"must be between 0 and {MAX_SIZE}")
        return value

    def select_page(self, list_name: str, sorted_entries: Sequence[CatalogEntry[Any]]) -> ListPage:
        """Return the requested page of a list.

        Args:
            list_name: name of the list's field; a cursor of another list is rejected.
            sorted_entries: items of the list, sorted by lookup (id in URLs).

        Raises:
            WorkspaceError: INVALID with the name of the argument.
        """
        if (self.limit, self.offset) != (None, None) and (self.first, self.after) != (None, None):
            raise build_invalid_field_error(
                "first", "must not be combined with limit or offset; use first and after, or limit and offset"
            )
        size, start = self.get_page_size(), self._determine_start_index(list_name, sorted_entries)
        nodes = sorted_entries[start : start + size]
        return ListPage(list_name, nodes, len(sorted_entries), start + len(nodes) < len(sorted_entries))

    def _determine_start_index(self, list_name: str, sorted_entries: Sequence[CatalogEntry[Any]]) -> int:
        """Return the index of the first item of the page, from ``after`` or ``offset``."""
        if self.after is not None:
            last = _parse_lookup_of_cursor(list_name, self.after)
            # Compare keys, not positions: items inserted before the cursor must not shift the page.
            return sum(stored.value.lookup <= last for stored in sorted_entries)
        offset = self.offset or 0
        if offset < 0:
            raise build_invalid_field_error("offset", "must not be negative")
        return offset


def _parse_lookup_of_cursor(list_name: str, cursor: str) -> str:
    """Return the lookup (id in URLs) of the item of a list for which a cursor was built."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _build_invalid_cursor_error() from None
    prefix = f"{_PREFIX}{list_name}:"
    if not text.startswith(prefix):
        raise _build_invalid_cursor_error()
    return text.removeprefix(prefix)


def _build_invalid_cursor_error() -> WorkspaceError:
    return build_invalid_field_error("after", "must be an endCursor or edge cursor of this list")
