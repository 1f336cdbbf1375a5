"""Changes to the catalog: stored in one step with their audit events, which are then appended to the audit chain.

``flush_outbox`` is the second half of this transactional outbox.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import batched
from typing import Any, Final
from uuid import uuid4

from shared.catalog.diff import CatalogPlan, ItemChange, plan_changes
from shared.catalog.items import ItemKind
from shared.catalog.models import WorkspaceDocument
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
SETTLE_EVERY: Final = 100


@dataclass(frozen=True, slots=True)
class CommittedPlan:
    """Result of a change.

    Attributes:
        plan: the changes.
        catalog: all items directly after the change; a later change may already be stored.
    """

    plan: CatalogPlan
    catalog: StoredCatalog


class CatalogService:
    """Service that plans and commits changes to the catalog.

    Args:
        store: storage of the catalog.
        audit_log: destination of the audit events.
        on_change: called after each change, to invalidate the cached catalog of this process.
        clock: returns the current time.
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
        """Return the changes that :meth:`apply` would make now.

        Raises:
            WorkspaceError: as :meth:`apply`.
        """
        return plan_changes(document, await self._store.load())

    async def apply(self, document: WorkspaceDocument, actor: str) -> CatalogPlan:
        """Make the catalog match a document, and return the changes.

        Args:
            document: a valid document.
            actor: the user who applies it; becomes the last editor of changed items and the UserID of the events.

        Raises:
            WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED`` for the document of another workspace; CONFLICT
                ``CATALOG_CHANGED`` if concurrent changes prevent the commit; UNAVAILABLE if the store is unreachable.
        """

        def decide(stored: StoredCatalog) -> CatalogPlan:
            return plan_changes(document, stored)

        return (await self._commit(decide, actor, ItemOrigin.DECLARED)).plan

    async def change(self, decide: Callable[[StoredCatalog], Sequence[ItemChange]], actor: str) -> CommittedPlan:
        """Commit changes that were requested through the API.

        Args:
            decide: returns the changes for the stored catalog; called again after a concurrent change. Its exceptions
                are raised to the caller, and nothing is changed.
            actor: the user who makes the changes.

        Raises:
            WorkspaceError: CONFLICT ``CATALOG_CHANGED`` if concurrent changes prevent the commit; UNAVAILABLE if the
                store cannot be reached.
        """

        def build_plan(stored: StoredCatalog) -> CatalogPlan:
            return CatalogPlan(tuple(decide(stored)))

        return await self._commit(build_plan, actor, ItemOrigin.API)

    async def load(self) -> StoredCatalog:
        """Return the stored catalog, without the cache.

        Raises:
            WorkspaceError: UNAVAILABLE if the store cannot be reached.
        """
        return await self._store.load()

    async def flush_pending(self) -> int:
        """Append pending audit events to their chains, and return their number.

        Raises:
            WorkspaceError: from the audit log; unappended events stay pending.
        """
        return await flush_outbox(self._store, self._audit_log)

    async def _commit(
        self, decide: Callable[[StoredCatalog], CatalogPlan], actor: str, origin: ItemOrigin
    ) -> CommittedPlan:
        outcome = await self._save_with_retry(decide, actor, origin)
        if not outcome.plan.is_empty:
            self._on_change()
        try:
            await self.flush_pending()
        except WorkspaceError:
            _LOG.exception("audit events of catalog changes stay pending")
        return outcome

    async def _save_with_retry(
        self, decide: Callable[[StoredCatalog], CatalogPlan], actor: str, origin: ItemOrigin
    ) -> CommittedPlan:
        for attempt in range(ATTEMPTS):
            stored = await self._store.load()
            plan = decide(stored)
            after = stored if plan.is_empty else await self._try_save(plan.changes, stored, actor, origin)
            if after is not None:
                return CommittedPlan(plan, after)
            await asyncio.sleep(random.uniform(0, FIRST_WAIT_SECONDS * 2**attempt))  # noqa: S311  jitter of retries, not a secret
        raise WorkspaceError(Kind.CONFLICT, "CATALOG_CHANGED", "the catalog was changed concurrently; try again")

    async def _try_save(
        self, changes: Sequence[ItemChange], stored: StoredCatalog, actor: str, origin: ItemOrigin
    ) -> StoredCatalog | None:
        """Save changes with their events; return the new catalog, or None after a concurrent change."""
        previous = {(item.kind, item.key): item for item in stored.items}
        at = self._clock()
        puts = [
            build_item(change, previous.get((change.kind, change.key)), actor, origin, at)
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
        self._warn_if_unaudited(audited=head.audited)
        changed = {(change.kind, change.key) for change in changes}
        untouched = (item for item in stored.items if (item.kind, item.key) not in changed)
        return StoredCatalog(version, (*untouched, *puts))

    def _warn_if_unaudited(self, *, audited: bool) -> None:
        if not audited and not self._warned:
            _LOG.warning("provenance is not configured; changes to the catalog are not audited")
            self._warned = True


def build_item(
    change: ItemChange, previous: CatalogItem | None, actor: str, origin: ItemOrigin, at: datetime
) -> CatalogItem:
    """Return an item after a change.

    Args:
        change: an addition or an edit.
        previous: the item before the change; its origin and creation time are retained.
        actor: the user who makes the change.
        origin: origin of a new item.
        at: time of the change.
    """
    definition = change.after or {}
    if previous is None:
        return CatalogItem(change.kind, change.key, definition, origin, at, at, actor)
    updated_at, edited_by = (at, actor) if change.is_edit else (previous.updated_at, previous.edited_by)
    return CatalogItem(change.kind, change.key, definition, previous.origin, previous.created_at, updated_at, edited_by)


@dataclass(frozen=True, slots=True)
class AuditContext:
    """Workspace data that audit events of a change need, as of after the change.

    Attributes:
        workspace: id of the workspace; empty before the first document is applied.
        audited: whether the workspace has provenance.
    """

    workspace: str
    audited: bool

    @classmethod
    def from_catalog(cls, stored: StoredCatalog, puts: Iterable[CatalogItem]) -> "AuditContext":
        """Return the context of a catalog after items were changed."""
        previous = {item.kind: item.definition for item in (*stored.items, *puts) if item.kind in SINGLE}
        settings = previous.get(ItemKind.SETTINGS)
        audited = settings is not None and settings["policies"]["provenance"] is not None
        return cls(previous.get(ItemKind.WORKSPACE, {}).get("id", ""), audited)


def build_event(change: ItemChange, actor: str, workspace: str) -> PendingEvent:
    """Return the audit event of a change.

    Events of members are appended to the AccessControl chain, all others to PlatformConfig. Items that exist once in a
    workspace are identified by the id of the workspace.
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


async def flush_outbox(store: CatalogStore, audit_log: AuditLog) -> int:
    """Append pending events to their chains, oldest first, and return their number.

    An event is settled after the append. If the process ends in between, the event is appended again; its append id
    makes the second append return the same record. An event that its chain rejects permanently stays pending and does
    not block later events.

    Raises:
        WorkspaceError: from the audit log or the store; unappended events stay pending.
    """
    count = 0
    rejection: WorkspaceError | None = None
    for events in batched(await store.pending_events(), SETTLE_EVERY, strict=False):
        appended, failure = await _append_events(events, audit_log)
        if appended:
            await store.settle(appended)
        if failure is not None and failure.kind is not Kind.INVALID:
            raise failure
        count += len(appended)
        rejection = rejection or failure
    if rejection is not None:
        raise rejection
    return count


async def _append_events(
    events: Sequence[PendingEvent], audit_log: AuditLog
) -> tuple[list[str], WorkspaceError | None]:
    """Append events in order until the log is unavailable; return the ids of appended events, and the error."""
    appended: list[str] = []
    rejection: WorkspaceError | None = None
    for event in events:
        try:
            await audit_log.append(Target(event.target), event.user_id, event.event, append_id=event.append_id)
        except WorkspaceError as error:
            rejection = error
            if error.kind is not Kind.INVALID:
                break
        else:
            appended.append(event.append_id)
    return appended, rejection
