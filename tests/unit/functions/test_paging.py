"""Tests of the pages of lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from functions.paging import MAX_LIMIT, CatalogPageQuery, select_page
from shared.errors import WorkspaceError

KEYS = st.sets(st.text(max_size=5), max_size=30)


def list_all_keys(keys: set[str], limit: int) -> list[str]:
    """Return the keys of all pages, in the order of the pages."""
    found: list[str] = []
    query = {"limit": str(limit)}
    while True:
        page, cursor = select_page("items", keys, CatalogPageQuery.model_validate(query))
        found += page
        if not cursor:
            return found
        query = {"limit": str(limit), **cursor}


@given(KEYS, st.integers(1, 10))
def test_pages_contain_each_key_once(keys: set[str], limit: int) -> None:
    """All pages together contain each key once and in order, whatever the keys are."""
    assert list_all_keys(keys, limit) == sorted(keys)


def test_pages_neither_repeat_nor_skip_keys_after_changes() -> None:
    """If keys are added or removed between two pages, the unchanged keys are neither repeated nor skipped."""
    first, cursor = select_page("items", {"b", "d", "f"}, CatalogPageQuery.model_validate({"limit": "2"}))
    second, _ = select_page("items", {"a", "c", "e", "f"}, CatalogPageQuery.model_validate(cursor))
    assert (first, second) == (["b", "d"], ["e", "f"])


def test_a_page_without_a_limit_has_up_to_1000_keys() -> None:
    """If a request has no limit parameter, a page contains up to 1,000 keys."""
    page, cursor = select_page("items", {f"{number:05}" for number in range(MAX_LIMIT + 1)}, CatalogPageQuery())
    assert (len(page), list(cursor)) == (MAX_LIMIT, ["cursor"])


@pytest.mark.parametrize("cursor", ["YWZ0ZXI6eA", "YWZ0ZXI6b3RoZXI6eA"], ids=["without a list", "of another list"])
def test_a_cursor_of_another_list_is_rejected(cursor: str) -> None:
    """A cursor is accepted only by the list that returned it."""
    with pytest.raises(WorkspaceError) as caught:
        select_page("items", {"x"}, CatalogPageQuery.model_validate({"cursor": cursor}))
    assert caught.value.members["errors"] == [
        {"field": "cursor", "message": "must be the `cursor` of an earlier reply of this list"}
    ]


@pytest.mark.parametrize(
    "sent",
    [
        {"limit": "0"},
        {"limit": "1001"},
        {"limit": "-1"},
        {"limit": "1.0"},
        {"limit": ""},
        {"limit": "1_0"},
        {"cursor": ""},
        {"cursor": "x"},
        {"cursor": "YWZ0ZXI"},
        {"cursor": "é"},
        {"cursor": "_w"},
    ],
)
def test_invalid_paging_parameters_are_rejected(sent: dict[str, str]) -> None:
    """A limit out of range is rejected, and so is a text that is not a cursor."""
    with pytest.raises(ValidationError):
        CatalogPageQuery.model_validate(sent)
