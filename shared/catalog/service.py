"""Catalog changes: one transaction stores them with their audit events, which are then appended to the audit chains."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from shared.catalog.commits import build_commit
from shared.catalog.diff import CatalogPlan, ItemChange
from shared.catalog.document_plans import plan_document_of_command
from shared.catalog.models import WorkspaceDocument
from shared.catalog.outbox import Announce, flush_outbox, ignore_events
from shared.catalog.ports import CatalogStore, ItemOrigin, StoredCatalog
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.ports import AuditLog
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime

ATTEMPTS: Final = 10
FIRST_WAIT_SECONDS: Final = 0.02

_LOG = logs.get_logger("catalog")
_ITEM_SIZE: Final = 100
"""Number of characters in the definition of a small item, for size estimates."""


@dataclass(frozen=True, slots=True)
class CommittedPlan:
    """Committed changes to the catalog, and the catalog after them.

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
        announce: announces changes to other parts of the service; at least once for each change, also after a crash.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: CatalogStore,
        audit_log: AuditLog,
        *,
        on_change: Callable[[], None] = lambda: None,
        announce: Announce = ignore_events,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._audit_log = audit_log
        self._on_change = on_change
        self._announce = announce
        self._warned = False
        self._runtime = runtime

    async def plan(self, document: WorkspaceDocument) -> CatalogPlan:
        """Return the changes that :meth:`apply` would make to the current catalog.

        Raises:
            WorkspaceError: as :meth:`apply`.
        """
        return plan_document_of_command(document, await self._store.load())

    async def apply(self, document: WorkspaceDocument, actor: str) -> CatalogPlan:
        """Make the catalog match a workspace document, and return the changes.

        Args:
            document: a valid workspace document.
            actor: the user who applies the document; becomes the last editor of changed items and the UserID of the
                events.

        Raises:
            WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED`` for the document of another workspace; CONFLICT
                ``CATALOG_CHANGED`` if concurrent changes prevent the commit; UNAVAILABLE if the store is unreachable.
        """

        def build_plan(stored: StoredCatalog) -> CatalogPlan:
            return plan_document_of_command(document, stored)

        return await self.apply_planned(build_plan, actor)

    async def apply_planned(self, decide: Callable[[StoredCatalog], CatalogPlan], actor: str) -> CatalogPlan:
        """Commit the changes that a workspace document requires, and return them.

        Args:
            decide: returns the changes for the stored catalog; called again after a concurrent change. Its exceptions
                are raised to the caller, and nothing is changed. It runs in a worker thread.
            actor: the user who applies the document.

        Raises:
            WorkspaceError: as :meth:`change`.
        """
        return (await self._commit_changes(decide, actor, ItemOrigin.DECLARED)).plan

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

        return await self._commit_changes(build_plan, actor, ItemOrigin.API)

    async def load(self) -> StoredCatalog:
        """Read the catalog from the store, without the cache.

        Raises:
            WorkspaceError: UNAVAILABLE if the store cannot be reached.
        """
        return await self._store.load()

    async def flush_pending(self) -> int:
        """Append pending audit events to their chains, announce them, and return their number.

        Raises:
            WorkspaceError: from the audit log or the announcement; unappended events stay pending.
        """
        return await flush_outbox(self._store, self._audit_log, self._announce)

    async def _commit_changes(
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
            # A document can be large even if the catalog is still small.
            size = LARGE if origin is ItemOrigin.DECLARED else _estimate_catalog_size(stored)
            plan = await self._runtime.run_in_worker(size, decide, stored)
            after = stored if plan.is_empty else await self._try_save_changes(plan.changes, stored, actor, origin)
            if after is not None:
                return CommittedPlan(plan, after)
            await self._runtime.sleep(self._runtime.uniform(0, FIRST_WAIT_SECONDS * 2**attempt))
        raise WorkspaceError(
            Kind.CONFLICT, "CATALOG_CHANGED", "the workspace catalog was changed concurrently; try again"
        )

    async def _try_save_changes(
        self, changes: Sequence[ItemChange], stored: StoredCatalog, actor: str, origin: ItemOrigin
    ) -> StoredCatalog | None:
        """Save changes with their audit events; return the new catalog, or None if another change was saved first."""
        size = _estimate_catalog_size(stored) + len(changes) * _ITEM_SIZE
        build = partial(build_commit, changes, stored, actor, origin, self._runtime)
        commit = await self._runtime.run_in_worker(size, build)
        try:
            version = await self._store.save(commit.puts, commit.deletes, commit.events, stored.version)
        except WorkspaceError as error:
            if error.code != "CATALOG_CHANGED":
                raise
            return None
        self._warn_if_unaudited(audited=commit.audited)
        changed = {*commit.deletes, *((item.kind, item.key) for item in commit.puts)}
        untouched = (item for item in stored.items if (item.kind, item.key) not in changed)
        return StoredCatalog(version, (*untouched, *commit.puts))

    def _warn_if_unaudited(self, *, audited: bool) -> None:
        if not audited and not self._warned:
            _LOG.warning("provenance is not configured; changes to the catalog are not audited")
            self._warned = True


def _estimate_catalog_size(stored: StoredCatalog) -> int:
    """Estimate the number of characters in a catalog, to decide whether a worker thread is needed."""
    return len(stored.items) * _ITEM_SIZE
