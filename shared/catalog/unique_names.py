"""Unique identifiers (letters, digits, underscores) of catalog items, such as the names of MCP tools."""

import hashlib
from collections.abc import Mapping
from typing import Any

from shared.catalog.snapshot import CatalogEntry


def build_unique_names_by_lookup(entries: Mapping[str, CatalogEntry[Any]], prefix: str) -> dict[str, str]:
    """Return a unique name for each catalog item, such as the name of an MCP tool, by the item's lookup (id in URLs).

    A name is the prefix and the lookup with underscores in place of hyphens. If two items would get the same name, the
    name of the newer item gets a suffix. A new item therefore never changes the name of another item.

    Args:
        entries: items of one kind by lookup.
        prefix: text before each lookup.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for lookup in sorted(entries, key=lambda each: (entries[each].created_at, each)):
        name = f"{prefix}{lookup.replace('-', '_')}"
        while name in taken:
            name = f"{name}_{hashlib.sha256(lookup.encode()).hexdigest()[:6]}"
        taken.add(name)
        names[lookup] = name
    return names
