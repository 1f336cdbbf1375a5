"""What the items made through the API ask of the declared ones beside them."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.catalog.items import ItemKind
from shared.catalog.ports import Item, Origin


class ApiMade:
    """Finds what keeps apply from a change: an item made through the API that contradicts or needs another.

    Args:
        items: all stored items.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        made = [item for item in items if item.origin is Origin.API]
        queries = [item for item in made if item.kind == ItemKind.WARM_QUERY]
        self._names = {item.definition["name"]: item.key for item in queries}
        self._paths = {item.definition["apiPath"]: item.key for item in queries if item.definition.get("apiPath")}
        self._lookups = {item.key for item in queries}
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
        if name in self._names:
            return f"warm query {self._names[name]}, made through the API, has its name"
        if path in self._paths:
            return f"warm query {self._paths[path]}, made through the API, has its apiPath"
        if path in self._lookups:
            return f"its apiPath is the lookup of warm query {path}, made through the API"
        if key in self._paths:
            return f"its lookup is the apiPath of warm query {self._paths[key]}, made through the API"
        return None

    def _database_need(self, databases: Iterable[str]) -> str | None:
        needed = sorted(database for database in databases if database in self._databases)
        return f"container {self._databases[needed[0]]}, made through the API, is in it" if needed else None


def _databases(definition: Mapping[str, Any]) -> set[str]:
    return {database["lookup"] for database in definition["databases"]}
