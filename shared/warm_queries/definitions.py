"""Management of warm queries: create, change, approve and delete, each with an audit event.

Separate from ``service`` because many requests run queries, and few change them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from shared.auth.principals import Principal
from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind, to_definition
from shared.catalog.kql_restrictions import check_query
from shared.catalog.models import Approval, WarmQuery
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.catalog.query_checks import check_api_path, check_parameters
from shared.catalog.service import CatalogService
from shared.catalog.snapshot import CatalogEntry
from shared.conditional_requests import UNCONDITIONAL, Condition
from shared.errors import FieldError, Kind, ValidationErrors, WorkspaceError, invalid, invalid_fields
from shared.timestamps import now
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.etags import compute_etag
from shared.worker_threads import run_in_worker


class QueryDefinitions:
    """Definitions of warm queries and their approvals."""

    def __init__(self, catalog: CatalogService, columns: QueryColumns, *, clock: Callable[[], datetime] = now) -> None:
        self._catalog = catalog
        self._columns = columns
        self._clock = clock

    async def find(self, lookup: str) -> CatalogEntry[WarmQuery] | None:
        """Return the stored query; None if there is none that this version can parse."""
        item = _find_item(await self._catalog.load(), lookup)
        try:
            return None if item is None else _parse_entry(item)
        except ValidationError:
            return None

    async def put(
        self, caller: Principal, query: WarmQuery, condition: Condition = UNCONDITIONAL
    ) -> tuple[CatalogEntry[WarmQuery], bool]:
        """Store a query as a draft, without any earlier approval; return it, and whether it is new.

        The engine validates the query first, so that every stored query can run.

        Raises:
            WorkspaceError: INVALID naming fields, or ``QUERY_INVALID``; CONFLICT ``WARM_QUERY_NAME_TAKEN`` or
                ``WARM_QUERY_PATH_TAKEN``; PRECONDITION_FAILED; UNAVAILABLE if the engine is unavailable.
        """
        draft = query.model_copy(update={"approval": None})
        faults = ValidationErrors()
        await self.check(faults, draft)
        faults.raise_all()

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            _check_conflicts(draft, stored)
            item = _find_item(stored, draft.lookup)
            _check_condition(condition, item)
            before = None if item is None else item.definition
            return [ItemChange(ItemKind.WARM_QUERY, draft.lookup, before, to_definition(draft))]

        outcome = await self._catalog.change(decide, caller.member_id)
        [change] = outcome.plan.changes
        return _parse_entry(_get_item(outcome.catalog, draft.lookup)), change.before is None

    async def check(self, faults: ValidationErrors, query: WarmQuery) -> None:
        """Add the violations of a query; the engine validates its text only if no other rule is violated."""
        if faults.has_valid("kql"):
            with faults.collect(), _rename_field_to_kql():
                await run_in_worker(len(query.kql), check_query, query.kql)
        _check_form(faults, query)
        if faults.has_valid("kql", "parameters"):
            with faults.collect(), _rename_field_to_kql():
                await self._columns.resolve(query)
        if faults.has_valid("surface"):
            with faults.collect():
                _check_surface(query, await self._catalog.load())

    async def approve(
        self, approver: str, lookup: str, condition: Condition = UNCONDITIONAL, *, repeatable: bool = False
    ) -> CatalogEntry[WarmQuery]:
        """Approve a draft; an approved query does not change.

        Args:
            approver: the person who approves.
            lookup: lookup of the query.
            condition: precondition on the definition.
            repeatable: whether the request can be a retry after a lost reply: the condition then also matches the draft
                that the approver has already approved.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``MAKER_CHECKER_VIOLATION`` if the approver is
                the last editor; INVALID ``QUERY_INVALID`` if the query reads data outside the workspace;
                PRECONDITION_FAILED.
        """

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            item = _get_item(stored, lookup)
            query = _check_approver(item, approver)
            if not (repeatable and _is_approved_draft(item, approver, condition)):
                _check_condition(condition, item)
            if query.approval is not None:
                return []
            approval = Approval(approved_by=approver, approved_at=self._clock())
            after = to_definition(query.model_copy(update={"approval": approval}))
            return [ItemChange(ItemKind.WARM_QUERY, lookup, item.definition, after, "Approved", is_edit=False)]

        outcome = await self._catalog.change(decide, approver)
        return _parse_entry(_get_item(outcome.catalog, lookup))

    async def delete(self, caller: Principal, lookup: str, condition: Condition = UNCONDITIONAL) -> None:
        """Delete a query.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; PRECONDITION_FAILED.
        """

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            item = _get_item(stored, lookup)
            _check_condition(condition, item)
            return [ItemChange(ItemKind.WARM_QUERY, lookup, item.definition, None)]

        await self._catalog.change(decide, caller.member_id)


@contextmanager
def _rename_field_to_kql() -> Iterator[None]:
    """Rename the field ``query`` of errors to ``kql``, its name in the body."""
    try:
        yield
    except WorkspaceError as error:
        if error.kind is not Kind.INVALID:
            raise
        renamed = invalid("kql", error.detail.removeprefix("query: "), code=error.code)
        renamed.members.update({name: value for name, value in error.members.items() if name != "errors"})
        raise renamed from error


def _check_form(faults: ValidationErrors, query: WarmQuery) -> None:
    findings = check_parameters(("parameters",), query.parameters) if faults.has_valid("parameters") else ()
    if errors := [FieldError(_format_field(at), rule) for at, rule in findings]:
        faults.add(invalid_fields(errors))
    if faults.has_valid("apiPath") and query.api_path is not None and (rule := check_api_path(query.api_path)):
        faults.add(invalid("apiPath", rule))


def _check_surface(query: WarmQuery, stored: StoredCatalog) -> None:
    if not any(item.kind == ItemKind.SURFACE and item.key == query.surface for item in stored.items):
        raise invalid("surface", "is not a surface of this workspace")


def _check_conflicts(query: WarmQuery, stored: StoredCatalog) -> None:
    _check_surface(query, stored)
    for other in _iter_other_queries(query, stored):
        if other["name"] == query.name:
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", "Another query has this name.")
        # GraphQL finds a query by name or lookup, so a name must not be the lookup of another query.
        if query.name in (other["lookup"], other["apiPath"]):
            detail = f"The name is the lookup or the apiPath of the query {other['lookup']}."
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", detail)
        if other["name"] in (query.lookup, query.api_path):
            detail = f"The lookup or the apiPath is the name of the query {other['lookup']}."
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", detail)
        if query.api_path is not None and query.api_path in (other["apiPath"], other["lookup"]):
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", "Another query has this apiPath or lookup.")
        if other["apiPath"] == query.lookup:
            raise WorkspaceError(
                Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", "Another query has this lookup as its apiPath."
            )


def _iter_other_queries(query: WarmQuery, stored: StoredCatalog) -> Iterator[dict[str, Any]]:
    for item in stored.items:
        if item.kind == ItemKind.WARM_QUERY and item.key != query.lookup:
            yield item.definition


def _check_condition(condition: Condition, item: CatalogItem | None) -> None:
    if item is None:
        condition.check_write(None)
    elif not condition.is_empty:
        # Parse only if needed, so that a definition that this version cannot parse can be replaced and deleted.
        condition.check_write(compute_etag(_parse_entry(item)))


def _check_approver(item: CatalogItem, approver: str) -> WarmQuery:
    """Return a query that the approver can approve."""
    if item.edited_by.casefold() == approver.casefold():
        raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", "The last editor of a query cannot approve it.")
    query = WarmQuery.model_validate(item.definition)
    if query.approval is None:
        # The query can be older than a rule; every run of it would then be rejected.
        with _rename_field_to_kql():
            check_query(query.kql)
    return query


def _is_approved_draft(item: CatalogItem, approver: str, condition: Condition) -> bool:
    """Return whether this approver has already approved the draft that a condition names."""
    stored = _parse_entry(item)
    approval = stored.value.approval
    draft = replace(stored, value=stored.value.model_copy(update={"approval": None}))
    return approval is not None and approval.approved_by == approver and condition.allows(compute_etag(draft))


def _parse_entry(item: CatalogItem) -> CatalogEntry[WarmQuery]:
    return CatalogEntry(WarmQuery.model_validate(item.definition), item.created_at, item.updated_at, item.edited_by)


def _find_item(stored: StoredCatalog, lookup: str) -> CatalogItem | None:
    return next((item for item in stored.items if item.kind == ItemKind.WARM_QUERY and item.key == lookup), None)


def _get_item(stored: StoredCatalog, lookup: str) -> CatalogItem:
    item = _find_item(stored, lookup)
    if item is None:
        raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", "No warm query has this lookup.")
    return item


def _format_field(at: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
