"""Conversion of catalog changes to the records of one transaction: items, deletions and audit events.

Separate from ``service`` because it is pure computation; the service reads and stores.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemId, ItemKind
from shared.catalog.member_states import derive_member_states
from shared.catalog.ports import CONTEXT, UNAUDITED, CatalogItem, ItemOrigin, PendingEvent, StoredCatalog
from shared.provenance.ports import Target
from shared.runtime import Runtime
from shared.timestamps import rfc3339

SINGLE: Final = frozenset({ItemKind.WORKSPACE, ItemKind.SETTINGS})
"""Kinds of catalog items that exist once in a workspace."""

ACCESS_KINDS: Final = frozenset({ItemKind.MEMBER, ItemKind.OAUTH_CLIENT})
"""Kinds of catalog items that decide who has access."""


@dataclass(frozen=True, slots=True)
class CatalogCommit:
    """Records of a set of catalog changes, which one transaction stores.

    Attributes:
        puts: items to create or replace.
        deletes: kinds and keys of items to delete.
        events: audit events of the changes; those of warm queries (saved KQL queries) are also announced to webhooks.
        audited: True if the workspace has provenance, so that the events are appended to audit chains.
    """

    puts: Sequence[CatalogItem]
    deletes: Sequence[ItemId]
    events: Sequence[PendingEvent]
    audited: bool


def build_commit(
    changes: Sequence[ItemChange], stored: StoredCatalog, actor: str, origin: ItemOrigin, runtime: Runtime
) -> CatalogCommit:
    """Build the records that one transaction stores for a set of catalog changes.

    Args:
        changes: additions, edits and removals of items.
        stored: the catalog before the changes.
        actor: the user who makes the changes.
        origin: origin of new items: a workspace document or the API.
        runtime: source of the time and of event ids.
    """
    at = runtime.now()
    previous = {(item.kind, item.key): item for item in stored.items}
    puts = [
        build_item(change, previous.get((change.kind, change.key)), actor, origin, at)
        for change in changes
        if change.after is not None
    ]
    puts += derive_member_states(changes, stored, actor, at)
    deletes = [(change.kind, change.key) for change in changes if change.after is None]
    head = AuditContext.from_catalog(stored, puts)
    editors = {(item.kind, item.key): item.edited_by for item in puts}
    events = [
        _add_announcement_data(
            build_event(change, actor, head.workspace, change.append_id or runtime.new_id()), change, editors, at, head
        )
        for change in changes
        if head.audited or change.kind == ItemKind.WARM_QUERY
    ]
    return CatalogCommit(puts, deletes, events, head.audited)


def build_item(
    change: ItemChange, previous: CatalogItem | None, actor: str, origin: ItemOrigin, at: datetime
) -> CatalogItem:
    """Build the stored form of a catalog item after a change.

    Args:
        change: an addition or an edit.
        previous: the item before the change; its origin and creation time are retained.
        actor: the user who makes the change.
        origin: origin of a new item: a workspace document or the API.
        at: time of the change.
    """
    definition = change.after or {}
    if previous is None:
        return CatalogItem(change.kind, change.key, definition, origin, at, at, actor)
    updated_at, edited_by = (at, actor) if change.is_edit else (previous.updated_at, previous.edited_by)
    return CatalogItem(change.kind, change.key, definition, previous.origin, previous.created_at, updated_at, edited_by)


@dataclass(frozen=True, slots=True)
class AuditContext:
    """Workspace data that the audit events of a catalog change need, as of after the change.

    Attributes:
        workspace: id of the workspace; empty before the first document is applied.
        audited: True if the workspace has provenance, so that the events are appended to audit chains.
    """

    workspace: str
    audited: bool

    @classmethod
    def from_catalog(cls, stored: StoredCatalog, puts: Iterable[CatalogItem]) -> "AuditContext":
        """Build the context from the stored catalog and the items that a change adds or replaces."""
        previous = {item.kind: item.definition for item in (*stored.items, *puts) if item.kind in SINGLE}
        settings = previous.get(ItemKind.SETTINGS)
        audited = settings is not None and settings["policies"]["provenance"] is not None
        return cls(previous.get(ItemKind.WORKSPACE, {}).get("id", ""), audited)


def _add_announcement_data(
    event: PendingEvent, change: ItemChange, editors: Mapping[ItemId, str], at: datetime, head: AuditContext
) -> PendingEvent:
    """Add editor and time to the audit event of a changed saved query, for the announcement of the change."""
    if change.kind != ItemKind.WARM_QUERY:
        return event
    context = {"editedBy": editors.get((change.kind, change.key), event.user_id), "changedAt": rfc3339(at)}
    target = event.target if head.audited else UNAUDITED
    return replace(event, target=target, event={**event.event, CONTEXT: context})


def build_event(change: ItemChange, actor: str, workspace: str, event_id: str) -> PendingEvent:
    """Build the audit event of a catalog change.

    Events of members and OAuth clients are appended to the audit chain ``AccessControl``, all others to
    ``PlatformConfig``. Items that exist once in a workspace are identified by the id of the workspace.
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
    target = Target.ACCESS_CONTROL if change.kind in ACCESS_KINDS else Target.PLATFORM_CONFIG
    return PendingEvent(event_id, target, actor, event)
