"""Tests of the pages of lists at the root of GraphQL queries."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.models import Surface
from shared.catalog.snapshot import CatalogEntry
from shared.errors import WorkspaceError
from shared.graphql_api.paging import ListPage, PageRequest

_AT = datetime(2026, 1, 5, tzinfo=UTC)
LOOKUPS = st.sets(st.from_regex(r"[a-z]{1,6}", fullmatch=True), max_size=30)


def build_surfaces(lookups: set[str]) -> list[CatalogEntry[Surface]]:
    """Return surfaces sorted by lookup (id in URLs)."""
    return [CatalogEntry(Surface(lookup=lookup, name=lookup), _AT, _AT, "") for lookup in sorted(lookups)]


@given(LOOKUPS, LOOKUPS, st.integers(min_value=1, max_value=7))
def test_paging_by_cursor_returns_each_item_once_during_inserts(
    before: set[str], inserted: set[str], size: int
) -> None:
    """Paging by cursor returns each original item once, even if items are inserted."""
    seen: list[str] = []
    items, after = build_surfaces(before), None
    while True:
        page = PageRequest(first=size, after=after).select_page("surfaces", items)
        seen += [stored.value.lookup for stored in page.nodes]
        if not page.has_next:
            break
        after = page.end_cursor
        items = build_surfaces(before | inserted)
    assert len(seen) == len(set(seen))
    assert before <= set(seen)


@given(LOOKUPS, st.integers(min_value=0, max_value=40), st.integers(min_value=0, max_value=40))
def test_limit_and_offset_return_a_slice(lookups: set[str], limit: int, offset: int) -> None:
    """Limit and offset return a part of the list, the total count, and whether more items follow."""
    items = build_surfaces(lookups)
    page = PageRequest(limit=limit, offset=offset).select_page("surfaces", items)
    assert list(page.nodes) == items[offset : offset + limit]
    assert page.total == len(items)
    assert page.has_next is (offset + len(page.nodes) < len(items))


@pytest.mark.parametrize(
    "request_",
    [
        PageRequest(first=1, limit=1),
        PageRequest(first=1, offset=0),
        PageRequest(after="x", limit=1),
        PageRequest(first=-1),
        PageRequest(first=501),
        PageRequest(limit=501),
        PageRequest(offset=-1),
        PageRequest(after=""),
        PageRequest(after="%%%"),
        PageRequest(after="AAAA"),
        PageRequest(after=ListPage("queries", build_surfaces({"a"}), 1, has_next=False).end_cursor),
    ],
)
def test_invalid_paging_arguments_are_rejected(request_: PageRequest) -> None:
    """A cursor together with an offset, an invalid size, or a cursor of another list is rejected."""
    with pytest.raises(WorkspaceError):
        request_.select_page("surfaces", build_surfaces({"a"}))


def test_a_cursor_contains_no_readable_lookup() -> None:
    """A cursor does not contain a readable lookup (id in URLs)."""
    [stored] = build_surfaces({"cooling"})
    assert "cooling" not in ListPage("surfaces", [stored], 1, has_next=False).to_cursor(stored)
