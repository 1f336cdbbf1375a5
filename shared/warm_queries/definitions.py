"""Makes, changes, approves and removes warm queries; each is an audit event of the workspace's configuration."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from shared.auth.principals import Principal
from shared.catalog.apply import CatalogService
from shared.catalog.diff import Change
from shared.catalog.items import ItemKind, definition_of
from shared.catalog.models import Approval, WarmQuery
from shared.catalog.ports import Item, StoredCatalog
from shared.catalog.query_checks import api_path_rule, parameter_findings
from shared.catalog.snapshot import Stored
from shared.errors import Faults, FieldError, Kind, WorkspaceError, invalid, invalid_fields
from shared.timestamps import now
from shared.warm_queries import kql_text
from shared.warm_queries.columns import QueryColumns


class QueryDefinitions:
    """The warm queries as things that people edit and release."""

    def __init__(self, catalog: CatalogService, columns: QueryColumns, *, clock: Callable[[], datetime] = now) -> None:
        self._catalog = catalog
        self._columns = columns
        self._clock = clock

    async def put(self, caller: Principal, query: WarmQuery) -> tuple[Stored[WarmQuery], bool]:
        """Store a query as a draft, whatever it was before; return it and whether it is new.

        The engine binds it first, so that what is stored runs.

        Raises:
            WorkspaceError: INVALID naming fields, or ``QUERY_INVALID``; CONFLICT ``WARM_QUERY_NAME_TAKEN`` or
                ``WARM_QUERY_PATH_TAKEN``; UNAVAILABLE while the engine does not answer.
        """
        draft = query.model_copy(update={"approval": None})
        faults = Faults()
        await self.check(faults, draft)
        faults.raise_all()

        def decide(stored: StoredCatalog) -> Sequence[Change]:
            _check_place(draft, stored)
            held = _find(stored, draft.lookup)
            before = None if held is None else held.definition
            return [Change(ItemKind.WARM_QUERY, draft.lookup, before, definition_of(draft))]

        [change] = await self._catalog.change(decide, caller.member_id)
        return await self._stored(draft.lookup), change.before is None

    async def check(self, faults: Faults, query: WarmQuery) -> None:
        """Add what keeps a query from being stored; the engine binds it where nothing else is wrong with its text."""
        if faults.readable("kql"):
            with faults.gathered(), _named_kql():
                kql_text.check_read_only(query.kql)
        _check_form(faults, query)
        if faults.readable("kql", "parameters"):
            with faults.gathered(), _named_kql():
                await self._columns.of(query)
        if faults.readable("surface"):
            with faults.gathered():
                _check_surface(query, await self._catalog.stored())

    async def approve(self, approver: str, lookup: str) -> Stored[WarmQuery]:
        """Release a draft for use; one already released stays as it is.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``; FORBIDDEN ``MAKER_CHECKER_VIOLATION`` for the last
                editor; INVALID ``QUERY_INVALID`` for a query that reaches beyond the workspace's own data.
        """

        def decide(stored: StoredCatalog) -> Sequence[Change]:
            held = _required(stored, lookup)
            query = WarmQuery.model_validate(held.definition)
            if held.edited_by.casefold() == approver.casefold():
                raise WorkspaceError(
                    Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", "Who edited a query last does not approve it."
                )
            if query.approval is not None:
                return []
            kql_text.check_stays_inside(query.kql)
            approval = Approval(approved_by=approver, approved_at=self._clock())
            after = definition_of(query.model_copy(update={"approval": approval}))
            return [Change(ItemKind.WARM_QUERY, lookup, held.definition, after, "Approved", is_edit=False)]

        await self._catalog.change(decide, approver)
        return await self._stored(lookup)

    async def delete(self, caller: Principal, lookup: str) -> None:
        """Remove a query.

        Raises:
            WorkspaceError: NOT_FOUND ``WARM_QUERY_NOT_FOUND``.
        """

        def decide(stored: StoredCatalog) -> Sequence[Change]:
            return [Change(ItemKind.WARM_QUERY, lookup, _required(stored, lookup).definition, None)]

        await self._catalog.change(decide, caller.member_id)

    async def _stored(self, lookup: str) -> Stored[WarmQuery]:
        item = _required(await self._catalog.stored(), lookup)
        query = WarmQuery.model_validate(item.definition)
        return Stored(query, item.created_at, item.updated_at, item.edited_by)


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


def _check_form(faults: Faults, query: WarmQuery) -> None:
    findings = parameter_findings(("parameters",), query.parameters) if faults.readable("parameters") else ()
    if errors := [FieldError(_field(at), rule) for at, rule in findings]:
        faults.add(invalid_fields(errors))
    if faults.readable("apiPath") and query.api_path is not None and (rule := api_path_rule(query.api_path)):
        faults.add(invalid("apiPath", rule))


def _check_surface(query: WarmQuery, stored: StoredCatalog) -> None:
    if not any(item.kind == ItemKind.SURFACE and item.key == query.surface for item in stored.items):
        raise invalid("surface", "is no surface of this workspace")


def _check_place(query: WarmQuery, stored: StoredCatalog) -> None:
    _check_surface(query, stored)
    for other in _others(query, stored):
        if other["name"] == query.name:
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_NAME_TAKEN", "Another query has this name.")
        if query.api_path is not None and query.api_path in (other["apiPath"], other["lookup"]):
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", "Another query is reached by this apiPath.")
        if other["apiPath"] == query.lookup:
            raise WorkspaceError(Kind.CONFLICT, "WARM_QUERY_PATH_TAKEN", "Another query's apiPath is this lookup.")


def _others(query: WarmQuery, stored: StoredCatalog) -> Iterator[dict[str, Any]]:
    for item in stored.items:
        if item.kind == ItemKind.WARM_QUERY and item.key != query.lookup:
            yield item.definition


def _find(stored: StoredCatalog, lookup: str) -> Item | None:
    return next((item for item in stored.items if item.kind == ItemKind.WARM_QUERY and item.key == lookup), None)


def _required(stored: StoredCatalog, lookup: str) -> Item:
    held = _find(stored, lookup)
    if held is None:
        raise WorkspaceError(Kind.NOT_FOUND, "WARM_QUERY_NOT_FOUND", "There is no warm query with this lookup.")
    return held


def _field(at: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
