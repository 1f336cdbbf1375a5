"""MCP tool that lists the items which wait for a person's approval: drafts of warm queries, and pending amendments.

This module is separate from ``mcp`` because it is imported only at the first MCP request.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from pydantic import Field, StrictInt, StrictStr

from functions.audit_overview import PageQuery, encode_pending_cursor, parse_pending_cursor
from functions.mcp_arguments import describe_arguments
from functions.replies.provenance import Amendment
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import StoredWarmQuery, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.http.validation import validate_model
from shared.mcp_server.capabilities import Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.provenance.overview import DEFAULT_LIMIT, MAX_LIMIT
from shared.provenance.records import parse_record
from shared.wiring import services


class DecisionArguments(PageQuery):
    """Arguments that select a page of the pending amendments; the limit is a JSON number, not a text."""

    limit: StrictInt = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Maximum number of amendments.")
    cursor: StrictStr | None = Field(None, description="`cursor` of the previous result; the first page without it.")


class DraftQuery(TypedDict):
    """A warm query that waits for approval."""

    lookup: str
    name: str
    surface: str
    kql: str


class PendingDecisions(TypedDict):
    """Items that wait for an approval: the first page of draft queries, and one page of pending amendments."""

    drafts: list[DraftQuery]
    amendments: list[Amendment]
    cursor: str | None


def build_decision_tools(principal: Principal, catalog: Catalog, *, has_amendments: bool) -> Sequence[Tool]:
    """Build the tool that lists pending decisions; return no tool if the caller may not read amendments.

    Args:
        principal: the caller; a caller with the right to read the catalog also gets drafts of warm queries.
        catalog: catalog of the workspace.
        has_amendments: whether the caller may read amendments, and the workspace has an audit log.
    """
    if not has_amendments:
        return ()

    async def list_decisions(arguments: Mapping[str, Any]) -> ToolResult:
        values = {name: value for name, value in arguments.items() if value is not None}
        parsed = validate_model(DecisionArguments, values)
        may_read = AccessRight.CATALOG_READ in principal.rights and parsed.cursor is None
        return ToolResult({"drafts": _list_drafts(catalog) if may_read else [], **await _list_amendments(parsed)})

    return (
        Tool(
            "list_pending_decisions",
            "List pending decisions",
            "List what waits for a person's decision: drafts of warm queries, and the pending amendments (documented "
            "corrections) of all scopes, oldest first.",
            describe_arguments(inline_schema(DecisionArguments, "validation")),
            inline_schema(PendingDecisions, "serialization"),
            list_decisions,
        ),
    )


def _is_undecided(query: WarmQuery) -> bool:
    is_rejected = isinstance(query, StoredWarmQuery) and query.rejection is not None
    return query.approval is None and not is_rejected


def _list_drafts(catalog: Catalog) -> list[DraftQuery]:
    queries = [stored.value for _, stored in sorted(catalog.queries.items()) if _is_undecided(stored.value)]
    return [{"lookup": one.lookup, "name": one.name, "surface": one.surface, "kql": one.kql} for one in queries]


async def _list_amendments(arguments: DecisionArguments) -> dict[str, Any]:
    page = await services().provenance.overview.list_pending(parse_pending_cursor(arguments.cursor), arguments.limit)
    records = [parse_record(record.canonical, record.hash) for record in page.result.records]
    return {"amendments": records, "cursor": encode_pending_cursor(page)}
