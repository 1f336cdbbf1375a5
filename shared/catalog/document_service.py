"""Workspace documents over HTTPS: export, plan and apply."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from shared.catalog.change_rules import Caller
from shared.catalog.container_rules import DATA_CLASS_REFUSED, EVIDENCE_REASON, find_new_evidence
from shared.catalog.diff import CatalogPlan, add_defaults
from shared.catalog.document import DocumentFormat, LoadedDocument, decode_document, load_located_document
from shared.catalog.document_plans import (
    DocumentPlan,
    check_plan_condition,
    find_undeclared_containers,
    plan_document,
)
from shared.catalog.items import SINGLETON_KEY, ItemKind, WorkspaceSettings, build_container_key, to_definition
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.catalog.service import CatalogService
from shared.conditional_requests import Condition
from shared.errors import Kind, WorkspaceError
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime

SECTIONS: Final[Mapping[str, str]] = {
    ItemKind.MEMBER: "team",
    ItemKind.CONNECTION: "connections",
    ItemKind.SURFACE: "surfaces",
    ItemKind.WARM_QUERY: "warmQueries",
    ItemKind.DATA_STORE: "dataStores",
    ItemKind.ALERT_RULE: "alertRules",
    ItemKind.OAUTH_CLIENT: "oauthClients",
}
"""Names of a workspace document's lists by the kind of their items; containers are part of their data stores."""


def export_document(stored: StoredCatalog) -> dict[str, Any]:
    """Build the workspace document that declares the whole catalog, including the items that the API created.

    Applying the document to the same catalog changes nothing.

    Raises:
        WorkspaceError: UNAVAILABLE ``WORKSPACE_NOT_DECLARED`` if no document was applied yet.
    """
    singles = {item.kind: add_defaults(item) for item in stored.items if item.key == SINGLETON_KEY}
    if ItemKind.WORKSPACE not in singles:
        detail = "No workspace document has been applied yet."
        raise WorkspaceError(Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", detail)
    document: dict[str, Any] = {"workspace": singles[ItemKind.WORKSPACE], **_export_settings(singles)}
    document |= {section: [] for section in SECTIONS.values()}
    for item in stored.items:
        if item.kind in SECTIONS:
            document[SECTIONS[item.kind]].append(_export_item(item))
    _add_containers(document["dataStores"], stored)
    return document


def _export_settings(singles: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    settings = singles.get(ItemKind.SETTINGS, {})
    # Without limits or a provenance policy, a document omits the property.
    exported = {name: value for name, value in settings.items() if value is not None}
    if "policies" in exported:
        exported["policies"] = {name: value for name, value in exported["policies"].items() if value is not None}
    return exported


def _export_item(item: CatalogItem) -> dict[str, Any]:
    # A document cannot declare a rejection.
    definition = {name: value for name, value in add_defaults(item).items() if name != "rejection"}
    source = definition.get("source") if item.kind == ItemKind.CONNECTION else None
    if isinstance(source, dict) and source.get("eventHub") is None:
        # A document may name the consumer group only with an Event Hub.
        return {**definition, "source": {name: value for name, value in source.items() if name != "consumerGroup"}}
    return definition


def _add_containers(data_stores: list[dict[str, Any]], stored: StoredCatalog) -> None:
    by_database: dict[str, list[dict[str, Any]]] = {}
    for item in stored.items:
        if item.kind == ItemKind.CONTAINER:
            by_database.setdefault(item.key.partition("/")[0], []).append(add_defaults(item))
    for data_store in data_stores:
        data_store["databases"] = [
            {**database, "containers": by_database.get(database["lookup"], [])} for database in data_store["databases"]
        ]


SOURCE: Final = "body"
"""File name that the problems of a document in a request body show."""

type ContainerLister = Callable[[str, str], Awaitable[Collection[str]]]
"""Function from the lookups (ids) of a data store and of a database to the names of the database's containers."""

_READ_ONLY: Final = ("tier", "limits")
_RULE: Final = "is read-only over HTTPS; omit `tier` and `limits`, or send their stored values"


class DocumentService:
    """Exports, plans and applies whole workspace documents for callers over HTTPS.

    The work on a document runs in a worker thread, because a workspace can have thousands of items.

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
            WorkspaceError: as :func:`shared.catalog.document_service.export_document`.
        """
        return await self._runtime.run_in_worker(LARGE, export_document, await self._catalog.load())

    async def load(self, body: bytes, text_format: DocumentFormat) -> LoadedDocument:
        """Parse and validate the workspace document in a request's body.

        Raises:
            DocumentError: the document is invalid; the error lists every problem.
        """
        stored = await self._catalog.load()
        return await self._runtime.run_in_worker(LARGE, _load_request_document, body, text_format, stored)

    async def plan(self, loaded: LoadedDocument, caller: Caller) -> DocumentPlan:
        """Return the changes that :meth:`apply` would make now.

        Raises:
            WorkspaceError: as :func:`shared.catalog.document_plans.plan_document`; UNAVAILABLE or THROTTLED from the
                account of a container that the document no longer declares.
        """
        stored = await self._catalog.load()
        existing = await self._find_existing_containers(loaded, stored)
        return await self._runtime.run_in_worker(LARGE, plan_document, loaded.document, stored, caller, existing)

    async def apply(self, loaded: LoadedDocument, caller: Caller, condition: Condition) -> DocumentPlan:
        """Make the catalog match a workspace document, and return the changes.

        Args:
            loaded: the workspace document.
            caller: the caller; becomes the last editor of changed items and the UserID of the audit events.
            condition: If-Match precondition with the entity tag of the plan.

        Raises:
            WorkspaceError: as :meth:`plan`; as :func:`shared.catalog.document_plans.check_plan_condition`; CONFLICT
                ``CATALOG_CHANGED`` if concurrent changes prevent the commit; UNAVAILABLE if the store is unreachable.
        """
        plans: list[DocumentPlan] = []
        existing = await self._find_existing_containers(loaded, await self._catalog.load())

        def build_plan(stored: StoredCatalog) -> CatalogPlan:
            # The tag contains the version of the catalog, so `existing` matches each plan with the required tag.
            plan = plan_document(loaded.document, stored, caller, existing)
            check_plan_condition(condition, plan.tag)
            plans.append(plan)
            return plan.plan

        await self._catalog.apply_planned(build_plan, caller.user_id)
        return plans[-1]

    async def _find_existing_containers(self, loaded: LoadedDocument, stored: StoredCatalog) -> frozenset[str]:
        """Return the catalog keys of undeclared containers that exist in their Cosmos DB account."""
        removed = await self._runtime.run_in_worker(LARGE, find_undeclared_containers, loaded.document, stored)
        existing: set[str] = set()
        for (store, database), names in removed.items():
            found = set(await self._list_containers(store, database))
            existing |= {build_container_key(database, name) for name in names if name in found}
        return frozenset(existing)


def _load_request_document(body: bytes, text_format: DocumentFormat, stored: StoredCatalog) -> LoadedDocument:
    text, settings = decode_document(body, SOURCE), _get_stored_settings(stored)
    defaults = {name: value for name, value in to_definition(settings).items() if name in _READ_ONLY and value}
    loaded = load_located_document(text, SOURCE, text_format, checks_approvers=False, defaults=defaults)
    if errors := [((name,), _RULE) for name in _READ_ONLY if getattr(loaded.document, name) != getattr(settings, name)]:
        raise loaded.locate(errors)
    if evidence := [(path, EVIDENCE_REASON) for path in find_new_evidence(loaded.document, stored)]:
        raise loaded.locate(evidence, DATA_CLASS_REFUSED)
    return loaded


def _get_stored_settings(stored: StoredCatalog) -> WorkspaceSettings:
    found = (item.definition for item in stored.items if item.kind == ItemKind.SETTINGS)
    return WorkspaceSettings.model_validate(next(found, {}))
