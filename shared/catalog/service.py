"""Catalog changes: one transaction stores them with their audit events, which are then appended to the audit chains."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.catalog.diff import CatalogPlan, ItemChange
from shared.catalog.document_plans import plan_document_for_command_line
from shared.catalog.items import ItemId, ItemKind
from shared.catalog.member_states import derive_member_states
from shared.catalog.models import WorkspaceDocument
from shared.catalog.outbox import (
    Announce,
    EventAnnouncer,
    check_event_can_be_appended,
    flush_outbox_and_count_events,
    ignore_events,
)
from shared.catalog.ports import CONTEXT, UNAUDITED, CatalogItem, CatalogStore, ItemOrigin, PendingEvent, StoredCatalog
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.ports import AuditLog, Target
from shared.provenance.signatures import CONFIRMATION_SECONDS, DECISION_WRITE_SECONDS
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

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

    Raises:
        WorkspaceError: the errors of :func:`shared.catalog.outbox.check_event_can_be_appended`.
    """
    at = runtime.now()
    previous = {(item.kind, item.key): item for item in stored.items}
    puts = [
        build_item_after_change(change, previous.get((change.kind, change.key)), actor, origin, at)
        for change in changes
        if change.after is not None
    ]
    puts += derive_member_states(changes, stored, actor, at)
    deletes = [(change.kind, change.key) for change in changes if change.after is None]
    head = AuditContext.from_catalog(stored, puts)
    editors = {(item.kind, item.key): item.edited_by for item in puts}
    events = [
        _add_webhook_data_of_changed_query(
            build_audit_event(change, actor, head.workspace, change.append_id or runtime.new_id()),
            change,
            editors,
            at,
            head,
        )
        for change in changes
        if head.audited or change.kind == ItemKind.WARM_QUERY
    ]
    for event in events:
        check_event_can_be_appended(event)
    return CatalogCommit(puts, deletes, events, head.audited)


def build_item_after_change(
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
    """Workspace data for the audit events of a catalog change.

    Attributes:
        workspace: id of the workspace after the change; empty before the first document is applied.
        audited: True if the workspace has provenance before or after the change, so that the events, also of the change
            that enables or disables provenance, are appended to audit chains.
    """

    workspace: str
    audited: bool

    @classmethod
    def from_catalog(cls, stored: StoredCatalog, added_or_replaced_items: Iterable[CatalogItem]) -> "AuditContext":
        """Build the context from the stored catalog and the items that a change adds or replaces."""
        singletons = [item for item in (*stored.items, *added_or_replaced_items) if item.kind in SINGLE]
        audited = any(
            item.kind == ItemKind.SETTINGS and item.definition["policies"]["provenance"] is not None
            for item in singletons
        )
        workspaces = [item.definition for item in singletons if item.kind == ItemKind.WORKSPACE]
        return cls(workspaces[-1]["id"] if workspaces else "", audited)


def _add_webhook_data_of_changed_query(
    event: PendingEvent, change: ItemChange, editors: Mapping[ItemId, str], at: datetime, audit_context: AuditContext
) -> PendingEvent:
    """Return the audit event of a changed warm query with the data for its webhook event: property :data:`CONTEXT`.

    If the workspace had no provenance before the change and has none after it, the target of this event becomes
    :data:`UNAUDITED`. The events of other items are returned unchanged.
    """
    if change.kind != ItemKind.WARM_QUERY:
        return event
    context = {"editedBy": editors.get((change.kind, change.key), event.user_id), "changedAt": format_rfc3339(at)}
    target = event.target if audit_context.audited else UNAUDITED
    return replace(event, target=target, event={**event.event, CONTEXT: context})


def build_audit_event(change: ItemChange, actor: str, workspace_id: str, event_id: str) -> PendingEvent:
    """Build the audit event of a catalog change.

    Events of members and OAuth clients are appended to the audit chain ``AccessControl``, all others to
    ``PlatformConfig``. Items that exist once in a workspace are identified by the id of the workspace.
    """
    entity_type = change.kind[0].upper() + change.kind[1:]
    event: dict[str, Any] = {
        "ActionType": f"Catalog.{entity_type}.{change.verb}",
        "EntityType": entity_type,
        "EntityID": workspace_id if change.kind in SINGLE else change.key,
    }
    if change.before is not None:
        event["BeforeState"] = change.before
    if change.after is not None:
        event["AfterState"] = change.after
    target = Target.ACCESS_CONTROL if change.kind in ACCESS_KINDS else Target.PLATFORM_CONFIG
    return PendingEvent(event_id, target, actor, event)


type Confirm = Callable[[], Awaitable[None]]
"""Function that raises an error to reject changes directly before they are stored."""

ATTEMPTS: Final = 10
FIRST_WAIT_SECONDS: Final = 0.02

_LOG = logs.get_logger("catalog")
_ITEM_SIZE: Final = 100
"""Number of characters in the definition of a small item, for size estimates."""


@dataclass(frozen=True, slots=True)
class CommittedPlan:
    """Committed changes to the catalog, and the catalog after the changes.

    Attributes:
        plan: the changes.
        catalog: all items directly after these changes; a later change is possibly stored already.
    """

    plan: CatalogPlan
    catalog: StoredCatalog


class CatalogService:
    """Service that plans and commits changes to the catalog.

    Args:
        store: storage of the catalog.
        audit_log: destination of the audit events.
        before_enabling: called with the lookups (ids in URLs) of the connections that a change enables, or creates as
            enabled connections; called before the change is stored, possibly more than once.
        on_change: called after each change, also if it is unknown whether it is stored, to invalidate the cached
            catalog of this process.
        announce: announces changes to other parts of the service; at least once for each change, also after a crash.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: CatalogStore,
        audit_log: AuditLog,
        *,
        before_enabling: Callable[[Collection[str]], Awaitable[None]] | None = None,
        on_change: Callable[[], None] = lambda: None,
        announce: Announce = ignore_events,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._audit_log = audit_log
        self._before_enabling = before_enabling
        self._on_change = on_change
        self._announcer = EventAnnouncer(announce)
        self._warned = False
        self._retry_lock = asyncio.Lock()
        self._runtime = runtime

    async def plan(self, document: WorkspaceDocument) -> CatalogPlan:
        """Return the changes that :meth:`apply` would make to the current catalog.

        Raises:
            WorkspaceError: the same errors as :meth:`apply`.
        """
        stored = await self._store.load()
        plan = plan_document_for_command_line(document, stored)
        await self.check_plan_can_be_audited(plan, stored, "")
        return plan

    async def check_plan_can_be_audited(self, plan: CatalogPlan, stored: StoredCatalog, actor: str) -> None:
        """Check that the audit event of each change in a plan can be recorded.

        Args:
            plan: changes that a workspace document requires.
            stored: the catalog before the changes.
            actor: the user who would make the changes.

        Raises:
            WorkspaceError: the same errors as :func:`build_commit`.
        """
        build = partial(build_commit, plan.changes, stored, actor, ItemOrigin.DECLARED, self._runtime)
        await self._runtime.run_in_thread_if_large(LARGE, build)

    async def apply(self, document: WorkspaceDocument, actor: str) -> CatalogPlan:
        """Make the catalog match a workspace document, and return the changes.

        Args:
            document: a valid workspace document.
            actor: the user who applies the workspace document; becomes the last editor of changed items and the UserID
                of the events.

        Raises:
            WorkspaceError: the errors of :func:`shared.catalog.document_plans.plan_document_for_command_line` and of
                :meth:`commit_api_changes`.
        """

        def plan_document_changes(stored: StoredCatalog) -> CatalogPlan:
            return plan_document_for_command_line(document, stored)

        return await self.commit_document_plan(plan_document_changes, actor)

    async def commit_document_plan(self, build_plan: Callable[[StoredCatalog], CatalogPlan], actor: str) -> CatalogPlan:
        """Commit the changes that a workspace document requires, and return them.

        Args:
            build_plan: returns the changes for the stored catalog; called again after a concurrent change. Its
                exceptions are raised to the caller, and nothing is changed. It runs in a worker thread.
            actor: the user who applies the workspace document.

        Raises:
            WorkspaceError: the same errors as :meth:`commit_api_changes`.
        """
        return (await self._commit_changes(build_plan, actor, ItemOrigin.DECLARED)).plan

    async def commit_api_changes(
        self,
        build_changes: Callable[[StoredCatalog], Sequence[ItemChange]],
        actor: str,
        *,
        confirm: Confirm | None = None,
    ) -> CommittedPlan:
        """Commit changes that were requested through the API.

        Args:
            build_changes: returns the changes for the stored catalog; called again after a concurrent change. Its
                exceptions are raised to the caller, and nothing is changed.
            actor: the user who makes the changes.
            confirm: called directly before each attempt to store the changes, see :attr:`SigningSession.confirm`.

        Raises:
            WorkspaceError: TOO_LARGE ``RECORD_TOO_LARGE`` if an item is too large for its audit event; CONFLICT
                ``CATALOG_CHANGED`` if concurrent changes prevent the commit; UNAVAILABLE if the store cannot be
                reached, or (``SIGNATURES_UNAVAILABLE``) if ``confirm`` takes too long; the errors of ``confirm``.
        """

        def plan_requested_changes(stored: StoredCatalog) -> CatalogPlan:
            return CatalogPlan(tuple(build_changes(stored)))

        return await self._commit_changes(plan_requested_changes, actor, ItemOrigin.API, confirm)

    async def load(self) -> StoredCatalog:
        """Read the catalog from the store, without the cache.

        Raises:
            WorkspaceError: UNAVAILABLE if the store cannot be reached.
        """
        return await self._store.load()

    async def flush_and_count_pending_events(self) -> int:
        """Announce pending audit events, and append them to their chains.

        Returns:
            Number of events that were deleted from the outbox.

        Raises:
            WorkspaceError: from the audit log or the announcement; unappended events stay pending.
        """
        return await flush_outbox_and_count_events(self._store, self._audit_log, self._announcer)

    async def _commit_changes(
        self,
        build_plan: Callable[[StoredCatalog], CatalogPlan],
        actor: str,
        origin: ItemOrigin,
        confirm: Confirm | None = None,
    ) -> CommittedPlan:
        outcome = await self._save_with_retry(build_plan, actor, origin, confirm)
        if not outcome.plan.is_empty:
            self._on_change()
        try:
            await self.flush_and_count_pending_events()
        except Exception:  # noqa: BLE001  the changes are stored, so the caller must not get an error
            _LOG.exception("audit events of catalog changes stay pending")
        return outcome

    async def _save_with_retry(
        self,
        build_plan: Callable[[StoredCatalog], CatalogPlan],
        actor: str,
        origin: ItemOrigin,
        confirm: Confirm | None,
    ) -> CommittedPlan:
        outcome = await self._try_plan_and_save(build_plan, actor, origin, confirm)
        for retry in range(ATTEMPTS - 1):
            if isinstance(outcome, CommittedPlan):
                return outcome
            if retry:
                await self._runtime.sleep(self._runtime.uniform(0, FIRST_WAIT_SECONDS * 2**retry))
            # Retries of items in one process run one after another, because they would conflict with each other. New
            # changes and other instances can still conflict with them. A document takes too long to let others wait.
            async with nullcontext() if origin is ItemOrigin.DECLARED else self._retry_lock:
                outcome = await self._try_plan_and_save(build_plan, actor, origin, confirm)
        if isinstance(outcome, CommittedPlan):
            return outcome
        raise outcome

    async def _try_plan_and_save(
        self,
        build_plan: Callable[[StoredCatalog], CatalogPlan],
        actor: str,
        origin: ItemOrigin,
        confirm: Confirm | None,
    ) -> CommittedPlan | WorkspaceError:
        """Plan changes to the current catalog and save them.

        Return an error if the caller must try again; after the last attempt, the caller raises it.
        """
        stored = await self._store.load()
        # A document can be large even if the catalog is still small.
        size = LARGE if origin is ItemOrigin.DECLARED else _estimate_catalog_characters(stored)
        plan = await self._runtime.run_in_thread_if_large(size, build_plan, stored)
        after = stored if plan.is_empty else await self._try_save_changes(plan.changes, stored, actor, origin, confirm)
        return after if isinstance(after, WorkspaceError) else CommittedPlan(plan, after)

    async def _try_save_changes(
        self,
        changes: Sequence[ItemChange],
        stored: StoredCatalog,
        actor: str,
        origin: ItemOrigin,
        confirm: Confirm | None,
    ) -> StoredCatalog | WorkspaceError:
        """Save changes with their audit events; return the new catalog.

        Return an error, and save nothing, if a concurrent change was saved first, or if ``confirm`` took too long.
        """
        # The items of a document can be large even if there are few of them.
        is_document = origin is ItemOrigin.DECLARED
        size = LARGE if is_document else _estimate_catalog_characters(stored) + _count_definition_characters(changes)
        build = partial(build_commit, changes, stored, actor, origin, self._runtime)
        commit = await self._runtime.run_in_thread_if_large(size, build)
        if self._before_enabling is not None and (enabled := _list_lookups_of_newly_enabled_connections(changes)):
            await self._before_enabling(enabled)
        if confirm is not None and not await self._confirm_in_time(confirm):
            detail = "The store of sign-ins responds too slowly; the change is not stored; retry later."
            return WorkspaceError(Kind.UNAVAILABLE, "SIGNATURES_UNAVAILABLE", detail)
        try:
            async with asyncio.timeout(None if confirm is None else DECISION_WRITE_SECONDS):
                version = await self._store.save(commit.puts, commit.deletes, commit.events, stored.version)
        except TimeoutError as error:
            self._on_change()
            detail = (
                "The catalog did not respond in time, so it is unknown whether the change is stored. Repeat the "
                "request with its Idempotency-Key; without one, read the query first."
            )
            raise WorkspaceError(Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE", detail) from error
        except WorkspaceError as error:
            if error.code != "CATALOG_CHANGED":
                raise
            detail = "The workspace catalog was changed repeatedly meanwhile; try again."
            return WorkspaceError(Kind.CONFLICT, "CATALOG_CHANGED", detail)
        self._warn_once_if_changes_are_unaudited(audited=commit.audited)
        changed = {*commit.deletes, *((item.kind, item.key) for item in commit.puts)}
        untouched = (item for item in stored.items if (item.kind, item.key) not in changed)
        return StoredCatalog(version, (*untouched, *commit.puts))

    async def _confirm_in_time(self, confirm: Confirm) -> bool:
        """Call ``confirm``; return False if it took so long that the confirmation can be outdated."""
        began_at = self._runtime.monotonic()
        await confirm()
        return self._runtime.monotonic() - began_at <= CONFIRMATION_SECONDS

    def _warn_once_if_changes_are_unaudited(self, *, audited: bool) -> None:
        if not audited and not self._warned:
            _LOG.warning("provenance is not configured; changes to the catalog are not audited")
            self._warned = True


def _list_lookups_of_newly_enabled_connections(changes: Sequence[ItemChange]) -> list[str]:
    """Return the lookups of the connections that changes enable, or create as enabled connections."""
    return [
        change.key
        for change in changes
        if change.kind == ItemKind.CONNECTION and _is_enabled(change.after) and not _is_enabled(change.before)
    ]


def _is_enabled(connection: Mapping[str, Any] | None) -> bool:
    return connection is not None and bool(connection.get("enabled", True))


def _count_definition_characters(changes: Sequence[ItemChange]) -> int:
    """Return the number of characters in the definitions that changes contain."""
    return sum(len(json.dumps(definition)) for change in changes for definition in (change.before, change.after))


def _estimate_catalog_characters(stored: StoredCatalog) -> int:
    """Estimate the number of characters in a catalog, to decide whether a worker thread is needed."""
    return len(stored.items) * _ITEM_SIZE
