"""Makes, changes, approves and removes warm queries; each is an audit event of the workspace's configuration."""

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
    """The warm queries as things that people edit and release."""

    def __init__(self, catalog: CatalogService, columns: QueryColumns, *, clock: Callable[[], datetime] = now) -> None:
        self._catalog = catalog
        self._columns = columns
        self._clock = clock

    async def find(self, lookup: str) -> CatalogEntry[WarmQuery] | None:
        """Return a query as it is stored now; None where there is none that this version can read."""
        held = _find(await self._catalog.load(), lookup)
        try:
            return None if held is None else _read(held)
        except ValidationError:
            return None

    async def put(
        self, caller: Principal, query: WarmQuery, condition: Condition = UNCONDITIONAL
    ) -> tuple[CatalogEntry[WarmQuery], bool]:
        """Store a query as a draft, whatever it was before; return it and whether it is new.

        The engine binds it first, so that what is stored runs.

        Raises:
            WorkspaceError: INVALID naming fields, or ``QUERY_INVALID``; CONFLICT ``WARM_QUERY_NAME_TAKEN`` or
                ``WARM_QUERY_PATH_TAKEN``; PRECONDITION_FAILED; UNAVAILABLE while the engine does not answer.
        """
        draft = query.model_copy(update={"approval": None})
        faults = ValidationErrors()
        await self.check(faults, draft)
        faults.raise_all()

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            _check_place(draft, stored)
            held = _find(stored, draft.lookup)
            _check_condition(condition, held)
            before = None if held is None else held.definition
            return [ItemChange(ItemKind.WARM_QUERY, draft.lookup, before, to_definition(draft))]

        outcome = await self._catalog.change(decide, caller.member_id)
        [change] = outcome.plan.changes
        return _read(_required(outcome.catalog, draft.lookup)), change.before is None

    async def check(self, faults: ValidationErrors, query: WarmQuery) -> None:
        """Add what keeps a query from being stored; the engine binds it where nothing else is wrong with its text."""
        if faults.has_valid("kql"):
            with faults.collect(), _named_kql():
                await run_in_worker(len(query.kql), check_query, query.kql)
        _check_form(faults, query)
        if faults.has_valid("kql", "parameters"):
            with faults.collect(), _named_kql():
                await self._columns.resolve(query)
        if faults.has_valid("surface"):
            with faults.collect():
                _check_surface(query, await self._catalog.load())

    async def approve(
        self, approver: str, lookup: str, condition: Condition = UNCONDITIONAL, *, repeatable: bool = False
    ) -> CatalogEntry[WarmQuery]:
        """Release a draft for use; one already released stays as it is.

        Args:
            approver: who releases it.
            lookup: the query's.
            condition: what the approver asks of the definition.
            repeatable: whether this may be done a second time, the first answer being lost: the draft that the
                approver's own approval released counts as there still.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``MAKER_CHECKER_VIOLATION`` for the last
                editor; INVALID ``QUERY_INVALID`` for a query that reaches beyond the workspace's own data;
                PRECONDITION_FAILED.
        """

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            held = _required(stored, lookup)
            query = _approvable(held, approver)
            if not (repeatable and _released(held, approver, condition)):
                _check_condition(condition, held)
            if query.approval is not None:
                return []
            approval = Approval(approved_by=approver, approved_at=self._clock())
            after = to_definition(query.model_copy(update={"approval": approval}))
            return [ItemChange(ItemKind.WARM_QUERY, lookup, held.definition, after, "Approved", is_edit=False)]

        outcome = await self._catalog.change(decide, approver)
        return _read(_required(outcome.catalog, lookup))

    async def delete(self, caller: Principal, lookup: str, condition: Condition = UNCONDITIONAL) -> None:
        """Remove a query.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; PRECONDITION_FAILED.
        """

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            held = _required(stored, lookup)
            _check_condition(condition, held)
            return [ItemChange(ItemKind.WARM_QUERY, lookup, held.definition, None)]

        await self._catalog.change(decide, caller.member_id)


@contextmanager
def _named_kql() -> Iterator[None]:
    """Call the text of a stored query what its body calls it."""
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
    if errors := [FieldError(_field(at), rule) for at, rule in findings]:
        faults.add(invalid_fields(errors))
    if faults.has_valid("apiPath") and query.api_path is not None and (rule := check_api_path(query.api_path)):
        faults.add(invalid("apiPath", rule))


def _check_surface(query: WarmQuery, stored: StoredCatalog) -> None:
    if not any(item.kind == ItemKind.SURFACE and item.key == query.surface for item in stored.items):
        raise invalid("surface", "is no surface of this workspace")


def _check_place(query: WarmQuery, stored: StoredCatalog) -> None:
    _check_surface(query, stored)
    for other in _others(query, stored):
        if other["name"] == query.name:
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", "Another query has this name.")
        # GraphQL finds a query by its name or its lookup: a name must not lead to another query than it says.
        if query.name in (other["lookup"], other["apiPath"]):
            detail = f"The name is the lookup or the apiPath of the query {other['lookup']}."
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", detail)
        if other["name"] in (query.lookup, query.api_path):
            detail = f"The lookup or the apiPath is the name of the query {other['lookup']}."
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", detail)
        if query.api_path is not None and query.api_path in (other["apiPath"], other["lookup"]):
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", "Another query is reached by this apiPath.")
        if other["apiPath"] == query.lookup:
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", "Another query's apiPath is this lookup.")


def _others(query: WarmQuery, stored: StoredCatalog) -> Iterator[dict[str, Any]]:
    for item in stored.items:
        if item.kind == ItemKind.WARM_QUERY and item.key != query.lookup:
            yield item.definition


def _check_condition(condition: Condition, held: CatalogItem | None) -> None:
    if held is None:
        condition.check_write(None)
    elif not condition.empty:
        # Only then: a definition that this version cannot read can still be replaced and removed.
        condition.check_write(compute_etag(_read(held)))


def _approvable(held: CatalogItem, approver: str) -> WarmQuery:
    """Return a query that somebody may release, or find released."""
    if held.edited_by.casefold() == approver.casefold():
        raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", "Who edited a query last does not approve it.")
    query = WarmQuery.model_validate(held.definition)
    if query.approval is None:
        # It may have been stored before a rule came; the approval would be refused by every run.
        with _named_kql():
            check_query(query.kql)
    return query


def _released(held: CatalogItem, approver: str, condition: Condition) -> bool:
    """Return whether somebody's own approval released the very draft that a condition names."""
    stored = _read(held)
    approval = stored.value.approval
    draft = replace(stored, value=stored.value.model_copy(update={"approval": None}))
    return approval is not None and approval.approved_by == approver and condition.allows(compute_etag(draft))


def _read(item: CatalogItem) -> CatalogEntry[WarmQuery]:
    return CatalogEntry(WarmQuery.model_validate(item.definition), item.created_at, item.updated_at, item.edited_by)


def _find(stored: StoredCatalog, lookup: str) -> CatalogItem | None:
    return next((item for item in stored.items if item.kind == ItemKind.WARM_QUERY and item.key == lookup), None)


def _required(stored: StoredCatalog, lookup: str) -> CatalogItem:
    held = _find(stored, lookup)
    if held is None:
        raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", "There is no warm query with this lookup.")
    return held


def _field(at: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
