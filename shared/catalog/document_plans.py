"""Plans (the changes that applying a workspace document would make), and rules for documents sent over HTTPS."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from shared.catalog.alert_rule_checks import QueryUse, list_new_query_uses
from shared.catalog.change_rules import check_members_unique, find_taken_member_ids
from shared.catalog.checks import check_new_member_ids
from shared.catalog.diff import (
    CatalogPlan,
    ItemChange,
    RetainedItem,
    build_definition_with_defaults,
    plan_changes,
    plan_changes_of_definitions,
)
from shared.catalog.items import ItemId, ItemKind, definitions_from_document
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.catalog.problems import Violation
from shared.catalog.sections import Sections
from shared.catalog.signature_models import SignatureRequirement
from shared.conditional_requests import Condition
from shared.errors import Kind, WorkspaceError
from shared.text_formats.json_comparison import is_same_json
from shared.timestamps import format_rfc3339

_WITHDRAWN: Final = (
    "the declared approval does not count over HTTPS, because the stored query does not have the same text and the "
    "same approval; the query is a draft until it is approved"
)


_UNSIGNED: Final = (
    "a signature cannot be given in a document, so the declared approval does not count if it states a signature, or "
    "if approvals of queries must be signed; the query is a draft until a person approves it"
)


@dataclass(frozen=True, slots=True)
class LastChange:
    """Author and time of the last change of a stored catalog item."""

    changed_by: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """Changes that applying a workspace document would make.

    Attributes:
        plan: the changes, and the stored items that are retained, each with a reason.
        last_changes: last change of each stored item that the plan changes or removes.
        tag: quoted strong entity tag that identifies the document's content and the state of the workspace.
        query_uses: new and changed uses of queries by alert rules.
    """

    plan: CatalogPlan
    last_changes: Mapping[ItemId, LastChange]
    tag: str
    query_uses: Sequence[QueryUse]


def plan_document(
    document: WorkspaceDocument, stored: StoredCatalog, existing_container_keys: Collection[str] = ()
) -> DocumentPlan:
    """Compare a workspace document with the stored catalog; the changes are not checked.

    Args:
        document: the workspace document to apply.
        stored: catalog before the changes.
        existing_container_keys: catalog keys of containers that the document does not declare, but that exist in their
            Cosmos DB account; they stay in the catalog.

    Raises:
        WorkspaceError: CONFLICT ``WORKSPACE_ID_FIXED``.
    """
    declared = definitions_from_document(document)
    tag = _compute_plan_tag(declared, stored, existing_container_keys)
    stored_items = {(item.kind, item.key): item for item in stored.items}
    _copy_stored_signatures(declared, stored_items)
    drafts = _list_lookups_of_queries_with_new_approval(declared, stored_items)
    _withdraw_approvals(declared, drafts)
    plan = plan_changes_of_definitions(declared, stored, drafts, existing_container_keys)
    notes = [RetainedItem(ItemKind.WARM_QUERY, key, _WITHDRAWN, conflict=True) for key in sorted(drafts)]
    last_changes = {
        (change.kind, change.key): LastChange(item.edited_by, item.updated_at)
        for change in plan.changes
        if (item := stored_items.get((change.kind, change.key))) is not None
    }
    uses = list_new_query_uses(document, stored, plan.changes)
    return DocumentPlan(CatalogPlan(plan.changes, (*plan.retained, *notes)), last_changes, tag, uses)


def plan_document_for_command_line(document: WorkspaceDocument, stored: StoredCatalog) -> CatalogPlan:
    """Compare a workspace document with the catalog, for the command-line tool that writes directly to the stores.

    The document may declare approvals of queries. A query with a new approval becomes a draft if the document requires
    signatures for decisions about queries or if the approval states a signature. The reason is that a signature cannot
    be given in a document.

    Raises:
        WorkspaceError: the same errors as :func:`shared.catalog.diff.plan_changes` and
            :func:`shared.catalog.change_rules.check_members_unique`.
    """
    declared = definitions_from_document(document)
    must_sign = document.policies.signatures.queries is SignatureRequirement.REQUIRED
    stored_items = {(item.kind, item.key): item for item in stored.items}
    _copy_stored_signatures(declared, stored_items)
    new = _list_lookups_of_queries_with_new_approval(declared, stored_items)
    drafts = [key for key in new if must_sign or "signature" in declared[ItemKind.WARM_QUERY, key]["approval"]]
    _withdraw_approvals(declared, drafts)
    plan = plan_changes_of_definitions(declared, stored, drafts)
    # The document does not contain the members that were created through the API.
    check_members_unique(stored, plan.changes)
    notes = [RetainedItem(ItemKind.WARM_QUERY, key, _UNSIGNED, conflict=True) for key in sorted(drafts)]
    return CatalogPlan(plan.changes, (*plan.retained, *notes))


def _copy_stored_signatures(
    declared_definitions: dict[ItemId, dict[str, Any]], stored_items: Mapping[ItemId, CatalogItem]
) -> None:
    """Add the stored signature to each declared approval that equals the stored approval except for the signature.

    The query's text and parameters must be unchanged, too. Without this step, a document that omits the signature would
    remove the stored signature, or would make the query a draft.
    """
    for key in _list_approved_query_lookups(declared_definitions):
        definition, item = declared_definitions[ItemKind.WARM_QUERY, key], stored_items.get((ItemKind.WARM_QUERY, key))
        before = {} if item is None else build_definition_with_defaults(item)
        stored = before.get("approval") or {}
        unsigned = {name: value for name, value in stored.items() if name != "signature"}
        is_same_text = all(is_same_json(definition[name], before.get(name)) for name in ("kql", "parameters"))
        if is_same_text and definition["approval"] == unsigned:
            declared_definitions[ItemKind.WARM_QUERY, key] = {**definition, "approval": stored}


def _list_lookups_of_queries_with_new_approval(
    declared_definitions: Mapping[ItemId, Mapping[str, Any]], stored_items: Mapping[ItemId, CatalogItem]
) -> list[str]:
    """Return the lookups (ids in URLs) of queries whose declared approval is not stored."""
    return [
        key
        for key in _list_approved_query_lookups(declared_definitions)
        if not _is_query_approval_stored(declared_definitions, stored_items, key)
    ]


def _withdraw_approvals(declared_definitions: dict[ItemId, dict[str, Any]], query_lookups: Iterable[str]) -> None:
    """Remove the approvals of the given queries from the declared definitions."""
    for key in query_lookups:
        definition = declared_definitions[ItemKind.WARM_QUERY, key]
        declared_definitions[ItemKind.WARM_QUERY, key] = {**definition, "approval": None}


def check_if_match_has_plan_tag(condition: Condition, plan_tag: str) -> None:
    """Check that the If-Match header of a request contains ``plan_tag``, the entity tag of the current plan.

    Raises:
        WorkspaceError: PRECONDITION_REQUIRED ``PRECONDITION_REQUIRED`` if If-Match is missing or ``*``;
            PRECONDITION_FAILED if the current plan has another tag.
    """
    if condition.match is None or condition.match.every:
        detail = "Send the `planTag` of a plan in the header If-Match."
        raise WorkspaceError(Kind.PRECONDITION_REQUIRED, "PRECONDITION_REQUIRED", detail)
    if not condition.is_satisfied_by(plan_tag):
        detail = "The workspace or the document has changed since the plan; request a new plan."
        raise WorkspaceError(Kind.PRECONDITION_FAILED, "PRECONDITION_FAILED", detail)


class DatabaseKey(NamedTuple):
    """Lookups (ids in URLs) of a database and of the data store that owns it."""

    store_lookup: str
    database_lookup: str


def map_undeclared_container_names(
    document: WorkspaceDocument, stored: StoredCatalog
) -> Mapping[DatabaseKey, Collection[str]]:
    """Return the containers that an earlier workspace document declared and that this document no longer declares.

    Returns:
        Names of containers, by their database.
    """
    declared = definitions_from_document(document).keys()
    stores = [item for item in stored.items if item.kind == ItemKind.DATA_STORE]
    owners = {database["lookup"]: store.key for store in stores for database in store.definition["databases"]}
    found: dict[DatabaseKey, list[str]] = {}
    for item in stored.items:
        database, _, name = item.key.partition("/")
        is_removed = item.kind == ItemKind.CONTAINER and item.origin is ItemOrigin.DECLARED
        if is_removed and (item.kind, item.key) not in declared and database in owners:
            found.setdefault(DatabaseKey(owners[database], database), []).append(name)
    return found


def find_reserved_ids_of_new_members(document: WorkspaceDocument, stored: StoredCatalog) -> list[Violation]:
    """Return a violation for each new member whose id is reserved for audit events of the service."""
    members = {item.key for item in stored.items if item.kind == ItemKind.MEMBER}
    return list(check_new_member_ids(Sections.from_document(document), members))


def find_taken_ids_of_members(document: WorkspaceDocument, stored: StoredCatalog) -> list[Violation]:
    """Return a violation for each new id and each new or changed object id that another member has.

    The other member can be one that was created through the API, which the document does not contain.

    Raises:
        WorkspaceError: the same errors as :func:`shared.catalog.diff.plan_changes`.
    """
    return find_taken_ids_in_changes(document, stored, plan_changes(document, stored).changes)


def find_taken_ids_in_changes(
    document: WorkspaceDocument, stored: StoredCatalog, changes: Sequence[ItemChange]
) -> list[Violation]:
    """Return a violation for each new id and each new or changed object id that another member has.

    Args:
        document: the workspace document.
        stored: the catalog before the changes.
        changes: the changes that the document makes.
    """
    indexes = {member.id: index for index, member in enumerate(document.team)}
    taken = find_taken_member_ids(stored, changes)
    return [(("team", indexes[member_id], field), rule) for member_id, field, rule in taken]


def find_lookups_of_queries_with_stored_approval(document: WorkspaceDocument, stored: StoredCatalog) -> frozenset[str]:
    """Return the lookups (ids in URLs) of a workspace document's approved queries whose approval needs no new check.

    These are queries that are stored with equal text, parameters and approval, or were created through the API.
    """
    declared = definitions_from_document(document)
    stored_items = {(item.kind, item.key): item for item in stored.items}
    return frozenset(
        key for key in _list_approved_query_lookups(declared) if _is_query_approval_stored(declared, stored_items, key)
    )


def _list_approved_query_lookups(declared_definitions: Mapping[ItemId, Mapping[str, Any]]) -> list[str]:
    return [
        key
        for (kind, key), definition in declared_definitions.items()
        if kind == ItemKind.WARM_QUERY and definition["approval"] is not None
    ]


def _is_query_approval_stored(
    declared_definitions: Mapping[ItemId, Mapping[str, Any]],
    stored_items: Mapping[ItemId, CatalogItem],
    query_lookup: str,
) -> bool:
    """Return whether a stored query has the declared text, parameters and approval, or was created through the API."""
    item = stored_items.get((ItemKind.WARM_QUERY, query_lookup))
    if item is None or item.origin is ItemOrigin.API:
        return item is not None
    definition, before = declared_definitions[ItemKind.WARM_QUERY, query_lookup], build_definition_with_defaults(item)
    # The declared parameters are part of what runs, as the text is.
    return all(is_same_json(definition[name], before.get(name)) for name in ("kql", "parameters", "approval"))


def _compute_plan_tag(
    declared_definitions: Mapping[ItemId, Mapping[str, Any]],
    stored: StoredCatalog,
    existing_container_keys: Collection[str],
) -> str:
    digest = hashlib.sha256(f"{stored.version}\n".encode())
    if existing_container_keys:
        digest.update(json.dumps(sorted(existing_container_keys)).encode())
    for (kind, key), definition in sorted(declared_definitions.items(), key=lambda entry: entry[0]):
        digest.update(json.dumps([kind, key, definition], sort_keys=True).encode())
    for item in stored.items:
        state = [item.kind, item.key, item.origin, format_rfc3339(item.updated_at), item.edited_by]
        digest.update(json.dumps(state).encode())
    return f'"{digest.hexdigest()}"'
