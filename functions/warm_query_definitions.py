"""HTTP operations on definitions of warm queries (saved KQL): list, create, replace, approve, reject, delete."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictInt, StringConstraints

from functions.catalog_items import check_conditional_headers, check_lookup
from functions.conditions import parse_conditional_headers
from functions.decision_signing import build_signer_if_needed
from functions.idempotency import make_idempotent
from functions.paging import CatalogPageQuery, build_cursor_check, select_page
from functions.reply_docs import warm_queries as replies
from functions.serialized_items import SerializedItems, build_serialized_list_reply
from shared.auth.rights import AccessRight
from shared.catalog.models import ApiPath, Kql, Lookup, QueryParameter, StoredWarmQuery, WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.errors import ValidationErrors
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group, ServerManagedProperties
from shared.http.unknown_names import map_accepted_names_to_documented_names
from shared.provenance.models import SentSignature
from shared.provenance.signatures import DecisionSigner
from shared.timestamps import format_rfc3339
from shared.validation.names import Name
from shared.warm_queries.approvals import compute_query_etag
from shared.warm_queries.ports import Column
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


@GROUP.endpoint(
    "GET",
    "oi-api/warm-queries",
    right=AccessRight.CATALOG_READ,
    query=CatalogPageQuery,
    check=build_cursor_check("queries"),
    docs=replies.LISTED,
)
async def list_warm_queries(call: Call[CatalogPageQuery]) -> Reply:
    """Return the workspace's warm queries, including drafts, sorted by lookup.

    A warm query is a saved KQL query. Its lookup is its short name in URLs.
    """
    queries = (await services().catalog.get_current_catalog()).queries
    page, cursor = select_page("queries", queries, call.query)
    entries = [queries[lookup] for lookup in page]
    columns = await services().queries.columns.find_columns_of_queries([stored.value for stored in entries])
    versions = list(zip(page, zip(entries, columns, strict=True), strict=True))
    texts = await _SERIALIZED.serialize(versions, len(queries), services().runtime)
    return build_serialized_list_reply("warmQueries", texts, cursor)


_SERVER_MEMBERS = (
    frozenset(replies.QueryDefinition.__annotations__) - map_accepted_names_to_documented_names(QueryBody).keys()
)


async def _read_current_definition(path_parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the stored definition of a query as JSON.

    If the query does not exist, return an object with only its lookup (short name in URLs).
    """
    stored = await services().queries.definitions.find_query(path_parameters["lookup"])
    return {"lookup": path_parameters["lookup"]} if stored is None else await _find_columns_and_build_query_json(stored)


async def _check_definition(call: Call[Any, QueryBody], faults: ValidationErrors) -> None:
    check_lookup(faults, call.path["lookup"])
    check_conditional_headers(faults, call.request)
    if faults:
        # Without errors so far, `put` runs these checks itself.
        await services().queries.definitions.check_definition(faults, _build_definition(call))


@GROUP.endpoint(
    "PUT",
    "oi-api/warm-queries/{lookup}",
    right=AccessRight.WARM_QUERY_MANAGE,
    body=QueryBody,
    server_set=ServerManagedProperties(
        _SERVER_MEMBERS, _read_current_definition, frozenset({"schema"}), volatile=frozenset({"updatedAt", "warnings"})
    ),
    check=_check_definition,
    docs=replies.PUT,
)
async def put_warm_query(call: Call[Any, QueryBody]) -> Reply:
    """Create or replace the definition of a warm query.

    The query is a draft until a principal other than its editor approves it. The reply has `warnings` if the local
    engine computes a function of the query only approximately.
    """
    condition = parse_conditional_headers(call.request)
    stored, is_new = await services().queries.definitions.store_draft(
        call.principal, _build_definition(call), condition
    )
    document = await _find_columns_and_build_query_json(stored)
    if warnings := _list_approximation_warnings(stored.value):
        document["warnings"] = warnings
    return build_json_reply(document, 201 if is_new else 200, {"ETag": compute_query_etag(stored)})


def _list_approximation_warnings(query: WarmQuery) -> list[dict[str, str]]:
    found = services().queries.columns.find_approximated_functions(query)
    return [{"field": "kql", "message": f"On Data Explorer, other results are possible: {each}."} for each in found]


@GROUP.endpoint("DELETE", "oi-api/warm-queries/{lookup}", right=AccessRight.WARM_QUERY_MANAGE, docs=replies.DELETED)
async def delete_warm_query(call: Call) -> Reply:
    """Delete a warm query.

    A warm query is a saved KQL query.
    """
    await services().queries.definitions.delete_query(
        call.principal, call.path["lookup"], parse_conditional_headers(call.request)
    )
    return Reply(204)


class QueryApprovalBody(BaseModel):
    """Request body that approves a query's draft; it may be empty if the workspace requires no signature."""

    signature: SentSignature = None


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries/{lookup}/approve",
    right=AccessRight.WARM_QUERY_APPROVE,
    requires_user=True,
    body=QueryApprovalBody,
    docs=replies.APPROVED,
)
@make_idempotent
async def approve_warm_query(call: Call[Any, QueryApprovalBody]) -> Reply:
    """Approve the draft of a warm query; its editor cannot approve it.

    A warm query is a saved KQL query.
    """
    stored = await services().queries.definitions.approve_query(
        call.principal.member_id,
        call.path["lookup"],
        parse_conditional_headers(call.request),
        credential_creators=await services().access.find_author_ids_caller_cannot_approve(call.principal),
        can_be_retry=bool(call.append_id),
        append_id=call.append_id,
        signer=await _build_signer_if_needed(call, call.body.signature, is_rejection=False),
    )
    return await _build_definition_reply(stored)


class QueryRejectionBody(BaseModel):
    """Request body that rejects the draft of a warm query."""

    comment: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4_000, pattern=r"\S")]
    signature: SentSignature = None


async def _check_rejection(call: Call[Any, QueryRejectionBody], faults: ValidationErrors) -> None:
    check_conditional_headers(faults, call.request)


@GROUP.endpoint(
    "POST",
    "oi-api/warm-queries/{lookup}/reject",
    right=AccessRight.WARM_QUERY_APPROVE,
    requires_user=True,
    body=QueryRejectionBody,
    check=_check_rejection,
    docs=replies.REJECTED,
)
@make_idempotent
async def reject_warm_query(call: Call[Any, QueryRejectionBody]) -> Reply:
    """Reject the draft of a warm query with a comment; its editor cannot reject it.

    A warm query is a saved KQL query.
    """
    stored = await services().queries.definitions.reject_query(
        call.principal.member_id,
        call.path["lookup"],
        call.body.comment,
        parse_conditional_headers(call.request),
        credential_creators=await services().access.find_author_ids_caller_cannot_approve(call.principal),
        can_be_retry=bool(call.append_id),
        append_id=call.append_id,
        signer=await _build_signer_if_needed(call, call.body.signature, is_rejection=True),
    )
    return await _build_definition_reply(stored)


async def _build_signer_if_needed(
    call: Call[Any, Any], sent_signature: Any, *, is_rejection: bool
) -> DecisionSigner | None:
    return await build_signer_if_needed(
        call,
        sent_signature,
        AccessRight.WARM_QUERY_APPROVE,
        lambda policies: policies.signatures.queries,
        is_rejection=is_rejection,
    )


def _build_definition(call: Call[Any, QueryBody]) -> WarmQuery:
    """Build the query model from a request without validating it, because all errors are reported together later."""
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


async def _build_definition_reply(stored: CatalogEntry[WarmQuery]) -> Reply:
    return build_json_reply(await _find_columns_and_build_query_json(stored), 200, {"ETag": compute_query_etag(stored)})


async def _find_columns_and_build_query_json(stored: CatalogEntry[WarmQuery]) -> dict[str, Any]:
    return _definition_to_json(stored, await services().queries.columns.find_columns(stored.value))


def _definition_to_json(stored: CatalogEntry[WarmQuery], result_columns: Sequence[Column] | None) -> dict[str, Any]:
    query = stored.value
    rejection = query.rejection if isinstance(query, StoredWarmQuery) else None
    schema = (
        None
        if result_columns is None
        else {"columns": [{"name": one.name, "type": one.type} for one in result_columns]}
    )
    return {
        **query.model_dump(mode="json", by_alias=True, exclude={"approval", "rejection"}),
        "etag": compute_query_etag(stored),
        "schema": schema,
        "createdAt": format_rfc3339(stored.created_at),
        "updatedAt": format_rfc3339(stored.updated_at),
        "editedBy": stored.edited_by,
        "approval": query.approval and query.approval.model_dump(mode="json", by_alias=True),
        "rejection": rejection and rejection.model_dump(mode="json", by_alias=True),
    }


_SERIALIZED = SerializedItems[tuple[CatalogEntry[WarmQuery], Sequence[Column] | None]](
    lambda version: _definition_to_json(*version)
)
