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
from shared.text_formats.json_comparison import is_same_json

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
        append_id: id of the audit event of the change; empty to create a new id.
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

    @property
    def retained_query_lookups(self) -> set[str]:
        """Lookups (ids in URLs) of the warm queries in ``retained``, which still exist after the plan is applied."""
        return {item.key for item in self.retained if item.kind == ItemKind.WARM_QUERY}


class ApiItemConstraints:
    """Finder of conflicts between the changes of a workspace document and items that stay in the catalog.

    Args:
        items: all stored items; those that the API created stay in the catalog.
        existing_container_keys: catalog keys of the containers that exist in their Cosmos DB account.
    """

    def __init__(self, items: Iterable[CatalogItem], existing_container_keys: Collection[str] = ()) -> None:
        self._names: dict[str, CatalogItem] = {}
        self._paths: dict[str, CatalogItem] = {}
        self._lookups: dict[str, CatalogItem] = {}
        self._connections: dict[str, str] = {}
        self._surfaces: dict[str, str] = {}
        self._stores: dict[str, CatalogItem] = {}
        self._omitted: dict[str, str] = {}
        self._existing = frozenset(existing_container_keys)
        self._databases = {
            key.partition("/")[0]: f"{key}, which exists in the account" for key in sorted(existing_container_keys)
        }
        self._stored_databases: dict[str, set[str]] = {}
        for item in items:
            if item.kind == ItemKind.DATA_STORE:
                self._stored_databases[item.key] = get_database_lookups(item.definition)
            if item.origin is ItemOrigin.API:
                self.add_retained_item(item)

    def add_retained_item(self, item: CatalogItem) -> None:
        """Add a stored item that stays unchanged.

        Other items cannot take its unique values, such as the API path of a query, and the items that it uses cannot be
        removed.
        """
        definition = item.definition
        if item.kind == ItemKind.WARM_QUERY:
            self._names[definition["name"]] = self._lookups[item.key] = item
            if definition.get("apiPath"):
                self._paths[definition["apiPath"]] = item
            self._surfaces[definition["surface"]] = f"warm query {_describe_retained_item(item)}"
        elif item.kind == ItemKind.SURFACE:
            self._connections |= dict.fromkeys(definition["connections"], f"surface {_describe_retained_item(item)}")
        elif item.kind == ItemKind.ALERT_RULE:
            rule = f"alert rule {_describe_retained_item(item)}"
            self._connections |= dict.fromkeys(definition.get("connections", ()), rule)
            self._surfaces[definition["surface"]] = rule
        elif item.kind == ItemKind.DATA_STORE:
            self._stores |= dict.fromkeys(get_database_lookups(definition), item)
        elif item.kind == ItemKind.CONTAINER:
            self._databases.setdefault(item.key.partition("/")[0], _describe_retained_item(item))

    def record_omitted_databases(self, store_lookup: str, definition: Mapping[str, Any]) -> None:
        """Record that a data store stays unchanged because of a conflict, so that it gets no new databases.

        If the workspace document moves a database to this data store, the data store that has the database keeps it.

        Args:
            store_lookup: lookup (id in URLs) of the unchanged data store.
            definition: definition of the data store in the workspace document.
        """
        added = get_database_lookups(definition) - self._stored_databases.get(store_lookup, set())
        self._omitted |= dict.fromkeys(added, store_lookup)

    def find_change_conflict(self, kind: str, key: str, definition: Mapping[str, Any]) -> str | None:
        """Return why a workspace document cannot create or change an item; return None if the change is valid."""
        if kind == ItemKind.WARM_QUERY:
            return self._find_query_conflict(key, definition)
        if kind == ItemKind.DATA_STORE:
            return self._find_data_store_conflict(key, get_database_lookups(definition))
        database = key.partition("/")[0]
        if kind == ItemKind.CONTAINER and database in self._omitted:
            return f"its database {database} is not added to data store {self._omitted[database]}"
        return None

    def find_removal_conflict(self, kind: str, key: str) -> str | None:
        """Return why an item must stay in the catalog although the workspace document does not declare it.

        Return None if it can be removed.
        """
        if kind == ItemKind.CONNECTION and key in self._connections:
            return f"it is used by {self._connections[key]}"
        if kind == ItemKind.SURFACE and key in self._surfaces:
            return f"it is used by {self._surfaces[key]}"
        if kind == ItemKind.CONTAINER and key in self._existing:
            return "the container exists in the account; delete it from the account first"
        return self._find_data_store_conflict(key, set()) if kind == ItemKind.DATA_STORE else None

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
                return f"warm query {_describe_retained_item(other)}, {clash}"
        return None

    def _find_data_store_conflict(self, key: str, declared_databases: set[str]) -> str | None:
        before = self._stored_databases.get(key, set())
        for database in sorted(declared_databases - before):
            if (owner := self._stores.get(database)) is not None:
                return f"data store {_describe_retained_item(owner)}, has the database {database}"
        removed = sorted(before - declared_databases)
        for database in removed:
            if database in self._databases:
                return f"it holds container {self._databases[database]}"
        for database in removed:
            if database in self._omitted:
                return f"its database {database} is not added to data store {self._omitted[database]}"
        return None


def _describe_retained_item(item: CatalogItem) -> str:
    """Return a text with the key of an item and why it stays: ``pumps, which was created through the API``."""
    is_created = item.origin is ItemOrigin.API
    return f"{item.key}, which {'was created through the API' if is_created else 'is retained unchanged'}"


def get_database_lookups(definition: Mapping[str, Any]) -> set[str]:
    """Return the lookups of the databases in the definition of a data store."""
    return {database["lookup"] for database in definition["databases"]}


def plan_changes(document: WorkspaceDocument, stored: StoredCatalog) -> CatalogPlan:
    """Compare a workspace document with the stored catalog; return the changes that the document requires.

    Items created through the API are not changed, even if the document declares them differently. A query keeps its
    stored approval or rejection if the document declares no approval and changes nothing else of the query.

    Raises:
        WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED`` if the document declares another workspace.
    """
    return plan_changes_of_definitions(definitions_from_document(document), stored)


def plan_changes_of_definitions(
    declared_definitions: Mapping[ItemId, dict[str, Any]],
    stored: StoredCatalog,
    draft_query_lookups: Collection[str] = (),
    existing_container_keys: Collection[str] = (),
) -> CatalogPlan:
    """Compare declared definitions with the stored catalog, by the rules of :func:`plan_changes`.

    Args:
        declared_definitions: declared definitions by kind and key.
        stored: catalog before the changes.
        draft_query_lookups: lookups (ids in URLs) of warm queries that become drafts even if they are otherwise
            unchanged.
        existing_container_keys: catalog keys of containers that the document does not declare, but that exist in their
            Cosmos DB account; they stay in the catalog.

    Raises:
        WorkspaceError: the same errors as :func:`plan_changes`.
    """
    stored_items = {(item.kind, item.key): item for item in stored.items}
    _check_workspace_id_unchanged(declared_definitions, stored_items)
    comparison = _Comparison(stored_items, frozenset(draft_query_lookups), existing_container_keys)
    constraints = _build_constraints(declared_definitions, comparison)
    entries = [
        *_plan_declared_items(declared_definitions, comparison, constraints),
        *_plan_undeclared_items(declared_definitions, comparison, constraints),
    ]
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


def _check_workspace_id_unchanged(
    declared_definitions: Mapping[ItemId, dict[str, Any]], stored_items: Mapping[ItemId, CatalogItem]
) -> None:
    workspace = stored_items.get((ItemKind.WORKSPACE, SINGLETON_KEY))
    declared_id = declared_definitions[ItemKind.WORKSPACE, SINGLETON_KEY]["id"]
    if workspace is not None and workspace.definition["id"] != declared_id:
        stored_id = workspace.definition["id"]
        detail = f"This deployment serves the workspace {stored_id!r}, but the document declares {declared_id!r}."
        raise WorkspaceError(Kind.CONFLICT, "WORKSPACE_ID_FIXED", detail)


class _Comparison:
    """Comparison of the declared with the stored definitions of catalog items; the results are cached.

    Args:
        stored_items: stored items by kind and key.
        draft_queries: lookups (ids in URLs) of warm queries that become drafts even if they are otherwise unchanged.
        existing_container_keys: catalog keys of containers that the document does not declare, but that exist in their
            Cosmos DB account.
    """

    def __init__(
        self,
        stored_items: Mapping[ItemId, CatalogItem],
        draft_queries: Collection[str],
        existing_container_keys: Collection[str],
    ) -> None:
        self.stored_items = stored_items
        self.existing = existing_container_keys
        self._drafts = draft_queries
        self._pairs: dict[ItemId, tuple[dict[str, Any] | None, dict[str, Any]]] = {}

    def get_stored_and_planned_definition(
        self, kind: str, key: str, declared_definition: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return the stored definition of a catalog item, and its definition after the workspace document is applied.

        The stored definition includes default values; it is None for a new item. The definition afterwards is
        ``declared_definition``. A warm query also keeps its stored approval or rejection, unless the document declares
        an approval, changes something else of the query, or makes it a draft.

        Args:
            kind: kind of the item.
            key: key of the item in the catalog.
            declared_definition: definition in the workspace document.
        """
        if (kind, key) not in self._pairs:
            item = self.stored_items.get((kind, key))
            before = None if item is None else declared_definition
            if item is not None and not is_same_json(item.definition, declared_definition):
                before = build_definition_with_defaults(item)
            keeps_approval = kind == ItemKind.WARM_QUERY and key not in self._drafts
            after = (
                _add_stored_approval_or_rejection(declared_definition, before)
                if keeps_approval
                else declared_definition
            )
            self._pairs[kind, key] = before, after
        return self._pairs[kind, key]


def _plan_declared_items(
    declared_definitions: Mapping[ItemId, dict[str, Any]], comparison: _Comparison, constraints: ApiItemConstraints
) -> Iterator[ItemChange | RetainedItem]:
    for (kind, key), definition in declared_definitions.items():
        item = comparison.stored_items.get((kind, key))
        before, after = comparison.get_stored_and_planned_definition(kind, key, definition)
        if item is not None and item.origin is ItemOrigin.API:
            same = is_same_json(_remove_rejection(before), definition)
            yield RetainedItem(
                kind,
                key,
                "created through the API" if same else "created through the API with another definition",
                not same,
            )
        elif is_same_json(before, after):
            continue
        elif (reason := constraints.find_change_conflict(kind, key, after)) is not None:
            yield RetainedItem(kind, key, reason, conflict=True)
        else:
            yield ItemChange(kind, key, before, after)


def _build_constraints(
    declared_definitions: Mapping[ItemId, dict[str, Any]], comparison: _Comparison
) -> ApiItemConstraints:
    """Find all stored items that stay unchanged, and build the constraints that they put on the document's changes.

    Items that the API created stay. An item that stays can prevent the change or removal of another item, which then
    also stays. The search therefore repeats until it finds no further item.
    """
    constraints = ApiItemConstraints(comparison.stored_items.values(), comparison.existing)
    others = [key for key, item in comparison.stored_items.items() if item.origin is ItemOrigin.DECLARED]
    others += [
        key for key in declared_definitions if key[0] == ItemKind.DATA_STORE and key not in comparison.stored_items
    ]
    while True:
        remaining = [
            key
            for key in others
            if not _try_retain_conflicting_item(key, declared_definitions, comparison, constraints)
        ]
        if len(remaining) == len(others):
            return constraints
        others = remaining


def _try_retain_conflicting_item(
    item_id: ItemId,
    declared_definitions: Mapping[ItemId, dict[str, Any]],
    comparison: _Comparison,
    constraints: ApiItemConstraints,
) -> bool:
    """Add an item to the constraints if a conflict prevents its change or removal; return False without a conflict."""
    item, definition = comparison.stored_items.get(item_id), declared_definitions.get(item_id)
    if definition is None:
        conflict = constraints.find_removal_conflict(*item_id)
    else:
        before, after = comparison.get_stored_and_planned_definition(*item_id, definition)
        conflict = None if is_same_json(before, after) else constraints.find_change_conflict(*item_id, after)
    if conflict is None:
        return False
    if item is not None:
        constraints.add_retained_item(item)
    if item_id[0] == ItemKind.DATA_STORE and definition is not None:
        constraints.record_omitted_databases(item_id[1], definition)
    return True


def _plan_undeclared_items(
    declared_definitions: Mapping[ItemId, dict[str, Any]], comparison: _Comparison, constraints: ApiItemConstraints
) -> Iterator[ItemChange | RetainedItem]:
    for (kind, key), item in comparison.stored_items.items():
        if (kind, key) in declared_definitions or kind in UNDECLARED:
            continue
        if item.origin is ItemOrigin.API:
            yield RetainedItem(kind, key, "created through the API", conflict=False)
        elif reason := constraints.find_removal_conflict(kind, key):
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


def _add_stored_approval_or_rejection(declared: dict[str, Any], stored: dict[str, Any] | None) -> dict[str, Any]:
    """Return a query's declared definition with the stored approval or rejection if nothing else changes.

    Return the declared definition unchanged if the query is new or declares an approval, or if another field changes.
    """
    if stored is None or declared["approval"] is not None:
        return declared
    decisions = {name: stored[name] for name in ("approval", "rejection") if name in stored}
    decided = declared | decisions
    return decided if is_same_json(decided, stored) else declared
