"""What applying a document would change in the stored catalog."""

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
    """One item added, changed or removed.

    Attributes:
        kind: the item's kind.
        key: the item's key.
        before: its definition so far, None for an added item.
        after: its definition from now on, None for a removed item.
        action: what the audit event calls it instead of ``Created``, ``Updated`` or ``Removed``.
        is_edit: whether the actor becomes the item's last editor; an approval is none.
    """

    kind: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    action: str = ""
    is_edit: bool = True

    @property
    def verb(self) -> str:
        """The last part of the audit event's ActionType."""
        if self.action:
            return self.action
        if self.before is None:
            return "Created"
        return "Removed" if self.after is None else "Updated"


@dataclass(frozen=True, slots=True)
class RetainedItem:
    """An item that apply leaves as it is stored.

    Attributes:
        kind: the item's kind.
        key: the item's key.
        reason: why.
        conflict: whether the document asks for something else.
    """

    kind: str
    key: str
    reason: str
    conflict: bool


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """What apply would do: changes in the order in which they are made, and what it leaves alone."""

    changes: tuple[ItemChange, ...]
    retained: tuple[RetainedItem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the stored catalog already is as declared."""
        return not self.changes


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


def plan_changes(document: WorkspaceDocument, stored: StoredCatalog) -> CatalogPlan:
    """Return what it takes to make the stored catalog as a document declares it.

    Items made through the API stay as they are; where the document contradicts one, the stored item wins. A query whose
    text is unchanged keeps an approval given since, unless the document names one itself.

    Raises:
        WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED``: the document is another workspace's.
    """
    held = {(item.kind, item.key): item for item in stored.items}
    _same_workspace(document, held)
    declared = items_from_document(document)
    found = [*_declared(declared, held), *_undeclared(declared, held)]
    changes = [entry for entry in found if isinstance(entry, ItemChange)]
    kept = [entry for entry in found if isinstance(entry, RetainedItem)]
    return CatalogPlan(
        tuple(sorted(changes, key=_order)), tuple(sorted(kept, key=lambda entry: (ORDER[entry.kind], entry.key)))
    )


def _order(change: ItemChange) -> tuple[bool, int, str]:
    """Removals come last, what depends on others first among them."""
    place = ORDER[change.kind]
    return change.after is None, -place if change.after is None else place, change.key


def _same_workspace(document: WorkspaceDocument, held: Mapping[ItemId, CatalogItem]) -> None:
    workspace = held.get((ItemKind.WORKSPACE, SINGLETON_KEY))
    if workspace is not None and workspace.definition["id"] != document.workspace.id:
        stored_id = workspace.definition["id"]
        detail = f"this deployment serves workspace {stored_id}, the document declares {document.workspace.id}"
        raise WorkspaceError(Kind.CONFLICT, "WORKSPACE_ID_FIXED", detail)


def _declared(
    declared: Mapping[ItemId, dict[str, Any]], held: Mapping[ItemId, CatalogItem]
) -> Iterator[ItemChange | RetainedItem]:
    api_made = _api_made(declared, held)
    for (kind, key), definition in declared.items():
        item = held.get((kind, key))
        before, after = _before_and_after(kind, definition, item)
        if item is not None and item.origin is ItemOrigin.API:
            same = before == definition
            yield RetainedItem(
                kind, key, "made through the API" if same else "made otherwise through the API", not same
            )
        elif before != after and (reason := api_made.objection(kind, key, after)):
            yield RetainedItem(kind, key, reason, conflict=True)
        elif before != after:
            yield ItemChange(kind, key, before, after)


def _api_made(declared: Mapping[ItemId, dict[str, Any]], held: Mapping[ItemId, CatalogItem]) -> ApiItemConstraints:
    """Return the checks against what stays; a query that has to stay may keep the next one from changing."""
    declared_queries = {
        key: item
        for (kind, key), item in held.items()
        if kind == ItemKind.WARM_QUERY and item.origin is ItemOrigin.DECLARED and (kind, key) in declared
    }
    kept: dict[str, CatalogItem] = {}
    while True:
        api_made = ApiItemConstraints(held.values(), kept.values())
        more = {
            key: item
            for key, item in declared_queries.items()
            if key not in kept and _has_to_stay(api_made, declared[ItemKind.WARM_QUERY, key], item)
        }
        if not more:
            return api_made
        kept |= more


def _has_to_stay(api_made: ApiItemConstraints, definition: dict[str, Any], item: CatalogItem) -> bool:
    before, after = _before_and_after(item.kind, definition, item)
    return before != after and api_made.objection(item.kind, item.key, after) is not None


def _before_and_after(
    kind: str, definition: dict[str, Any], item: CatalogItem | None
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    before = None if item is None else _normal(item)
    return before, _keep_approval(kind, definition, before)


def _undeclared(
    declared: Mapping[ItemId, dict[str, Any]], held: Mapping[ItemId, CatalogItem]
) -> Iterator[ItemChange | RetainedItem]:
    api_made = ApiItemConstraints(held.values())
    for (kind, key), item in held.items():
        if (kind, key) in declared:
            continue
        if item.origin is ItemOrigin.API:
            yield RetainedItem(kind, key, "made through the API", conflict=False)
        elif reason := api_made.need(kind, key, item.definition):
            yield RetainedItem(kind, key, reason, conflict=True)
        else:
            yield ItemChange(kind, key, _normal(item), None)


def _normal(item: CatalogItem) -> dict[str, Any]:
    """Return a stored definition as this version writes it, so that a new default is no change."""
    try:
        return to_definition(MODELS[ItemKind(item.kind)].model_validate(item.definition))
    except ValidationError:
        return item.definition


def _keep_approval(kind: str, definition: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    if kind != ItemKind.WARM_QUERY or before is None or definition["approval"] is not None:
        return definition
    approved = {**definition, "approval": before.get("approval")}
    return approved if approved == before else definition
