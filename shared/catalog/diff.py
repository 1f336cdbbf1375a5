"""Differences between a workspace document and the stored catalog."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from shared.catalog.items import MODELS, SINGLETON_KEY, ItemId, ItemKind, items_from_document, to_definition
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.errors import Kind, WorkspaceError

ORDER: Final[Mapping[str, int]] = {kind: place for place, kind in enumerate(ItemKind)}


@dataclass(frozen=True, slots=True)
class ItemChange:
    """Addition, change or removal of one item.

    Attributes:
        kind: kind of the item.
        key: key of the item.
        before: definition before the change; None for a new item.
        after: definition after the change; None for a removed item.
        action: verb in the audit event; replaces ``Created``, ``Updated`` or ``Removed`` if not empty.
        is_edit: whether the actor becomes the last editor of the item; an approval does not count as an edit.
    """

    kind: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    action: str = ""
    is_edit: bool = True

    @property
    def verb(self) -> str:
        """Last part of the audit event's ActionType."""
        if self.action:
            return self.action
        if self.before is None:
            return "Created"
        return "Removed" if self.after is None else "Updated"


@dataclass(frozen=True, slots=True)
class RetainedItem:
    """Item that an apply does not change.

    Attributes:
        kind: kind of the item.
        key: key of the item.
        reason: why the item is retained.
        conflict: whether the document declares a different definition, or no longer declares the item.
    """

    kind: str
    key: str
    reason: str
    conflict: bool


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """Changes that an apply makes, in order, and the items that it retains."""

    changes: tuple[ItemChange, ...]
    retained: tuple[RetainedItem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if the plan has no changes."""
        return not self.changes


class ApiItemConstraints:
    """Conflicts between declared changes and items created through the API.

    Args:
        items: all stored items.
        retained: declared queries that an apply does not change; their names and paths stay in use.
    """

    def __init__(self, items: Iterable[CatalogItem], retained: Iterable[CatalogItem] = ()) -> None:
        created = [item for item in items if item.origin is ItemOrigin.API]
        queries = [item for item in created if item.kind == ItemKind.WARM_QUERY]
        named = [*queries, *retained]
        self._names = {item.definition["name"]: item for item in named}
        self._paths = {item.definition["apiPath"]: item for item in named if item.definition.get("apiPath")}
        self._lookups = {item.key: item for item in named}
        self._surfaces = {item.definition["surface"]: item.key for item in queries}
        self._databases = {item.key.partition("/")[0]: item.key for item in created if item.kind == ItemKind.CONTAINER}
        stores = [item for item in items if item.kind == ItemKind.DATA_STORE]
        self._stored_databases = {item.key: _database_lookups(item.definition) for item in stores}

    def find_conflict(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why a declared item cannot be changed as declared; None if it can."""
        if kind == ItemKind.WARM_QUERY:
            return self._find_query_conflict(key, definition)
        if kind == ItemKind.DATA_STORE:
            return self._find_container_dependant(
                self._stored_databases.get(key, set()) - _database_lookups(definition)
            )
        return None

    def find_dependant(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why an item that is no longer declared cannot be removed; None if it can."""
        if kind == ItemKind.SURFACE and key in self._surfaces:
            return f"it is used by warm query {self._surfaces[key]}, which was created through the API"
        return self._find_container_dependant(_database_lookups(definition)) if kind == ItemKind.DATA_STORE else None

    def _find_query_conflict(self, key: str, definition: Mapping[str, Any]) -> str | None:
        name, path = definition["name"], definition["apiPath"]
        for other, clash in (
            (self._names.get(name), "has the same name"),
            (self._lookups.get(name), "uses its name as lookup"),
            (self._paths.get(name), "uses its name as apiPath"),
            (self._names.get(key), "uses its lookup as name"),
            (self._names.get(path), "uses its apiPath as name"),
            (self._paths.get(path), "has the same apiPath"),
            (self._lookups.get(path), "uses its apiPath as lookup"),
            (self._paths.get(key), "uses its lookup as apiPath"),
        ):
            if other is not None and other.key != key:
                origin = (
                    "which was created through the API"
                    if other.origin is ItemOrigin.API
                    else "which is retained unchanged"
                )
                return f"warm query {other.key}, {origin}, {clash}"
        return None

    def _find_container_dependant(self, databases: Iterable[str]) -> str | None:
        used = sorted(database for database in databases if database in self._databases)
        return f"it holds container {self._databases[used[0]]}, which was created through the API" if used else None


def _database_lookups(definition: Mapping[str, Any]) -> set[str]:
    return {database["lookup"] for database in definition["databases"]}


def plan_changes(document: WorkspaceDocument, stored: StoredCatalog) -> CatalogPlan:
    """Return the changes that make the stored catalog match a document.

    Items created through the API are not changed; a stored item wins over the document. A query whose text is
    unchanged keeps its approval, unless the document declares an approval.

    Raises:
        WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED`` if the document declares another workspace.
    """
    stored_items = {(item.kind, item.key): item for item in stored.items}
    _check_workspace(document, stored_items)
    declared = items_from_document(document)
    entries = [*_plan_declared(declared, stored_items), *_plan_undeclared(declared, stored_items)]
    changes = [entry for entry in entries if isinstance(entry, ItemChange)]
    retained = [entry for entry in entries if isinstance(entry, RetainedItem)]
    return CatalogPlan(
        tuple(sorted(changes, key=_sort_key)), tuple(sorted(retained, key=lambda entry: (ORDER[entry.kind], entry.key)))
    )


def _sort_key(change: ItemChange) -> tuple[bool, int, str]:
    """Order removals last, and dependants before the items that they depend on."""
    place = ORDER[change.kind]
    return change.after is None, -place if change.after is None else place, change.key


def _check_workspace(document: WorkspaceDocument, stored_items: Mapping[ItemId, CatalogItem]) -> None:
    workspace = stored_items.get((ItemKind.WORKSPACE, SINGLETON_KEY))
    if workspace is not None and workspace.definition["id"] != document.workspace.id:
        stored_id = workspace.definition["id"]
        detail = f"this deployment serves workspace {stored_id}, but the document declares {document.workspace.id}"
        raise WorkspaceError(Kind.CONFLICT, "WORKSPACE_ID_FIXED", detail)


def _plan_declared(
    declared: Mapping[ItemId, dict[str, Any]], stored_items: Mapping[ItemId, CatalogItem]
) -> Iterator[ItemChange | RetainedItem]:
    constraints = _build_constraints(declared, stored_items)
    for (kind, key), definition in declared.items():
        item = stored_items.get((kind, key))
        before, after = _before_and_after(kind, definition, item)
        if item is not None and item.origin is ItemOrigin.API:
            same = before == definition
            yield RetainedItem(
                kind,
                key,
                "created through the API" if same else "created through the API with another definition",
                not same,
            )
        elif before != after and (reason := constraints.find_conflict(kind, key, after)):
            yield RetainedItem(kind, key, reason, conflict=True)
        elif before != after:
            yield ItemChange(kind, key, before, after)


def _build_constraints(
    declared: Mapping[ItemId, dict[str, Any]], stored_items: Mapping[ItemId, CatalogItem]
) -> ApiItemConstraints:
    """Return the constraints of all items that are not changed.

    A query that is retained can block the change of another query, so the search repeats until it finds no more.
    """
    declared_queries = {
        key: item
        for (kind, key), item in stored_items.items()
        if kind == ItemKind.WARM_QUERY and item.origin is ItemOrigin.DECLARED and (kind, key) in declared
    }
    retained: dict[str, CatalogItem] = {}
    while True:
        constraints = ApiItemConstraints(stored_items.values(), retained.values())
        added = {
            key: item
            for key, item in declared_queries.items()
            if key not in retained and _is_retained(constraints, declared[ItemKind.WARM_QUERY, key], item)
        }
        if not added:
            return constraints
        retained |= added


def _is_retained(constraints: ApiItemConstraints, definition: dict[str, Any], item: CatalogItem) -> bool:
    before, after = _before_and_after(item.kind, definition, item)
    return before != after and constraints.find_conflict(item.kind, item.key, after) is not None


def _before_and_after(
    kind: str, definition: dict[str, Any], item: CatalogItem | None
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    before = None if item is None else _normalise(item)
    return before, _keep_approval(kind, definition, before)


def _plan_undeclared(
    declared: Mapping[ItemId, dict[str, Any]], stored_items: Mapping[ItemId, CatalogItem]
) -> Iterator[ItemChange | RetainedItem]:
    constraints = ApiItemConstraints(stored_items.values())
    for (kind, key), item in stored_items.items():
        if (kind, key) in declared:
            continue
        if item.origin is ItemOrigin.API:
            yield RetainedItem(kind, key, "created through the API", conflict=False)
        elif reason := constraints.find_dependant(kind, key, item.definition):
            yield RetainedItem(kind, key, reason, conflict=True)
        else:
            yield ItemChange(kind, key, _normalise(item), None)


def _normalise(item: CatalogItem) -> dict[str, Any]:
    """Return a stored definition in the form of this version, so that a new default does not count as a change."""
    try:
        return to_definition(MODELS[ItemKind(item.kind)].model_validate(item.definition))
    except ValidationError:
        return item.definition


def _keep_approval(kind: str, definition: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    if kind != ItemKind.WARM_QUERY or before is None or definition["approval"] is not None:
        return definition
    approved = {**definition, "approval": before.get("approval")}
    return approved if approved == before else definition
