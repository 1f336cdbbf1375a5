"""Says whether an index policy serves a sort order; a filter on what is not indexed is a scan, not an error."""

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


def check_sort(policy: Mapping[str, Any], keys: Sequence[SortKey]) -> None:
    """Refuses a sort order that the policy cannot serve.

    Args:
        policy: The container's index policy.
        keys: The sort keys.

    Raises:
        Refusal: 400, a path is excluded, or no composite index has these paths in these directions.
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
    included = max((_match_precision(entry["path"], path) for entry in policy.get("includedPaths", [])), default=-1)
    excluded = max((_match_precision(entry["path"], path) for entry in policy.get("excludedPaths", [])), default=-1)
    return included > excluded


def _match_precision(pattern: str, path: list[str]) -> int:
    """How precisely a pattern such as `/a/*` or `/a/b/?` covers a path; -1 if it does not."""
    *steps, last = parse_path(pattern)
    if last == "?":
        return 2 * len(steps) + 1 if steps == path else -1
    return 2 * len(steps) if steps == path[: len(steps)] else -1


def _has_composite_index(policy: Mapping[str, Any], keys: Sequence[SortKey]) -> bool:
    wanted = [([str(step) for step in key.path], key.descending) for key in keys]
    inverse = [(path, not descending) for path, descending in wanted]
    return any(
        [(parse_path(entry["path"]), entry.get("order") == "descending") for entry in composite] in (wanted, inverse)
        for composite in policy.get("compositeIndexes", [])
    )
