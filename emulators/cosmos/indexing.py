"""Check that the indexing policy of a container supports the ORDER BY clause of a query.

A filter (WHERE) on a property without an index is permitted; the query then reads all items.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from emulators.cosmos.partition_keys import split_property_path
from emulators.cosmos.sql_statement import SortKey
from emulators.cosmos.wire import CosmosError

DEFAULT_POLICY = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}

_ALWAYS = (["id"], ["_ts"])


def check_order_by_supported(indexing_policy: Mapping[str, Any], sort_keys: Sequence[SortKey]) -> None:
    """Reject an ORDER BY clause that the indexing policy of a container does not support.

    Args:
        indexing_policy: The indexing policy of the container.
        sort_keys: The paths and directions of the ORDER BY clause.

    Raises:
        CosmosError: 400 if a path is excluded, or no composite index has these paths and directions.
    """
    if len(sort_keys) > 1 and not _has_composite_index(indexing_policy, sort_keys):
        raise CosmosError(
            400, "The order by query does not have a corresponding composite index that it can be served from."
        )
    for key in sort_keys if len(sort_keys) == 1 else ():
        if not _is_path_indexed(indexing_policy, [str(step) for step in key.path]):
            raise CosmosError(
                400, f"The index path corresponding to the specified order-by item '{key.text}' is excluded."
            )


def _is_path_indexed(indexing_policy: Mapping[str, Any], path: list[str]) -> bool:
    if path in _ALWAYS:
        return True
    if indexing_policy.get("indexingMode", "consistent") != "consistent":
        return False
    included = max(
        (
            _compute_match_precision_or_minus_one(entry["path"], path)
            for entry in indexing_policy.get("includedPaths", [])
        ),
        default=-1,
    )
    excluded = max(
        (
            _compute_match_precision_or_minus_one(entry["path"], path)
            for entry in indexing_policy.get("excludedPaths", [])
        ),
        default=-1,
    )
    return included > excluded


def _compute_match_precision_or_minus_one(pattern: str, path: list[str]) -> int:
    """Return how precisely a pattern such as `/a/*` or `/a/b/?` matches a path, as a number.

    A longer pattern, or `?` instead of `*`, gives a larger number. Return -1 if the pattern does not match.
    """
    *steps, last = split_property_path(pattern)
    if last == "?":
        return 2 * len(steps) + 1 if steps == path else -1
    return 2 * len(steps) if steps == path[: len(steps)] else -1


def _has_composite_index(indexing_policy: Mapping[str, Any], sort_keys: Sequence[SortKey]) -> bool:
    requested = [([str(step) for step in key.path], key.descending) for key in sort_keys]
    inverse = [(path, not descending) for path, descending in requested]
    return any(
        [(split_property_path(entry["path"]), entry.get("order") == "descending") for entry in composite]
        in (requested, inverse)
        for composite in indexing_policy.get("compositeIndexes", [])
    )
