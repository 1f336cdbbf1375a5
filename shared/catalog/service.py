"""Changes to the catalog: saved with their audit events in one step, then entered in the chain."""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from shared.catalog.diff import CatalogPlan, ItemChange, plan_changes
from shared.catalog.items import ItemKind
from shared.catalog.models import WorkspaceDocument
from shared.catalog.outbox import flush_outbox
from shared.catalog.ports import CatalogItem, CatalogStore, ItemOrigin, PendingEvent, StoredCatalog
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.ports import AuditLog, Target
from shared.timestamps import now

ATTEMPTS: Final = 10
FIRST_WAIT_SECONDS: Final = 0.02
SINGLE: Final = frozenset({ItemKind.WORKSPACE, ItemKind.SETTINGS})
"""Kinds of which a workspace has one item."""

_LOG = logs.get_logger("catalog")


@dataclass(frozen=True, slots=True)
class CommittedPlan:
    """What became of a change.

    Attributes:
        plan: what was changed.
        catalog: all items as the change left them; what is stored by now may be another's.
    """

    plan: CatalogPlan
    catalog: StoredCatalog


class CatalogService:
    """Makes changes to the catalog.

    Args:
        store: where the catalog is kept.
        audit_log: where the events of changes go.
        on_change: called after each change; makes this process read the catalog anew.
        clock: gives the current instant.
    """

    def __init__(
        self,
        store: CatalogStore,
        audit_log: AuditLog,
        *,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._store = store
        self._audit_log = audit_log
        self._on_change = on_change
        self._clock = clock
        self._warned = False

    async def plan(self, document: WorkspaceDocument) -> CatalogPlan:
        """Return what :meth:`apply` would do now.

        Raises:
            WorkspaceError: as :meth:`apply`.
        """
        return plan_changes(document, await self._store.load())

    async def apply(self, document: WorkspaceDocument, actor: str) -> CatalogPlan:
        """Make the catalog as a document declares it, and return what that took.

        Args:
            document: a document that was loaded without problems.
            actor: who applies it; becomes the last editor of what changes and the UserID of the events.

        Raises:
            WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED``; CONFLICT ``CATALOG_CHANGED`` when others change the catalog
                without pause; UNAVAILABLE when the store does not answer.
        """

        def decide(stored: StoredCatalog) -> CatalogPlan:
            return plan_changes(document, stored)

        return (await self._commit(decide, actor, ItemOrigin.DECLARED)).plan

    async def change(self, decide: Callable[[StoredCatalog], Sequence[ItemChange]], actor: str) -> CommittedPlan:
        """Make changes that come through the API, and return what became of them.

        Args:
            decide: gives the changes for the catalog as stored; called again when another change came first. What it
                raises is raised here, with nothing changed.
            actor: who makes them.

        Raises:
            WorkspaceError: CONFLICT ``CATALOG_CHANGED`` when others change the catalog without pause; UNAVAILABLE when
                the store does not answer.
        """

        def decided(stored: StoredCatalog) -> CatalogPlan:
            return CatalogPlan(tuple(decide(stored)))

        return await self._commit(decided, actor, ItemOrigin.API)

    async def load(self) -> StoredCatalog:
        """Return the catalog as it is stored now, whatever copies in memory say.

        Raises:
            WorkspaceError: UNAVAILABLE when the store does not answer.
        """
        return await self._store.load()

    async def flush_pending(self) -> int:
        """Enter the events in their chains that no chain is known to hold yet, and return how many.

        Raises:
            WorkspaceError: the audit log's; what was not entered stays pending.
        """
        return await flush_outbox(self._store, self._audit_log)

    async def _commit(
        self, decide: Callable[[StoredCatalog], CatalogPlan], actor: str, origin: ItemOrigin
    ) -> CommittedPlan:
        outcome = await self._save(decide, actor, origin)
        if not outcome.plan.is_empty:
            self._on_change()
        try:
            await self.flush_pending()
        except WorkspaceError:
            _LOG.exception("audit events of the catalog stay pending")
        return outcome

    async def _save(
        self, decide: Callable[[StoredCatalog], CatalogPlan], actor: str, origin: ItemOrigin
    ) -> CommittedPlan:
        for attempt in range(ATTEMPTS):
            stored = await self._store.load()
            planned = decide(stored)
            after = stored if planned.is_empty else await self._saved(planned.changes, stored, actor, origin)
            if after is not None:
                return CommittedPlan(planned, after)
            await asyncio.sleep(random.uniform(0, FIRST_WAIT_SECONDS * 2**attempt))  # noqa: S311  spreads retries, no secret
        raise WorkspaceError(Kind.CONFLICT, "CATALOG_CHANGED", "the catalog is being changed by others; try again")

    async def _saved(
        self, changes: Sequence[ItemChange], stored: StoredCatalog, actor: str, origin: ItemOrigin
    ) -> StoredCatalog | None:
        """Save changes with their events and return the catalog after them; None when it was another by then."""
        held = {(item.kind, item.key): item for item in stored.items}
        at = self._clock()
        puts = [
            build_item(change, held.get((change.kind, change.key)), actor, origin, at)
            for change in changes
            if change.after is not None
        ]
        deletes = [(change.kind, change.key) for change in changes if change.after is None]
        head = AuditContext.from_catalog(stored, puts)
        events = [build_event(change, actor, head.workspace) for change in changes] if head.audited else []
        try:
            version = await self._store.save(puts, deletes, events, stored.version)
        except WorkspaceError as error:
            if error.code != "CATALOG_CHANGED":
                raise
            return None
        self._warn_once(audited=head.audited)
        changed = {(change.kind, change.key) for change in changes}
        untouched = (item for item in stored.items if (item.kind, item.key) not in changed)
        return StoredCatalog(version, (*untouched, *puts))

    def _warn_once(self, *, audited: bool) -> None:
        if not audited and not self._warned:
            _LOG.warning("provenance is not provisioned; changes to the catalog go unaudited")
            self._warned = True


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
    def from_catalog(cls, stored: StoredCatalog, puts: Iterable[CatalogItem]) -> "AuditContext":
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
