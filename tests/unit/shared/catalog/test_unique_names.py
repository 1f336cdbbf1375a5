"""Tests of the names of catalog items for programs that accept only letters, digits and underscores."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.catalog.snapshot import CatalogEntry
from shared.catalog.unique_names import build_unique_names_by_lookup

AT = datetime(2026, 1, 5, tzinfo=UTC)


def build_entry(age_days: int) -> CatalogEntry[None]:
    """Return an item that was created the given number of days ago."""
    created_at = AT - timedelta(days=age_days)
    return CatalogEntry(None, created_at, created_at, "editor@x")


@pytest.mark.parametrize(("older", "newer"), [("x_y", "x-y"), ("x-y", "x_y")])
def test_the_newer_of_two_items_with_the_same_name_gets_a_suffix(older: str, newer: str) -> None:
    """If two lookups differ only in hyphens and underscores, the newer name gets a suffix."""
    names = build_unique_names_by_lookup(
        {newer: build_entry(1), older: build_entry(2), "z-1": build_entry(0)}, "query_"
    )
    assert (names[older], names["z-1"]) == ("query_x_y", "query_z_1")
    assert names[newer].startswith("query_x_y_")


def test_no_suffix_results_in_the_name_of_another_item() -> None:
    """All names differ, even if an older lookup equals a name with a suffix."""
    suffixed = build_unique_names_by_lookup({"x-y": build_entry(2), "x_y": build_entry(1)}, "")["x_y"]
    entries = {"x-y": build_entry(3), suffixed: build_entry(2), "x_y": build_entry(1)}
    assert len(set(build_unique_names_by_lookup(entries, "").values())) == len(entries)
