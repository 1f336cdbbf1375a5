"""Tests of the index from which the emulator reads sorted pages of items."""

from emulators.cosmos.sort_index import SortIndex, build_sort_entry

DOCUMENTS = {1: {"v": "b"}, 2: {"v": 3}, 3: {"v": "a"}, 4: {"v": 1}, 5: {}, 6: {"v": 3}}


def build_sort_index() -> SortIndex:
    """Return a sort index over the given documents."""
    index = SortIndex(("v",))
    for number, document in DOCUMENTS.items():
        index.add(number, document)
    return index


def test_items_are_sorted_by_type_value_and_order_of_creation() -> None:
    """Items are sorted by type, value and order of creation; descending order is exactly the reverse."""
    index = build_sort_index()
    assert list(index.iterate_creation_numbers_after(None, descending=False)) == [5, 4, 2, 6, 3, 1]
    assert list(index.iterate_creation_numbers_after(None, descending=True)) == [1, 3, 6, 2, 4, 5]


def test_a_sorted_page_continues_after_a_removed_item() -> None:
    """A page continues at the right position even if the last item of the previous page was removed."""
    index = build_sort_index()
    last = build_sort_entry(3, 2)
    index.remove(2, DOCUMENTS[2])
    assert list(index.iterate_creation_numbers_after(last, descending=False)) == [6, 3, 1]
    assert list(index.iterate_creation_numbers_after(last, descending=True)) == [4, 5]
