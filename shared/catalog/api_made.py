"""What the items made through the API ask of the declared ones beside them."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.catalog.items import ItemKind
from shared.catalog.ports import CatalogItem, ItemOrigin


class ApiItemConstraints:
    """Finds what keeps apply from a change: an item made through the API that contradicts or needs another.

    Args:
        items: all stored items.
        kept: declared queries that apply leaves as they are stored; they keep their names and paths, too.
    """

    def __init__(self, items: Iterable[CatalogItem], kept: Iterable[CatalogItem] = ()) -> None:
        made = [item for item in items if item.origin is ItemOrigin.API]
        queries = [item for item in made if item.kind == ItemKind.WARM_QUERY]
        named = [*queries, *kept]
        self._names = {item.definition["name"]: item for item in named}
        self._paths = {item.definition["apiPath"]: item for item in named if item.definition.get("apiPath")}
        self._lookups = {item.key: item for item in named}
        self._surfaces = {item.definition["surface"]: item.key for item in queries}
        self._databases = {item.key.partition("/")[0]: item.key for item in made if item.kind == ItemKind.CONTAINER}
        stores = [item for item in items if item.kind == ItemKind.DATA_STORE]
        self._stored_databases = {item.key: _databases(item.definition) for item in stores}

    def objection(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why a declared item cannot become as declared, None when nothing speaks against it."""
        if kind == ItemKind.WARM_QUERY:
            return self._query_objection(key, definition)
        if kind == ItemKind.DATA_STORE:
            return self._database_need(self._stored_databases.get(key, set()) - _databases(definition))
        return None

    def need(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why an item that is no longer declared has to stay, None when it can go."""
        if kind == ItemKind.SURFACE and key in self._surfaces:
            return f"warm query {self._surfaces[key]}, made through the API, is on it"
        return self._database_need(_databases(definition)) if kind == ItemKind.DATA_STORE else None

    def _query_objection(self, key: str, definition: Mapping[str, Any]) -> str | None:
        name, path = definition["name"], definition["apiPath"]
        for other, what in (
            (self._names.get(name), "has its name"),
            (self._lookups.get(name), "has its name as lookup"),
            (self._paths.get(name), "has its name as apiPath"),
            (self._names.get(key), "has its lookup as name"),
            (self._names.get(path), "has its apiPath as name"),
            (self._paths.get(path), "has its apiPath"),
            (self._lookups.get(path), "has its apiPath as lookup"),
            (self._paths.get(key), "has its lookup as apiPath"),
        ):
            if other is not None and other.key != key:
                origin = "made through the API" if other.origin is ItemOrigin.API else "kept as it is stored"
                return f"warm query {other.key}, {origin}, {what}"
        return None

    def _database_need(self, databases: Iterable[str]) -> str | None:
        needed = sorted(database for database in databases if database in self._databases)
        return f"container {self._databases[needed[0]]}, made through the API, is in it" if needed else None


def _databases(definition: Mapping[str, Any]) -> set[str]:
    return {database["lookup"] for database in definition["databases"]}
