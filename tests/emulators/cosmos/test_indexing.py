"""Tests of the rule that the indexing policy must support the sort order of a query."""

from typing import Any

import pytest

from emulators.cosmos.indexing import DEFAULT_POLICY, check_order_by_supported
from emulators.cosmos.sql_statement import SortKey
from emulators.cosmos.wire import CosmosError


def _build_sort_key(path: str, *, descending: bool = False) -> SortKey:
    return SortKey(tuple(path.split(".")), f"c.{path}", descending)


def _supports_sort_order(policy: dict[str, Any], *keys: SortKey) -> bool:
    try:
        check_order_by_supported(policy, keys)
    except CosmosError:
        return False
    return True


def _build_policy(included: list[str], excluded: list[str]) -> dict[str, Any]:
    return {
        "includedPaths": [{"path": path} for path in included],
        "excludedPaths": [{"path": path} for path in excluded],
    }


def test_the_default_policy_indexes_all_but_the_etag() -> None:
    """With the default policy, queries can sort by each property except ``_etag``."""
    assert _supports_sort_order(DEFAULT_POLICY, _build_sort_key("a.b"))
    assert not _supports_sort_order(DEFAULT_POLICY, _build_sort_key("_etag"))


@pytest.mark.parametrize(
    ("included", "excluded", "path", "expected"),
    [
        (["/a/*"], ["/*"], "a.b", True),
        (["/a/*"], ["/*"], "b", False),
        (["/*"], ["/a/*"], "a.b", False),
        (["/*"], ["/a/*"], "b", True),
        (["/*", "/a/b/?"], ["/a/*"], "a.b", True),
        (["/*", "/a/b/?"], ["/a/*"], "a.b.c", False),
        (["/a/*"], ["/a/b/?"], "a.b.c", True),
        (["/a/?"], [], "a.b", False),
        ([], [], "a", False),
    ],
)
def test_the_most_precise_path_of_an_index_policy_applies(
    included: list[str], excluded: list[str], path: str, *, expected: bool
) -> None:
    """If several paths of the policy match a property, the most precise path applies."""
    assert _supports_sort_order(_build_policy(included, excluded), _build_sort_key(path)) is expected


def test_system_properties_are_always_indexed() -> None:
    """Queries can always sort by ``id`` and ``_ts``; if indexing is disabled, they cannot sort by any property."""
    disabled = {"indexingMode": "none", **_build_policy(["/*"], [])}
    assert _supports_sort_order(disabled, _build_sort_key("id"))
    assert _supports_sort_order(disabled, _build_sort_key("_ts"))
    assert not _supports_sort_order(disabled, _build_sort_key("a"))


def test_sorting_by_several_keys_requires_a_composite_index() -> None:
    """Sorting by two keys requires a composite index with both paths in order, in equal or opposite directions."""
    composite = [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
    policy = {**DEFAULT_POLICY, "compositeIndexes": [composite]}
    assert _supports_sort_order(policy, _build_sort_key("a"), _build_sort_key("b", descending=True))
    assert _supports_sort_order(policy, _build_sort_key("a", descending=True), _build_sort_key("b"))
    assert not _supports_sort_order(policy, _build_sort_key("a"), _build_sort_key("b"))
    assert not _supports_sort_order(policy, _build_sort_key("b", descending=True), _build_sort_key("a"))
    assert not _supports_sort_order(DEFAULT_POLICY, _build_sort_key("a"), _build_sort_key("b"))


def test_the_error_about_a_missing_index_names_the_path() -> None:
    """The error about a missing index has status 400 and quotes the sort key as it is in the query."""
    with pytest.raises(CosmosError, match=r"order-by item 'c\._etag' is excluded") as caught:
        check_order_by_supported(DEFAULT_POLICY, [_build_sort_key("_etag")])
    assert caught.value.status == 400
