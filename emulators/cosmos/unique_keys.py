"""Unique keys of a container: within a logical partition no two items have the same values at their paths."""

from collections.abc import Mapping
from typing import Any

import orjson

from emulators.cosmos.partition_keys import parse_path


class UniqueKeys:
    """Reads the values of a container's unique keys.

    Args:
        properties: The container as it was created.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        definitions = (properties.get("uniqueKeyPolicy") or {}).get("uniqueKeys") or []
        self._keys = [[parse_path(path) for path in definition["paths"]] for definition in definitions]

    def claims(self, document: Mapping[str, Any]) -> list[tuple[int, bytes]]:
        """Gives what a document takes: the number of each key with its values; a missing value counts as null."""
        return [
            (number, orjson.dumps([_value(document, path) for path in paths]))
            for number, paths in enumerate(self._keys)
        ]


def _value(document: Any, path: list[str]) -> Any:
    for step in path:
        if not isinstance(document, Mapping) or step not in document:
            return None
        document = document[step]
    return document
