"""Pages of root lists: by cursor or by offset, never both."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.snapshot import CatalogEntry
from shared.errors import WorkspaceError, invalid

DEFAULT_SIZE: Final = 50
MAX_SIZE: Final = 500


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list.

    Attributes:
        nodes: the items.
        total: how many the whole list has.
        has_next: whether more follow.
    """

    nodes: Sequence[CatalogEntry[Any]]
    total: int
    has_next: bool

    @property
    def end_cursor(self) -> str | None:
        """Where the next page begins, None for an empty page."""
        return to_cursor(self.nodes[-1]) if self.nodes else None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The paging arguments of a root list; None where one was not given."""

    limit: int | None = None
    offset: int | None = None
    first: int | None = None
    after: str | None = None

    def size(self) -> int:
        """Return how many items are asked for.

        Raises:
            WorkspaceError: INVALID naming the argument.
        """
        name, value = ("first", self.first) if self.limit is None else ("limit", self.limit)
        if value is None:
            return DEFAULT_SIZE
        if not 0 <= value <= MAX_SIZE:
            raise invalid(name, f"a number from 0 to {MAX_SIZE} is expected")
        return value

    def select(self, ordered: Sequence[CatalogEntry[Any]]) -> ListPage:
        """Return the page of a list in order of lookup keys.

        Raises:
            WorkspaceError: INVALID naming the argument.
        """
        if (self.limit, self.offset) != (None, None) and (self.first, self.after) != (None, None):
            raise invalid("first", "page either by first and after, or by limit and offset")
        size, start = self.size(), self._start(ordered)
        nodes = ordered[start : start + size]
        return ListPage(nodes, len(ordered), start + len(nodes) < len(ordered))

    def _start(self, ordered: Sequence[CatalogEntry[Any]]) -> int:
        if self.after is not None:
            last = _lookup_of(self.after)
            # By key and not by position, so that what is inserted before it moves nothing.
            return sum(stored.value.lookup <= last for stored in ordered)
        offset = self.offset or 0
        if offset < 0:
            raise invalid("offset", "must not be negative")
        return offset


def to_cursor(stored: CatalogEntry[Any]) -> str:
    """Return the cursor that stands behind an item."""
    return base64.urlsafe_b64encode(f"after:{stored.value.lookup}".encode()).decode().rstrip("=")


def _lookup_of(cursor: str) -> str:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _no_cursor() from None
    if not text.startswith("after:"):
        raise _no_cursor()
    return text.removeprefix("after:")


def _no_cursor() -> WorkspaceError:
    return invalid("after", "an endCursor or edge cursor of this list is expected")
