"""What a change of the catalog leaves behind: the item as stored, and its audit event."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind
from shared.catalog.ports import CatalogItem, ItemOrigin, PendingEvent, StoredCatalog
from shared.provenance.ports import Target

SINGLE: Final = frozenset({ItemKind.WORKSPACE, ItemKind.SETTINGS})
"""Kinds of which a workspace has one item."""


def build_item(
    change: ItemChange, held: CatalogItem | None, actor: str, origin: ItemOrigin, at: datetime
) -> CatalogItem:
    """Return an item as a change leaves it.

    Args:
        change: an addition or an edit.
        held: the item so far; its origin and the time of its creation stay.
        actor: who makes the change.
        origin: of an item that is new.
        at: when.
    """
    definition = change.after or {}
    if held is None:
        return CatalogItem(change.kind, change.key, definition, origin, at, at, actor)
    updated_at, edited_by = (at, actor) if change.is_edit else (held.updated_at, held.edited_by)
    return CatalogItem(change.kind, change.key, definition, held.origin, held.created_at, updated_at, edited_by)


@dataclass(frozen=True, slots=True)
class AuditContext:
    """What the events of a change need to know of the workspace, as of after the change.

    Attributes:
        workspace: its id, empty before a document was applied.
        audited: whether it has provenance.
    """

    workspace: str
    audited: bool

    @classmethod
    def of(cls, stored: StoredCatalog, puts: Iterable[CatalogItem]) -> "AuditContext":
        """Return the head of a catalog with changed items in it."""
        held = {item.kind: item.definition for item in (*stored.items, *puts) if item.kind in SINGLE}
        settings = held.get(ItemKind.SETTINGS)
        audited = settings is not None and settings["policies"]["provenance"] is not None
        return cls(held.get(ItemKind.WORKSPACE, {}).get("id", ""), audited)


def build_event(change: ItemChange, actor: str, workspace: str) -> PendingEvent:
    """Return the audit event of a change.

    Members go to the AccessControl chain, everything else to PlatformConfig. What there is once in a workspace is
    called by the workspace's id.
    """
    entity_type = change.kind[0].upper() + change.kind[1:]
    event: dict[str, Any] = {
        "ActionType": f"Catalog.{entity_type}.{change.verb}",
        "EntityType": entity_type,
        "EntityID": workspace if change.kind in SINGLE else change.key,
    }
    if change.before is not None:
        event["BeforeState"] = change.before
    if change.after is not None:
        event["AfterState"] = change.after
    target = Target.ACCESS_CONTROL if change.kind == ItemKind.MEMBER else Target.PLATFORM_CONFIG
    return PendingEvent(uuid4().hex, target, actor, event)
