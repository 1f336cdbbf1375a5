"""Management of warm queries (saved KQL queries): create, change, approve and delete, each with an audit event.

This module is separate from ``service`` because many requests run queries, and few change queries.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from pydantic import ValidationError

from shared.auth.principals import Principal
from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind, WorkspaceSettings, to_definition
from shared.catalog.kql_restrictions import check_query_restrictions
from shared.catalog.models import Approval, Rejection, StoredWarmQuery, WarmQuery
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.catalog.problems import format_path
from shared.catalog.query_checks import check_declared_parameters, find_api_path_error
from shared.catalog.service import CatalogService
from shared.catalog.signature_models import QuerySignature, SignatureRequirement
from shared.catalog.snapshot import CatalogEntry
from shared.conditional_requests import (
    UNCONDITIONAL,
    Condition,
    build_item_missing_error,
    build_precondition_failed_error,
)
from shared.errors import (
    FieldError,
    Kind,
    ValidationErrors,
    WorkspaceError,
    build_invalid_field_error,
    build_invalid_fields_error,
)
from shared.provenance.ports import ChainKey, Target
from shared.provenance.signatures import DecisionSigner, build_signature_required_error
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.approvals import (
    BuildChanges,
    SignedChange,
    build_decision_change,
    build_stored_signature_if_signed,
    compute_query_etag,
    derive_decision_event_id,
)
from shared.warm_queries.columns import QueryColumns


class StoredDraft(NamedTuple):
    """Query that was stored as a draft, and whether it is new."""

    entry: CatalogEntry[StoredWarmQuery]
    is_new: bool


class _EngineRejection(NamedTuple):
    """KQL text that the query engine rejects, and the engine's error."""

    kql: str
    error: WorkspaceError


class QueryDefinitions:
    """Service that stores, approves and deletes saved KQL queries, each with an audit event."""

    def __init__(self, catalog: CatalogService, columns: QueryColumns, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._catalog = catalog
        self._columns = columns
        self._runtime = runtime

    async def find_query(self, lookup: str) -> CatalogEntry[StoredWarmQuery] | None:
        """Read a saved KQL query from the store; None if it is missing or unreadable by this version of the service."""
        item = _find_query_item(await self._catalog.load(), lookup)
        try:
            return None if item is None else _parse_query_entry(item)
        except WorkspaceError:
            return None

    async def store_draft(
        self, caller: Principal, query: WarmQuery, condition: Condition = UNCONDITIONAL
    ) -> StoredDraft:
        """Store a query as a draft, without any earlier approval.

        The engine validates the query first, so that every stored query can run.

        Raises:
            WorkspaceError: INVALID with the invalid fields, or ``QUERY_INVALID``; CONFLICT ``WARM_QUERY_NAME_TAKEN`` or
                ``WARM_QUERY_PATH_TAKEN``; PRECONDITION_FAILED; UNAVAILABLE if the engine is unavailable.
        """
        draft = query.model_copy(update={"approval": None})
        faults = ValidationErrors()
        await self.check_definition(faults, draft)
        faults.raise_all()

        def build_draft_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            _check_conflicts_with_other_queries(draft, stored)
            item = _find_query_item(stored, draft.lookup)
            _check_write_condition(condition, item)
            before = None if item is None else item.definition
            return [ItemChange(ItemKind.WARM_QUERY, draft.lookup, before, to_definition(draft))]

        outcome = await self._catalog.commit_api_changes(build_draft_changes, caller.member_id)
        [change] = outcome.plan.changes
        entry = _parse_query_entry(_get_query_item(outcome.catalog, draft.lookup))
        return StoredDraft(entry, is_new=change.before is None)

    async def check_definition(self, faults: ValidationErrors, query: WarmQuery) -> None:
        """Check the definition of a saved KQL query, and add its errors to ``faults``.

        The engine validates the text only if all other rules for text and parameters are met.
        """
        if faults.has_valid_fields("kql"):
            with faults.collect_raised_error(), _rename_query_field_in_errors():
                await self._runtime.run_in_thread_if_large(len(query.kql), check_query_restrictions, query.kql)
        _check_parameters_and_path(faults, query)
        if faults.has_valid_fields("kql", "parameters"):
            with faults.collect_raised_error(), _rename_query_field_in_errors():
                await self._columns.resolve_columns(query)
        if faults.has_valid_fields("surface"):
            with faults.collect_raised_error():
                _check_surface_exists(query, await self._catalog.load())

    async def approve_query(
        self,
        approver_id: str,
        lookup: str,
        condition: Condition = UNCONDITIONAL,
        *,
        credential_creators: Collection[str] = (),
        can_be_retry: bool = False,
        append_id: str = "",
        signer: DecisionSigner | None = None,
    ) -> CatalogEntry[StoredWarmQuery]:
        """Approve a draft; a query that is already approved does not change.

        A request that repeats the stored signature returns the stored approval; the signature is not checked again. A
        request with another signature for an approved query is rejected.

        Args:
            approver_id: member id of the person who approves.
            lookup: lookup (id in URLs) of the query.
            condition: If-Match precondition on the definition of the query.
            credential_creators: ids of further members who must not be the last editor of the query, because they may
                be the same person as the approver. These are the persons who created the approver's credential, and
                the services with API keys that the approver or one of these persons possibly created.
            can_be_retry: True if the request can be a retry after a lost reply. The condition then also matches the
                draft that the approver has already approved.
            append_id: id derived from the request's Idempotency-Key; empty without a key. A retry has the same id, and
                can therefore sign with the sign-in that the first attempt used.
            signer: signs the decision; None for a decision without a signature.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``MAKER_CHECKER_VIOLATION`` if the approver is
                the last editor; CONFLICT ``WARM_QUERY_REJECTED``; INVALID ``QUERY_INVALID`` if the query reads data
                outside the workspace or the engine rejects it; PRECONDITION_FAILED; CONFLICT ``WARM_QUERY_APPROVED`` if
                the query is approved and the request has another signature; INVALID ``SIGNATURE_REQUIRED`` if the
                policy requires a signature and there is no signer; CONFLICT ``CATALOG_CHANGED`` if the query is changed
                while its decision is signed; the errors of :meth:`DecisionSigner.sign`.
        """
        rejection = await self._find_engine_rejection(lookup)

        def build_approval_changes(stored: StoredCatalog, signed: SignedChange | None = None) -> Sequence[ItemChange]:
            item = _get_query_item(stored, lookup)
            query = _require_query_to_approve(item, (approver_id, *credential_creators))
            if not (can_be_retry and _is_repeated_approval(item, approver_id, condition)):
                _check_write_condition(condition, item)
            if query.approval is not None:
                if _has_unstored_signature(query, signer, approver_id):
                    detail = "The query is already approved, so another signature of its approval cannot be stored."
                    raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_APPROVED", detail)
                return []
            if rejection is not None and query.kql == rejection.kql:
                raise rejection.error
            at = self._runtime.now()
            approval = Approval(
                approved_by=approver_id, approved_at=at, signature=build_stored_signature_if_signed(signed, item, at)
            )
            after = to_definition(query.model_copy(update={"approval": approval}))
            return [build_decision_change(item, after, "Approved", signed)]

        return await self._commit_decision(lookup, approver_id, build_approval_changes, signer, append_id)

    async def _find_engine_rejection(self, lookup: str) -> _EngineRejection | None:
        """Validate the KQL text of a draft with the query engine; return the text and the error if it is rejected.

        Return None if the text is valid, the engine is unavailable, or no draft has this lookup.

        The draft can come from a workspace with another engine, so this engine has possibly never checked it.
        """
        item = _find_query_item(await self._catalog.load(), lookup)
        query = None if item is None else _parse_query_entry(item).value
        if query is None or query.approval is not None:
            return None
        found = await self._columns.resolve_columns_or_error(query)
        if not isinstance(found, WorkspaceError) or found.kind is not Kind.INVALID:
            return None
        try:
            with _rename_query_field_in_errors():
                raise found
        except WorkspaceError as error:
            return _EngineRejection(query.kql, error)

    async def reject_query(
        self,
        rejector_id: str,
        lookup: str,
        comment: str,
        condition: Condition = UNCONDITIONAL,
        *,
        credential_creators: Collection[str] = (),
        can_be_retry: bool = False,
        append_id: str = "",
        signer: DecisionSigner | None = None,
    ) -> CatalogEntry[StoredWarmQuery]:
        """Reject a draft; the rejection is part of the definition until the query is replaced.

        Args:
            rejector_id: member id of the person who rejects.
            lookup: lookup (id in URLs) of the query.
            comment: reason of the rejection.
            condition: If-Match precondition on the definition of the query.
            credential_creators: ids of further members who must not be the last editor of the query, because they may
                be the same person as the rejector. These are the persons who created the rejector's credential, and
                the services with API keys that the rejector or one of these persons possibly created.
            can_be_retry: True if the request can be a retry after a lost reply. The condition then also matches the
                draft that the rejector has already rejected.
            append_id: id derived from the request's Idempotency-Key; empty without a key. A retry has the same id, and
                can therefore sign with the sign-in that the first attempt used.
            signer: signs the decision; None for a decision without a signature.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``MAKER_CHECKER_VIOLATION`` if the rejector is
                the last editor; CONFLICT ``WARM_QUERY_APPROVED`` if the query is approved; PRECONDITION_FAILED; INVALID
                ``SIGNATURE_REQUIRED`` and CONFLICT ``CATALOG_CHANGED`` as in :meth:`approve_query`; the errors of
                :meth:`DecisionSigner.sign`.
        """

        def build_rejection_changes(stored: StoredCatalog, signed: SignedChange | None = None) -> Sequence[ItemChange]:
            item = _get_query_item(stored, lookup)
            query = _require_query_to_reject(item, (rejector_id, *credential_creators))
            is_repeated = _is_repeated_rejection(query, rejector_id, comment) and not _has_unstored_signature(
                query, signer, rejector_id
            )
            if not (can_be_retry and is_repeated and condition.is_satisfied_by(_compute_draft_etag(item))):
                _check_write_condition(condition, item)
            if is_repeated:
                return []
            at = self._runtime.now()
            signature = build_stored_signature_if_signed(signed, item, at)
            rejection = Rejection(rejected_by=rejector_id, rejected_at=at, comment=comment, signature=signature)
            after = to_definition(query.model_copy(update={"rejection": rejection}))
            return [build_decision_change(item, after, "Rejected", signed)]

        return await self._commit_decision(lookup, rejector_id, build_rejection_changes, signer, append_id)

    async def _commit_decision(
        self, lookup: str, actor_id: str, build_changes: BuildChanges, signer: DecisionSigner | None, append_id: str
    ) -> CatalogEntry[StoredWarmQuery]:
        """Store a decision about a draft, signed if there is a signer; return the query with the decision."""
        if signer is None:
            outcome = await self._catalog.commit_api_changes(partial(_build_unsigned_changes, build_changes), actor_id)
            return _parse_query_entry(_get_query_item(outcome.catalog, lookup))
        stored = await self._catalog.load()
        # Each other reason to reject the decision comes first, so that it costs the caller no sign-in.
        if not build_changes(stored):
            return _parse_query_entry(_get_query_item(stored, lookup))
        append_id = append_id or self._runtime.new_id()
        event_id = derive_decision_event_id(append_id, _get_query_item(stored, lookup))
        async with signer.sign(event_id, ChainKey(Target.PLATFORM_CONFIG)) as session:

            def build_signed_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
                changes = build_changes(stored, SignedChange(session.signature, event_id))
                # An earlier attempt has possibly stored its decision about the earlier version, with this event id.
                if changes and derive_decision_event_id(append_id, _get_query_item(stored, lookup)) != event_id:
                    detail = "The query was changed meanwhile; read it again, and repeat the request."
                    raise WorkspaceError(Kind.CONFLICT, "CATALOG_CHANGED", detail)
                return changes

            outcome = await self._catalog.commit_api_changes(build_signed_changes, actor_id, confirm=session.confirm)
            entry = _parse_query_entry(_get_query_item(outcome.catalog, lookup))
            # A late write of an earlier attempt can have stored the decision with the same or with another sign-in.
            signature = _find_stored_signature(entry.value)
            is_own = signature is not None and signature.auth_time == session.signature.auth_time
            session.is_decided = is_own or not outcome.plan.is_empty
        return entry

    async def delete_query(self, caller: Principal, lookup: str, condition: Condition = UNCONDITIONAL) -> None:
        """Delete a saved KQL query.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND`` if the query does not exist and the request has no
                If-Match; PRECONDITION_FAILED.
        """

        def build_deletion_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            item = _find_query_item(stored, lookup)
            if item is None and condition.match is not None:
                raise build_item_missing_error()
            item = _get_query_item(stored, lookup)
            _check_write_condition(condition, item)
            return [ItemChange(ItemKind.WARM_QUERY, lookup, item.definition, None)]

        await self._catalog.commit_api_changes(build_deletion_changes, caller.member_id)


@contextmanager
def _rename_query_field_in_errors() -> Iterator[None]:
    """Context manager: rename the field ``query`` of errors to ``kql``, the property's name in the body."""
    try:
        yield
    except WorkspaceError as error:
        if error.kind is not Kind.INVALID:
            raise
        renamed = build_invalid_field_error("kql", error.detail.removeprefix("query: "), code=error.code)
        renamed.members.update({name: value for name, value in error.members.items() if name != "errors"})
        raise renamed from error


def _check_parameters_and_path(faults: ValidationErrors, query: WarmQuery) -> None:
    """Check the declared parameters and the API path of a query, and add the errors to ``faults``."""
    findings = (
        check_declared_parameters(("parameters",), query.parameters) if faults.has_valid_fields("parameters") else ()
    )
    if errors := [FieldError(format_path(at), rule) for at, rule in findings]:
        faults.add(build_invalid_fields_error(errors))
    if (
        faults.has_valid_fields("apiPath")
        and query.api_path is not None
        and (rule := find_api_path_error(query.api_path))
    ):
        faults.add(build_invalid_field_error("apiPath", rule))


def _check_surface_exists(query: WarmQuery, stored: StoredCatalog) -> None:
    if not any(item.kind == ItemKind.SURFACE and item.key == query.surface for item in stored.items):
        raise build_invalid_field_error("surface", f"unknown surface: {query.surface}")


def _check_conflicts_with_other_queries(query: WarmQuery, stored: StoredCatalog) -> None:
    """Reject a query whose surface does not exist, or whose name, lookup or API path another query uses."""
    _check_surface_exists(query, stored)
    for other in _iterate_other_queries(query, stored):
        if other["name"] == query.name:
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", "Another query has this name.")
        # GraphQL finds a query by name or lookup (id), so a name must not be the lookup of another query.
        if query.name in (other["lookup"], other["apiPath"]):
            detail = (
                f"Choose another name: {query.name!r} is the lookup or the apiPath of the query {other['lookup']!r}."
            )
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", detail)
        if other["name"] in (query.lookup, query.api_path):
            detail = (
                f"Choose another lookup and apiPath: {other['name']!r} is the name of the query {other['lookup']!r}."
            )
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", detail)
        if query.api_path is not None and query.api_path in (other["apiPath"], other["lookup"]):
            detail = f"`apiPath` {query.api_path} is already the apiPath or the lookup of the query {other['lookup']}."
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", detail)
        if other["apiPath"] == query.lookup:
            detail = f"`lookup` {query.lookup} is already the apiPath of the query {other['lookup']}."
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", detail)


def _iterate_other_queries(query: WarmQuery, stored: StoredCatalog) -> Iterator[dict[str, Any]]:
    for item in stored.items:
        if item.kind == ItemKind.WARM_QUERY and item.key != query.lookup:
            yield item.definition


def _check_write_condition(condition: Condition, item: CatalogItem | None) -> None:
    """Reject a write if the stored query does not satisfy If-Match and If-None-Match."""
    if item is None:
        condition.check_write_allowed(None)
    elif not condition.is_empty:
        # Parse only if needed, so that a definition that this version cannot parse can be replaced and deleted.
        try:
            stored = _parse_query_entry(item)
        except WorkspaceError as error:
            raise build_precondition_failed_error() from error
        condition.check_write_allowed(compute_query_etag(stored))


def _check_decider_is_not_editor(item: CatalogItem, decider_ids: Collection[str]) -> None:
    if item.edited_by.casefold() in {decider.casefold() for decider in decider_ids}:
        detail = (
            "The last editor of a query cannot approve or reject it, nor can an API key that the editor created. The "
            "person who created the API key of a service counts as the editor of the service's changes. If this person "
            "is unknown, a person must store the query again, and another person must decide."
        )
        raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", detail)


def _build_unsigned_changes(build_changes: BuildChanges, stored: StoredCatalog) -> Sequence[ItemChange]:
    """Return the catalog change for a decision without a signature; reject the decision if the policy requires one.

    The policy is read from the same stored catalog as the query, because it may have changed since the request began.
    """
    changes = build_changes(stored)
    if changes and _is_signature_required(stored):
        raise build_signature_required_error()
    return changes


def _is_signature_required(stored: StoredCatalog) -> bool:
    settings = next((item.definition for item in stored.items if item.kind == ItemKind.SETTINGS), {})
    policy = WorkspaceSettings.model_validate(settings).policies.signatures
    return policy.queries is SignatureRequirement.REQUIRED


def _require_query_to_approve(item: CatalogItem, approver_ids: Collection[str]) -> StoredWarmQuery:
    """Check that the approver may approve the query of a catalog item, and return the query."""
    _check_decider_is_not_editor(item, approver_ids)
    query = _parse_query_entry(item).value
    if query.rejection is not None:
        detail = f"{query.rejection.rejected_by} rejected the query; it must be edited before it can be approved."
        raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_REJECTED", detail)
    if query.approval is None:
        # The query can be older than a rule; every run of it would then be rejected.
        with _rename_query_field_in_errors():
            check_query_restrictions(query.kql)
    return query


def _require_query_to_reject(item: CatalogItem, rejector_ids: Collection[str]) -> StoredWarmQuery:
    """Check that the rejector may reject the query of a catalog item, and return the query."""
    _check_decider_is_not_editor(item, rejector_ids)
    query = _parse_query_entry(item).value
    if query.approval is not None:
        detail = "The query is approved; only a draft can be rejected."
        raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_APPROVED", detail)
    return query


def _is_repeated_approval(item: CatalogItem, approver_id: str, condition: Condition) -> bool:
    """Return whether the approver has already approved the draft whose ETag the condition requires (a retry)."""
    approval = _parse_query_entry(item).value.approval
    return (
        approval is not None
        and approval.approved_by == approver_id
        and condition.is_satisfied_by(_compute_draft_etag(item))
    )


def _has_unstored_signature(query: StoredWarmQuery, signer: DecisionSigner | None, actor_id: str) -> bool:
    """Return whether a request has a signature that differs from the signature of the query's stored decision.

    A retry after a lost reply has the same signer, meaning and statement, but possibly a later sign-in.
    """
    if signer is None or signer.sent_signature is None:
        return False
    stored = _find_stored_signature(query)
    if stored is None or stored.user_id != actor_id or not isinstance(signer.sent_signature, dict):
        return True
    content = {"meaning": stored.meaning, "statement": stored.statement}
    return {"statement": None, **signer.sent_signature} != content


def _find_stored_signature(query: StoredWarmQuery) -> QuerySignature | None:
    """Return the signature of a query's decision; None if the query has no decision or an unsigned one."""
    decision = query.approval or query.rejection
    return None if decision is None else decision.signature


def _is_repeated_rejection(query: StoredWarmQuery, rejector_id: str, comment: str) -> bool:
    """Return whether the same person has already rejected the draft with the same comment."""
    rejection = query.rejection
    return rejection is not None and (rejection.rejected_by, rejection.comment) == (rejector_id, comment)


def _compute_draft_etag(item: CatalogItem) -> str:
    """Compute the entity tag that a query had as a draft, before it was approved or rejected."""
    stored = _parse_query_entry(item)
    undecided = stored.value.model_copy(update={"approval": None, "rejection": None})
    return compute_query_etag(replace(stored, value=undecided))


def _parse_query_entry(item: CatalogItem) -> CatalogEntry[StoredWarmQuery]:
    """Parse the query of a catalog item.

    Raises:
        WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND`` if this version of the service cannot parse the query;
            reads do not find it either.
    """
    try:
        query = StoredWarmQuery.model_validate(item.definition)
    except ValidationError as error:
        detail = (
            f"This version of the service cannot read the warm query {item.key!r}, which a newer version has possibly "
            "stored; store the query again or delete it."
        )
        raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", detail) from error
    return CatalogEntry(query, item.created_at, item.updated_at, item.edited_by)


def _find_query_item(stored: StoredCatalog, lookup: str) -> CatalogItem | None:
    return next((item for item in stored.items if item.kind == ItemKind.WARM_QUERY and item.key == lookup), None)


def _get_query_item(stored: StoredCatalog, lookup: str) -> CatalogItem:
    item = _find_query_item(stored, lookup)
    if item is None:
        detail = f"No warm query has the lookup (short name in URLs) {lookup[:64]!r}."
        raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", detail)
    return item
