"""Warm queries as things that people write, release and remove."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, StrictInt

from functions.conditions import condition_of
from functions.idempotency import answered_once
from functions.replies import warm_queries as replies
from shared.auth.rights import AccessRight
from shared.catalog.models import LOOKUP_PATTERN, ApiPath, Kql, Lookup, QueryParameter, WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.errors import ValidationErrors, invalid
from shared.http.messages import Reply, json_reply
from shared.http.operations import Call, Group, OwnedMembers
from shared.http.unknown_names import accepted_names
from shared.timestamps import rfc3339
from shared.validation.names import Name
from shared.warm_queries.etags import compute_etag
from shared.wiring import services

GROUP = Group("warm-query-definitions")


class QueryBody(BaseModel):
    """A query as its author writes it."""

    name: Name
    surface: Lookup
    kql: Kql
    description: str | None = None
    api_path: ApiPath | None = Field(None, alias="apiPath")
    parameters: list[QueryParameter] = []
    cache_seconds: StrictInt = Field(0, alias="cacheSeconds", ge=0, le=86400)


@GROUP.endpoint("GET", "oi-api/warm-queries", right=AccessRight.CATALOG_READ, docs=replies.LISTED)
async def list_warm_queries(_: Call) -> Reply:
    """List the workspace's warm queries, drafts too."""
    queries = (await services().catalog.current()).queries.values()
    shown = await asyncio.gather(*(_shown(stored) for stored in queries))
    return json_reply({"warmQueries": sorted(shown, key=lambda query: str(query["lookup"]))})


_OWNED = frozenset(replies.QueryDefinition.__annotations__) - accepted_names(QueryBody).keys()


async def _current(path: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a query as the list shows it; of one that does not exist, its lookup key."""
    stored = await services().query_definitions.find(path["lookup"])
    return {"lookup": path["lookup"]} if stored is None else await _shown(stored)


async def _sound_definition(call: Call[Any, QueryBody], faults: ValidationErrors) -> None:
    if not re.fullmatch(LOOKUP_PATTERN, call.path["lookup"]):
        faults.add(invalid("lookup", "up to 64 letters, digits, _ and -, the first a letter or digit, are expected"))
    with faults.gathered():
        condition_of(call.request)
    if faults:
        # Of one that is sound so far the rest is found when it is stored.
        await services().query_definitions.check(faults, _definition(call))


@GROUP.endpoint(
    "PUT",
    "oi-api/warm-queries/{lookup}",
    right=AccessRight.WARM_QUERY_MANAGE,
    body=QueryBody,
    owned=OwnedMembers(_OWNED, _current, frozenset({"schema"}), live=frozenset({"updatedAt"})),
    check=_sound_definition,
    docs=replies.PUT,
)
async def put_warm_query(call: Call[Any, QueryBody]) -> Reply:
    """Write a query; it is a draft until somebody else approves it."""
    asked = condition_of(call.request)
    stored, created = await services().query_definitions.put(call.principal, _definition(call), asked)
    return await _reply(stored, 201 if created else 200)


@GROUP.endpoint("DELETE", "oi-api/warm-queries/{lookup}", right=AccessRight.WARM_QUERY_MANAGE, docs=replies.DELETED)
async def delete_warm_query(call: Call) -> Reply:
    """Remove a query."""
    await services().query_definitions.delete(call.principal, call.path["lookup"], condition_of(call.request))
    return Reply(204)


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries/{lookup}/approve",
    right=AccessRight.WARM_QUERY_APPROVE,
    identity=True,
    docs=replies.APPROVED,
)
@answered_once
async def approve_warm_query(call: Call) -> Reply:
    """Release somebody else's draft for use."""
    stored = await services().query_definitions.approve(
        call.principal.member_id, call.path["lookup"], condition_of(call.request), repeatable=bool(call.append_id)
    )
    return await _reply(stored)


def _definition(call: Call[Any, QueryBody]) -> WarmQuery:
    """Return the query that is asked for, whether or not its parts are right."""
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


async def _reply(stored: CatalogEntry[WarmQuery], status: int = 200) -> Reply:
    return json_reply(await _shown(stored), status, {"ETag": compute_etag(stored)})


async def _shown(stored: CatalogEntry[WarmQuery]) -> dict[str, Any]:
    query = stored.value
    columns = await services().query_columns.find(query)
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
