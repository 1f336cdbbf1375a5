"""HTTP operations on the definitions of warm queries: list, create, replace, approve, delete."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, StrictInt

from functions.conditions import parse_condition
from functions.idempotency import make_idempotent
from functions.replies import warm_queries as replies
from shared.auth.rights import AccessRight
from shared.catalog.models import LOOKUP_PATTERN, ApiPath, Kql, Lookup, QueryParameter, WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.errors import ValidationErrors, invalid
from shared.http.messages import Reply, json_reply
from shared.http.operations import Call, Group, ServerSetMembers
from shared.http.unknown_names import list_accepted_names
from shared.timestamps import rfc3339
from shared.validation.names import Name
from shared.warm_queries.etags import compute_etag
from shared.wiring import services

GROUP = Group("warm-query-definitions")


class QueryBody(BaseModel):
    """Request body that defines a warm query."""

    name: Name
    surface: Lookup
    kql: Kql
    description: str | None = None
    api_path: ApiPath | None = Field(None, alias="apiPath")
    parameters: list[QueryParameter] = []
    cache_seconds: StrictInt = Field(0, alias="cacheSeconds", ge=0, le=86400)


@GROUP.endpoint("GET", "oi-api/warm-queries", right=AccessRight.CATALOG_READ, docs=replies.LISTED)
async def list_warm_queries(_: Call) -> Reply:
    """Return the workspace's warm queries, including drafts."""
    queries = (await services().catalog.current()).queries.values()
    documents = await asyncio.gather(*(_to_json(stored) for stored in queries))
    return json_reply({"warmQueries": sorted(documents, key=lambda query: str(query["lookup"]))})


_SERVER_MEMBERS = frozenset(replies.QueryDefinition.__annotations__) - list_accepted_names(QueryBody).keys()


async def _read_current(path: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored definition of a query as JSON, or only its lookup key if it does not exist."""
    stored = await services().queries.definitions.find(path["lookup"])
    return {"lookup": path["lookup"]} if stored is None else await _to_json(stored)


async def _check_definition(call: Call[Any, QueryBody], faults: ValidationErrors) -> None:
    if not re.fullmatch(LOOKUP_PATTERN, call.path["lookup"]):
        faults.add(invalid("lookup", "must have up to 64 letters, digits, _ and -, and begin with a letter or a digit"))
    with faults.collect():
        parse_condition(call.request)
    if faults:
        # Without errors so far, `put` runs these checks itself.
        await services().queries.definitions.check(faults, _build_definition(call))


@GROUP.endpoint(
    "PUT",
    "oi-api/warm-queries/{lookup}",
    right=AccessRight.WARM_QUERY_MANAGE,
    body=QueryBody,
    server_set=ServerSetMembers(
        _SERVER_MEMBERS, _read_current, frozenset({"schema"}), volatile=frozenset({"updatedAt"})
    ),
    check=_check_definition,
    docs=replies.PUT,
)
async def put_warm_query(call: Call[Any, QueryBody]) -> Reply:
    """Create or replace the definition of a warm query.

    The query is a draft until a principal other than its editor approves it.
    """
    condition = parse_condition(call.request)
    stored, is_new = await services().queries.definitions.put(call.principal, _build_definition(call), condition)
    return await _build_reply(stored, 201 if is_new else 200)


@GROUP.endpoint("DELETE", "oi-api/warm-queries/{lookup}", right=AccessRight.WARM_QUERY_MANAGE, docs=replies.DELETED)
async def delete_warm_query(call: Call) -> Reply:
    """Delete a warm query."""
    await services().queries.definitions.delete(call.principal, call.path["lookup"], parse_condition(call.request))
    return Reply(204)


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries/{lookup}/approve",
    right=AccessRight.WARM_QUERY_APPROVE,
    requires_user=True,
    docs=replies.APPROVED,
)
@make_idempotent
async def approve_warm_query(call: Call) -> Reply:
    """Approve the draft of a warm query; its editor cannot approve it."""
    stored = await services().queries.definitions.approve(
        call.principal.member_id, call.path["lookup"], parse_condition(call.request), repeatable=bool(call.append_id)
    )
    return await _build_reply(stored)


def _build_definition(call: Call[Any, QueryBody]) -> WarmQuery:
    """Build the query of a request without validating it, so that all errors are reported together."""
    body = call.body
    return WarmQuery.model_construct(
        lookup=call.path["lookup"],
        api_path=body.api_path,
        name=body.name,
        description=body.description,
        surface=body.surface,
        kql=body.kql,
        parameters=tuple(body.parameters),
        cache_seconds=body.cache_seconds,
    )


async def _build_reply(stored: CatalogEntry[WarmQuery], status: int = 200) -> Reply:
    return json_reply(await _to_json(stored), status, {"ETag": compute_etag(stored)})


async def _to_json(stored: CatalogEntry[WarmQuery]) -> dict[str, Any]:
    query = stored.value
    columns = await services().queries.columns.find(query)
    schema = None if columns is None else {"columns": [{"name": one.name, "type": one.type} for one in columns]}
    return {
        **query.model_dump(mode="json", by_alias=True, exclude={"approval"}),
        "etag": compute_etag(stored),
        "schema": schema,
        "createdAt": rfc3339(stored.created_at),
        "updatedAt": rfc3339(stored.updated_at),
        "editedBy": stored.edited_by,
        "approval": query.approval
        and {"approvedBy": query.approval.approved_by, "approvedAt": rfc3339(query.approval.approved_at)},
    }
