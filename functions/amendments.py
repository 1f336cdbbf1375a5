"""Corrections: create, query, an entity's chain, reason categories, approve, reject."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, WithJsonSchema

from functions.audit_report import HTML, Report, corrections, report_reply
from functions.idempotency import appended_once
from functions.provenance_events import created, listed
from functions.provenance_queries import Lenient, SequenceQuery
from functions.replies import amendments as replies
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors, invalid
from shared.http.messages import JSON, Reply, json_reply
from shared.http.negotiation import preferred
from shared.http.operations import Call, Group
from shared.http.unknown_names import UnknownNames
from shared.provenance.amendments import AmendmentPolicy, AmendmentState, check_reason
from shared.provenance.decisions import find_decisions
from shared.provenance.models import AmendmentBody, RejectionBody, RequiredScopeKey
from shared.provenance.queries import DEFAULT_LIMIT, AmendmentFilters, query_amendments, query_entity_amendments
from shared.provenance.selection import BODY_SCOPE_FIELD, check_scope, resolve_amendments_chain
from shared.wiring import PROVENANCE, services

GROUP = Group("amendments")


class RejectQuery(BaseModel):
    """Which scope, where the body does not say it."""

    scope_key: RequiredScopeKey = Field(
        None,
        validation_alias=AliasChoices("scopeKey", BODY_SCOPE_FIELD),
        description="Scope, here or as ScopeKey in the body.",
    )


class ScopeQuery(BaseModel):
    """Which scope."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"required": ["scopeKey"]})

    scope_key: RequiredScopeKey = Field(None, alias="scopeKey", description="Scope; required.")


class ChainQuery(ScopeQuery):
    """Which entity of a scope."""

    model_config = ConfigDict(json_schema_extra={"required": ["scopeKey", "entityId"]})

    entity_id: Annotated[str | None, WithJsonSchema({"type": "string", "minLength": 1})] = Field(
        None, alias="entityId", description="Id of the entity; required."
    )


class AmendmentsQuery(SequenceQuery):
    """Filters of corrections."""

    model_config = ConfigDict(json_schema_extra={"required": ["scopeKey"]})

    scope_key: RequiredScopeKey = Field(None, alias="scopeKey", description="Scope; required.")
    entity_id: str | None = Field(None, alias="entityId", description="Only records about this entity.")
    entity_type: str | None = Field(None, alias="entityType", description="Only records about entities of this type.")
    reason_category: str | None = Field(None, alias="reasonCategory", description="Only corrections for this reason.")
    amended_by: str | None = Field(None, alias="amendedBy", description="Only corrections by this principal.")
    status: AmendmentState | None = Field(None, description="pending, approved or rejected.")


async def _sound_scope(call: Call[ScopeQuery | AmendmentsQuery], faults: ValidationErrors) -> None:
    check_scope(faults, call.query.scope_key)


async def _sound_entity(call: Call[ChainQuery], faults: ValidationErrors) -> None:
    check_scope(faults, call.query.scope_key)
    if faults.readable("entityId") and not call.query.entity_id:
        faults.add(invalid("entityId", "is required"))


async def _sound_correction(call: Call[Any, AmendmentBody], faults: ValidationErrors) -> None:
    check_scope(faults, call.body.scope_key, BODY_SCOPE_FIELD)
    if faults:
        # One that is sound so far may be a repeat, which is answered as before even if the policy has changed.
        check_reason(faults, call.body, await _policy())


async def _sound_rejection(call: Call[RejectQuery, RejectionBody], faults: ValidationErrors) -> None:
    in_body, in_query = call.body.scope_key, call.query.scope_key
    if in_body and in_query and in_body != in_query:
        faults.add(invalid(BODY_SCOPE_FIELD, "is not the scopeKey of the query string"))
    elif in_body is not None:
        check_scope(faults, in_body, BODY_SCOPE_FIELD)
    elif faults.readable(BODY_SCOPE_FIELD):
        check_scope(faults, in_query)


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/amendments",
    right=AccessRight.AMENDMENT_CREATE,
    identity=True,
    feature=PROVENANCE,
    body=AmendmentBody,
    unknown=UnknownNames.IGNORE,
    check=_sound_correction,
    docs=replies.CREATED,
)
async def create_amendment(call: Call[Any, AmendmentBody]) -> Reply:
    """Append a correction; it is pending where the workspace asks for approval."""
    chain = resolve_amendments_chain(call.body.scope_key)
    policy = await _policy()
    async with appended_once(call) as append_id:
        made = await services().amendments.create(
            chain, call.principal.member_id, call.body, policy, append_id=append_id, size=len(call.request.body)
        )
    return created(chain, made.record)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/amendments",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    query=AmendmentsQuery,
    unknown=UnknownNames.REPORT,
    check=_sound_scope,
    docs=replies.QUERIED,
)
async def query_scope_amendments(call: Call[AmendmentsQuery]) -> Reply:
    """Return corrections and decisions that match, newest first."""
    wanted, lenient = call.query, Lenient()
    chain = resolve_amendments_chain(wanted.scope_key)
    filters = AmendmentFilters(
        entity_id=wanted.entity_id or "",
        entity_type=wanted.entity_type or "",
        reason_category=wanted.reason_category or "",
        amended_by=wanted.amended_by or "",
        status=wanted.status,
        window=lenient.window(wanted),
    )
    answer = await query_amendments(
        services().chain_store,
        chain,
        filters,
        limit=lenient.number("limit", wanted.limit, least=1, default=DEFAULT_LIMIT),
        offset=lenient.number("offset", wanted.offset, least=0, default=0),
    )
    return await listed(chain, answer, lenient)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/amendments/chain",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    query=ChainQuery,
    unknown=UnknownNames.REPORT,
    check=_sound_entity,
    docs=replies.CHAIN,
)
async def amendments_of_entity(call: Call[ChainQuery]) -> Reply:
    """Return everything that was corrected about an entity, oldest first; as a printable page for who prefers HTML."""
    chain, entity_id = resolve_amendments_chain(call.query.scope_key), call.query.entity_id or ""
    store = services().chain_store
    answer = await query_entity_amendments(store, chain, entity_id)
    if preferred(call.request.headers.get("accept", ""), (JSON, HTML)) != HTML:
        return await listed(chain, answer, Lenient())
    reply = await listed(chain, replace(answer, records=()), Lenient())
    report = Report(
        chain,
        entity_id,
        answer,
        await find_decisions(store, chain, await asyncio.to_thread(corrections, answer.records)),
    )
    return await report_reply(report, reply.headers)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/reason-categories",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    unknown=UnknownNames.REPORT,
    docs=replies.CATEGORIES,
)
async def reason_categories(_: Call) -> Reply:
    """Return the reasons that a correction may name."""
    return json_reply({"categories": list((await _policy()).reason_categories)})


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/amendments/{id}/approve",
    right=AccessRight.AMENDMENT_APPROVE,
    identity=True,
    feature=PROVENANCE,
    query=ScopeQuery,
    unknown=UnknownNames.IGNORE,
    check=_sound_scope,
    docs=replies.APPROVED,
)
async def approve_amendment(call: Call[ScopeQuery]) -> Reply:
    """Approve somebody else's correction."""
    chain = resolve_amendments_chain(call.query.scope_key)
    async with appended_once(call) as append_id:
        made = await services().amendments.approve(
            chain, call.path["id"], call.principal.member_id, append_id=append_id
        )
    return replace(created(chain, made.record), status=200)


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/amendments/{id}/reject",
    right=AccessRight.AMENDMENT_APPROVE,
    identity=True,
    feature=PROVENANCE,
    query=RejectQuery,
    body=RejectionBody,
    unknown=UnknownNames.IGNORE,
    check=_sound_rejection,
    docs=replies.REJECTED,
)
async def reject_amendment(call: Call[RejectQuery, RejectionBody]) -> Reply:
    """Reject somebody else's correction."""
    in_body, in_query = call.body.scope_key, call.query.scope_key
    chain = resolve_amendments_chain(in_query if in_body is None else in_body)
    async with appended_once(call) as append_id:
        made = await services().amendments.reject(
            chain, call.path["id"], call.principal.member_id, call.body.rejection_reason, append_id=append_id
        )
    return replace(created(chain, made.record), status=200)


async def _policy() -> AmendmentPolicy:
    policy = (await services().catalog.current()).policies.provenance
    if policy is None:
        raise invalid("workspace", "has no provenance policy")
    return AmendmentPolicy(
        approval_required=policy.require_approval or policy.require_two_person_auth,
        reason_text_required=policy.require_reason_text,
        reason_categories=policy.reason_categories,
    )
