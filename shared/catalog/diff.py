"""Differences between a workspace document and the stored catalog."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from shared.catalog.items import (
    MODELS,
    SINGLETON_KEY,
    UNDECLARED,
    ItemId,
    ItemKind,
    definitions_from_document,
    to_definition,
)
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.errors import Kind, WorkspaceError

ORDER: Final[Mapping[str, int]] = {kind: place for place, kind in enumerate(ItemKind)}


@dataclass(frozen=True, slots=True)
class ItemChange:
    """Addition, change or removal of one catalog item.

    Attributes:
        kind: kind of the catalog item, such as ``connection``.
        key: id of the item within its kind, such as a lookup (id in URLs).
        before: definition before the change; None for a new item.
        after: definition after the change; None for a removed item.
        action: verb in the audit event; replaces ``Created``, ``Updated`` or ``Removed`` if not empty.
        is_edit: True if the actor becomes the last editor of the item; an approval does not count as an edit.
        append_id: id of the audit event of the change; empty for a new id.
    """

    kind: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    action: str = ""
    is_edit: bool = True
    append_id: str = ""

    @property
    def verb(self) -> str:
        """Last part of the ActionType in the audit event of the change, such as ``Created``."""
        if self.action:
            return self.action
        if self.before is None:
            return "Created"
        return "Removed" if self.after is None else "Updated"


@dataclass(frozen=True, slots=True)
class RetainedItem:
    """Catalog item that does not change when a workspace document is applied.

    Attributes:
        kind: kind of the catalog item, such as ``connection``.
        key: id of the item within its kind, such as a lookup (id in URLs).
        reason: text for the caller that says why the item is retained.
        conflict: True if the document declares a different definition, or no longer declares the item.
    """

    kind: str
    key: str
    reason: str
    conflict: bool


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """Ordered changes that applying a workspace document makes, and the items that stay unchanged."""

    changes: tuple[ItemChange, ...]
    retained: tuple[RetainedItem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if applying the workspace document would change nothing."""
        return not self.changes


class ApiItemConstraints:
    """Finder of conflicts between the changes of a workspace document and items that stay in the catalog.

    Args:
        items: all stored items; those that the API created stay in the catalog.
        retained: stored queries that stay unchanged although the document declares them differently; their names and
            paths stay in use.
        existing_containers: catalog keys of the containers that exist in their Cosmos DB account.
    """

    def __init__(
        self,
        items: Iterable[CatalogItem],
        retained: Iterable[CatalogItem] = (),
        existing_containers: Collection[str] = (),
    ) -> None:
        created = [item for item in items if item.origin is ItemOrigin.API]
        queries = [item for item in created if item.kind == ItemKind.WARM_QUERY]
        named = [*queries, *retained]
        self._names = {item.definition["name"]: item for item in named}
        self._paths = {item.definition["apiPath"]: item for item in named if item.definition.get("apiPath")}
        self._lookups = {item.key: item for item in named}
        self._connections = {
            lookup: item.key
            for item in created
            if item.kind == ItemKind.SURFACE
            for lookup in item.definition["connections"]
        }
        self._surfaces = {item.definition["surface"]: f"warm query {item.key}" for item in queries}
        rules = [item for item in created if item.kind == ItemKind.ALERT_RULE]
        self._watched = {lookup: item.key for item in rules for lookup in item.definition.get("connections", ())}
        self._surfaces |= {item.definition["surface"]: f"alert rule {item.key}" for item in rules}
        self._existing = frozenset(existing_containers)
        self._databases = {
            key.partition("/")[0]: f"{key}, which exists in the account" for key in sorted(existing_containers)
        }
        self._databases |= {
            item.key.partition("/")[0]: f"{item.key}, which was created through the API"
            for item in created
            if item.kind == ItemKind.CONTAINER
        }
        stores = [item for item in items if item.kind == ItemKind.DATA_STORE]
        self._stored_databases = {item.key: _get_database_lookups(item.definition) for item in stores}

    def find_change_conflict(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why a workspace document cannot create or change an item; return None if the change is valid."""
        if kind == ItemKind.WARM_QUERY:
            return self._find_query_conflict(key, definition)
        if kind == ItemKind.DATA_STORE:
            return self._find_container_conflict(
                self._stored_databases.get(key, set()) - _get_database_lookups(definition)
            )
        return None

    def find_removal_conflict(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why an item must stay in the catalog although the workspace document does not declare it.

        Return None if it can be removed.
        """
        if kind == ItemKind.CONNECTION and key in self._connections:
            return f"it is used by surface {self._connections[key]}, which was created through the API"
        if kind == ItemKind.CONNECTION and key in self._watched:
            return f"it is used by alert rule {self._watched[key]}, which was created through the API"
        if kind == ItemKind.SURFACE and key in self._surfaces:
            return f"it is used by {self._surfaces[key]}, which was created through the API"
        if kind == ItemKind.CONTAINER and key in self._existing:
            return "the container exists in the account; delete it from the account first"
        return self._find_container_conflict(_get_database_lookups(definition)) if kind == ItemKind.DATA_STORE else None

    def _find_query_conflict(self, key: str, definition: Mapping[str, Any]) -> str | None:
        name, path = definition["name"], definition["apiPath"]
        for other, clash in (
            (self._names.get(name), "has the same name"),
            (self._lookups.get(name), "has the name of the declared query as its lookup"),
            (self._paths.get(name), "has the name of the declared query as its apiPath"),
            (self._names.get(key), "has the lookup of the declared query as its name"),
            (self._names.get(path), "has the apiPath of the declared query as its name"),
            (self._paths.get(path), "has the same apiPath"),
            (self._lookups.get(path), "has the apiPath of the declared query as its lookup"),
            (self._paths.get(key), "has the lookup of the declared query as its apiPath"),
        ):
            if other is not None and other.key != key:
                origin = (
                    "which was created through the API"
                    if other.origin is ItemOrigin.API
                    else "which is retained unchanged"
                )
                return f"warm query {other.key}, {origin}, {clash}"
        return None

    def _find_container_conflict(self, databases: Iterable[str]) -> str | None:
        used = sorted(database for database in databases if database in self._databases)
        return f"it holds container {self._databases[used[0]]}" if used else None


def _get_database_lookups(definition: Mapping[str, Any]) -> set[str]:
    return {database["lookup"] for database in definition["databases"]}


def plan_changes(document: WorkspaceDocument, stored: StoredCatalog) -> CatalogPlan:
    """Compare a workspace document with the stored catalog; return the changes that the document requires.

    Items created through the API are not changed, even if the document declares them differently. A query keeps its
    stored approval or rejection if the document declares no approval and changes nothing else of the query.

    Raises:
        WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED`` if the document declares another workspace.
    """
    return plan_items(definitions_from_document(document), stored)


def plan_items(
    declared: Mapping[ItemId, dict[str, Any]],
    stored: StoredCatalog,
    draft_queries: Collection[str] = (),
    existing_containers: Collection[str] = (),
) -> CatalogPlan:
    """Compare declared definitions with the stored catalog, by the rules of :func:`plan_changes`.

    Args:
        declared: declared definitions by kind and key.
        stored: catalog before the changes.
        draft_queries: lookups (ids in URLs) of warm queries that become drafts even if they are otherwise unchanged.
        existing_containers: catalog keys of undeclared containers that exist in their Cosmos DB account; they are
            retained.

    Raises:
        WorkspaceError: the same errors as :func:`plan_changes`.
    """
    stored_items = {(item.kind, item.key): item for item in stored.items}
    _check_workspace_id(declared, stored_items)
    comparison = _Comparison(stored_items, frozenset(draft_queries), existing_containers)
    entries = [*_plan_declared_items(declared, comparison), *_plan_undeclared_items(declared, comparison)]
    changes = [entry for entry in entries if isinstance(entry, ItemChange)]
    retained = [entry for entry in entries if isinstance(entry, RetainedItem)]
    return CatalogPlan(
        tuple(sorted(changes, key=_get_change_sort_key)),
        tuple(sorted(retained, key=lambda entry: (ORDER[entry.kind], entry.key))),
    )


def _get_change_sort_key(change: ItemChange) -> tuple[bool, int, str]:
    """Return a sort key for changes: removals come last, and an item's dependants are removed before the item."""
    place = ORDER[change.kind]
    return change.after is None, -place if change.after is None else place, change.key


def _check_workspace_id(declared: Mapping[ItemId, dict[str, Any]], stored_items: Mapping[ItemId, CatalogItem]) -> None:
    workspace = stored_items.get((ItemKind.WORKSPACE, SINGLETON_KEY))
    declared_id = declared[ItemKind.WORKSPACE, SINGLETON_KEY]["id"]
    if workspace is not None and workspace.definition["id"] != declared_id:
        stored_id = workspace.definition["id"]
        detail = f"This deployment serves the workspace {stored_id!r}, but the document declares {declared_id!r}."
        raise WorkspaceError(Kind.CONFLICT, "WORKSPACE_ID_FIXED", detail)


class _Comparison:
    """Comparison of the declared with the stored definitions of catalog items; the results are cached.

    Args:
        stored_items: stored items by kind and key.
        draft_queries: lookups (ids in URLs) of warm queries that become drafts even if they are otherwise unchanged.
        existing_containers: catalog keys of undeclared containers that exist in their Cosmos DB account.
    """

    def __init__(
        self,
        stored_items: Mapping[ItemId, CatalogItem],
        draft_queries: Collection[str],
        existing_containers: Collection[str],
    ) -> None:
        self.stored_items = stored_items
        self.existing = existing_containers
        self._drafts = draft_queries
        self._pairs: dict[ItemId, tuple[dict[str, Any] | None, dict[str, Any]]] = {}

    def get_definitions_before_and_after(
        self, kind: str, key: str, definition: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return two definitions of a catalog item: before and after the workspace document is applied.

        ``definition`` is the declared definition. The definition before is None for a new item.
        """
        if (kind, key) not in self._pairs:
            item = self.stored_items.get((kind, key))
            before = None if item is None else definition
            if item is not None and item.definition != definition:
                before = build_definition_with_defaults(item)
            keeps_approval = kind == ItemKind.WARM_QUERY and key not in self._drafts
            after = _retain_decision_if_unchanged(definition, before) if keeps_approval else definition
            self._pairs[kind, key] = before, after
        return self._pairs[kind, key]


def _plan_declared_items(
    declared: Mapping[ItemId, dict[str, Any]], comparison: _Comparison
) -> Iterator[ItemChange | RetainedItem]:
    constraints = _build_constraints(declared, comparison)
    for (kind, key), definition in declared.items():
        item = comparison.stored_items.get((kind, key))
        before, after = comparison.get_definitions_before_and_after(kind, key, definition)
        if item is not None and item.origin is ItemOrigin.API:
            same = _remove_rejection(before) == definition
            yield RetainedItem(
                kind,
                key,
                "created through the API" if same else "created through the API with another definition",
                not same,
            )
        elif before != after and (reason := constraints.find_change_conflict(kind, key, after)):
            yield RetainedItem(kind, key, reason, conflict=True)
        elif before != after:
            yield ItemChange(kind, key, before, after)


def _build_constraints(declared: Mapping[ItemId, dict[str, Any]], comparison: _Comparison) -> ApiItemConstraints:
    """Build the constraints on a workspace document's changes that result from items which stay in the catalog.

    Items that the API created stay. A query that stays can prevent the change of another query, which then also stays,
    so the search repeats until it finds no further query.
    """
    declared_queries = {
        key: item
        for (kind, key), item in comparison.stored_items.items()
        if kind == ItemKind.WARM_QUERY and item.origin is ItemOrigin.DECLARED and (kind, key) in declared
    }
    retained: dict[str, CatalogItem] = {}
    while True:
        constraints = ApiItemConstraints(comparison.stored_items.values(), retained.values(), comparison.existing)
        added = {
            key: item
            for key, item in declared_queries.items()
            if key not in retained
            and _is_query_retained(constraints, key, declared[ItemKind.WARM_QUERY, key], comparison)
        }
        if not added:
            return constraints
        retained |= added


def _is_query_retained(
    constraints: ApiItemConstraints, key: str, definition: dict[str, Any], comparison: _Comparison
) -> bool:
    before, after = comparison.get_definitions_before_and_after(ItemKind.WARM_QUERY, key, definition)
    return before != after and constraints.find_change_conflict(ItemKind.WARM_QUERY, key, after) is not None


def _plan_undeclared_items(
    declared: Mapping[ItemId, dict[str, Any]], comparison: _Comparison
) -> Iterator[ItemChange | RetainedItem]:
    constraints = ApiItemConstraints(comparison.stored_items.values(), existing_containers=comparison.existing)
    for (kind, key), item in comparison.stored_items.items():
        if (kind, key) in declared or kind in UNDECLARED:
            continue
        if item.origin is ItemOrigin.API:
            yield RetainedItem(kind, key, "created through the API", conflict=False)
        elif reason := constraints.find_removal_conflict(kind, key, item.definition):
            yield RetainedItem(kind, key, reason, conflict=True)
        else:
            yield ItemChange(kind, key, build_definition_with_defaults(item), None)


def build_definition_with_defaults(item: CatalogItem) -> dict[str, Any]:
    """Return a stored definition with default values, so that a new default is not reported as a change of the item.

    A definition that this version of the service cannot parse is returned unchanged.
    """
    try:
        return to_definition(MODELS[ItemKind(item.kind)].model_validate(item.definition))
    except ValidationError:
        return item.definition


def _remove_rejection(definition: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the definition of a saved query without its rejection, because workspace documents cannot declare one."""
    return {name: value for name, value in (definition or {}).items() if name != "rejection"}


def _retain_decision_if_unchanged(definition: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    if before is None or definition["approval"] is not None:
        return definition
    decisions = {name: before[name] for name in ("approval", "rejection") if name in before}
    decided = definition | decisions
    return decided if decided == before else definition
