"""Workspace documents over HTTPS: export, plan and apply."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import islice
from typing import Any, Final

from shared.auth.rights import AccessRight
from shared.catalog.alert_rule_checks import iterate_query_use_errors
from shared.catalog.change_rules import Caller, check_changes
from shared.catalog.container_rules import DATA_CLASS_REFUSED, EVIDENCE_REASON, iterate_data_classes_changed_to_evidence
from shared.catalog.diff import CatalogPlan, ItemChange
from shared.catalog.document import DocumentFormat, LoadedDocument, decode_document, load_document_with_positions
from shared.catalog.document_plans import (
    DocumentPlan,
    check_if_match_has_plan_tag,
    find_reserved_ids_of_new_members,
    find_taken_ids_in_changes,
    map_undeclared_container_names,
    plan_document,
)
from shared.catalog.export import export_document
from shared.catalog.items import ItemKind, WorkspaceSettings, build_container_key, to_definition
from shared.catalog.ports import StoredCatalog
from shared.catalog.problems import MAX_PROBLEMS, DocumentError
from shared.catalog.service import CatalogService
from shared.conditional_requests import Condition
from shared.errors import WorkspaceError
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime

SOURCE: Final = "body"
"""File name that the problems of a document in a request body show."""

type ContainerLister = Callable[[str, str], Awaitable[Collection[str]]]
"""Function from the lookups (ids) of a data store and of a database to the names of the database's containers."""

_READ_ONLY: Final = ("tier", "limits")
_TAKEN_IDS: Final = ("MEMBER_ID_TAKEN", "MEMBER_OID_TAKEN")
_RULE: Final = "is read-only over HTTPS; omit `tier` and `limits`, or send their stored values"


class DocumentService:
    """Exports, plans and applies whole workspace documents for callers over HTTPS.

    The work on a workspace document runs in a worker thread, because a workspace can have thousands of items.

    Args:
        catalog: reads and commits the catalog.
        list_containers: lists the containers of a database in its account.
        runtime: runs work in worker threads.
    """

    def __init__(
        self, catalog: CatalogService, list_containers: ContainerLister, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._catalog = catalog
        self._list_containers = list_containers
        self._runtime = runtime

    async def export(self) -> dict[str, Any]:
        """Return the workspace document that declares the whole catalog.

        Raises:
            WorkspaceError: the same errors as :func:`shared.catalog.export.export_document`.
        """
        return await self._runtime.run_in_thread_if_large(LARGE, export_document, await self._catalog.load())

    async def load(self, body: bytes, text_format: DocumentFormat) -> LoadedDocument:
        """Parse and validate the workspace document in a request's body.

        The caller must pass the result to :meth:`release` when it no longer needs the document.

        Raises:
            DocumentError: the document is invalid; the error lists every problem.
        """
        stored = await self._catalog.load()
        return await self._runtime.run_in_thread_if_large(LARGE, _load_request_document, body, text_format, stored)

    async def release(self, loaded: LoadedDocument) -> None:
        """Free the positions of a document's values in a worker thread; afterwards, no position can be found."""
        await self._runtime.run_in_thread_if_large(LARGE, loaded.values.release)

    async def plan(self, loaded: LoadedDocument, caller: Caller) -> DocumentPlan:
        """Return the changes that :meth:`apply` would make now.

        Raises:
            DocumentError: a new or changed alert rule names an unknown query, or has parameters or a time range that
                its query does not accept. Errors that only an execution of the query shows are not checked.
            WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED``; the errors of
                :func:`shared.catalog.change_rules.check_changes`; TOO_LARGE ``RECORD_TOO_LARGE`` if an item is too
                large for its audit event; UNAVAILABLE or THROTTLED from the account of a container that the document
                no longer declares.
        """
        stored = await self._catalog.load()
        existing = await self._find_existing_containers(loaded, stored)
        plan = await self._runtime.run_in_thread_if_large(
            LARGE, _plan_and_check_document, loaded, stored, caller, existing
        )
        await self._catalog.check_plan_can_be_audited(plan.plan, stored, caller.user_id)
        return plan

    async def apply(self, loaded: LoadedDocument, caller: Caller, condition: Condition) -> DocumentPlan:
        """Make the catalog match a workspace document, and return the changes.

        Args:
            loaded: the workspace document.
            caller: the caller; becomes the last editor of changed items and the UserID of the audit events.
            condition: If-Match precondition with the entity tag of the plan.

        Raises:
            DocumentError: as :meth:`plan`.
            WorkspaceError: the errors of :meth:`plan` and of
                :func:`shared.catalog.document_plans.check_if_match_has_plan_tag`; CONFLICT ``CATALOG_CHANGED`` if
                concurrent changes prevent the commit; UNAVAILABLE if the store is unreachable.
        """
        plans: list[DocumentPlan] = []
        existing = await self._find_existing_containers(loaded, await self._catalog.load())

        def build_plan(stored: StoredCatalog) -> CatalogPlan:
            # The tag contains the version of the catalog, so `existing` matches each plan with the required tag.
            plan = _plan_and_check_document(loaded, stored, caller, existing)
            check_if_match_has_plan_tag(condition, plan.tag)
            plans.append(plan)
            return plan.plan

        await self._catalog.commit_document_plan(build_plan, caller.user_id)
        return plans[-1]

    async def _find_existing_containers(self, loaded: LoadedDocument, stored: StoredCatalog) -> frozenset[str]:
        """Return the keys of stored containers that the document does not declare and that exist in their account."""
        removed = await self._runtime.run_in_thread_if_large(
            LARGE, map_undeclared_container_names, loaded.document, stored
        )
        existing: set[str] = set()
        for (store, database), names in removed.items():
            found = set(await self._list_containers(store, database))
            existing |= {build_container_key(database, name) for name in names if name in found}
        return frozenset(existing)


def _plan_and_check_document(
    loaded: LoadedDocument, stored: StoredCatalog, caller: Caller, existing_container_keys: Collection[str]
) -> DocumentPlan:
    plan = plan_document(loaded.document, stored, existing_container_keys)
    is_query_readable = AccessRight.CATALOG_READ in caller.rights
    found = iterate_query_use_errors(plan.query_uses, is_query_readable=is_query_readable)
    if errors := list(islice(found, MAX_PROBLEMS)):
        raise loaded.build_error_with_positions(errors)
    try:
        check_changes(stored, plan.plan.changes, caller)
    except WorkspaceError as error:
        if error.code not in _TAKEN_IDS:
            raise
        raise _add_positions_of_taken_ids(error, loaded, stored, plan.plan.changes) from None
    return plan


def _add_positions_of_taken_ids(
    error: WorkspaceError, loaded: LoadedDocument, stored: StoredCatalog, changes: Sequence[ItemChange]
) -> WorkspaceError:
    """Return a copy of an error about a taken id that lists the fields with taken ids and their positions."""
    found = find_taken_ids_in_changes(loaded.document, stored, changes)[:MAX_PROBLEMS]
    errors = [
        {"field": problem.field, "message": problem.message, "line": problem.line, "column": problem.column}
        for problem in loaded.build_error_with_positions(found).problems
    ]
    return WorkspaceError(error.kind, error.code, error.detail, errors=errors)


def _load_request_document(body: bytes, text_format: DocumentFormat, stored: StoredCatalog) -> LoadedDocument:
    text, settings = decode_document(body, SOURCE), _get_stored_settings(stored)
    defaults = {name: value for name, value in to_definition(settings).items() if name in _READ_ONLY and value}
    loaded = load_document_with_positions(text, SOURCE, text_format, checks_new_items=False, defaults=defaults)
    try:
        _check_values_fixed_over_https(loaded, settings, stored)
    except DocumentError:
        loaded.values.release()
        raise
    return loaded


def _check_values_fixed_over_https(loaded: LoadedDocument, settings: WorkspaceSettings, stored: StoredCatalog) -> None:
    """Reject changes that are not possible over HTTPS.

    These are another tier, other limits, a new member with a reserved id, and the data class `evidence` for a container
    that has another class.
    """
    if errors := [((name,), _RULE) for name in _READ_ONLY if getattr(loaded.document, name) != getattr(settings, name)]:
        raise loaded.build_error_with_positions(errors)
    if reserved := find_reserved_ids_of_new_members(loaded.document, stored):
        raise loaded.build_error_with_positions(reserved)
    if evidence := [
        (path, EVIDENCE_REASON) for path in iterate_data_classes_changed_to_evidence(loaded.document, stored)
    ]:
        raise loaded.build_error_with_positions(evidence, DATA_CLASS_REFUSED)


def _get_stored_settings(stored: StoredCatalog) -> WorkspaceSettings:
    found = (item.definition for item in stored.items if item.kind == ItemKind.SETTINGS)
    return WorkspaceSettings.model_validate(next(found, {}))
