"""Check that the indexing policy of a container supports the ORDER BY clause of a query.

A filter (WHERE) on a property without an index is permitted; the query then reads all items.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from emulators.cosmos.partition_keys import parse_path
from emulators.cosmos.sql_statement import SortKey
from emulators.cosmos.wire import CosmosError

DEFAULT_POLICY = {
    "indexingMode": "consistent",
    "automatic": True,
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [{"path": '/"_etag"/?'}],
}

_ALWAYS = (["id"], ["_ts"])


def check_order_by_supported(policy: Mapping[str, Any], keys: Sequence[SortKey]) -> None:
    """Reject an ORDER BY clause that the indexing policy of a container does not support.

    Args:
        policy: The indexing policy of the container.
        keys: The paths and directions of the ORDER BY clause.

    Raises:
        CosmosError: 400 if a path is excluded, or no composite index has these paths and directions.
    """
    if len(keys) > 1 and not _has_composite_index(policy, keys):
        raise CosmosError(
            400, "The order by query does not have a corresponding composite index that it can be served from."
        )
    for key in keys if len(keys) == 1 else ():
        if not _is_indexed(policy, [str(step) for step in key.path]):
            raise CosmosError(
                400, f"The index path corresponding to the specified order-by item '{key.text}' is excluded."
            )


def _is_indexed(policy: Mapping[str, Any], path: list[str]) -> bool:
    if path in _ALWAYS:
        return True
    if policy.get("indexingMode", "consistent") != "consistent":
        return False
    included = max(
        (_compute_match_precision(entry["path"], path) for entry in policy.get("includedPaths", [])), default=-1
    )
    excluded = max(
        (_compute_match_precision(entry["path"], path) for entry in policy.get("excludedPaths", [])), default=-1
    )
    return included > excluded


def _compute_match_precision(pattern: str, path: list[str]) -> int:
    """Return how precisely a pattern such as `/a/*` or `/a/b/?` matches a path, as a number.

    A longer pattern, or `?` instead of `*`, gives a larger number. Return -1 if the pattern does not match.
    """
    *steps, last = parse_path(pattern)
    if last == "?":
        return 2 * len(steps) + 1 if steps == path else -1
    return 2 * len(steps) if steps == path[: len(steps)] else -1


def _has_composite_index(policy: Mapping[str, Any], keys: Sequence[SortKey]) -> bool:
    requested = [([str(step) for step in key.path], key.descending) for key in keys]
    inverse = [(path, not descending) for path, descending in requested]
    return any(
        [(parse_path(entry["path"]), entry.get("order") == "descending") for entry in composite] in (requested, inverse)
        for composite in policy.get("compositeIndexes", [])
    )
