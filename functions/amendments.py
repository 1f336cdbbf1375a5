"""HTTP operations on amendments: create, query, list per entity (as JSON or a printable report), approve and reject."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, WithJsonSchema

from functions.decision_signing import build_signer_if_needed
from functions.idempotency import reserve_append_id
from functions.provenance_queries import LenientParser, SequenceQuery
from functions.provenance_replies import build_created_reply, build_record_list_reply
from functions.reply_docs import provenance_events as replies
from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import Policies
from shared.catalog.signature_models import SignatureRequirement
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.http.messages import JSON, Reply, build_json_reply
from shared.http.negotiation import choose_media_type
from shared.http.operations import Call, Group
from shared.http.unknown_names import UnknownNames
from shared.provenance.amendment_report import AmendmentReport, render_amendment_report_html
from shared.provenance.amendments import AmendmentPolicy, AmendmentState, check_amendment_reason
from shared.provenance.appender import AppendResult
from shared.provenance.decisions import find_decisions
from shared.provenance.models import AmendmentBody, Body, RejectionBody, RequiredScopeKey, SentSignature
from shared.provenance.notes import NoteError
from shared.provenance.ports import ChainKey
from shared.provenance.queries import DEFAULT_LIMIT, AmendmentFilters, list_amendment_ids, query_entity_amendments
from shared.provenance.report_header import ChainEvidence, ReportHeader
from shared.provenance.selection import (
    BODY_SCOPE_FIELD,
    QUERY_SCOPE_FIELD,
    build_not_provisioned_error,
    check_scope,
    resolve_amendments_chain,
)
from shared.provenance.signatures import DecisionSigner, build_signature_required_error
from shared.timestamps import format_rfc3339
from shared.warm_queries.disconnects import cancel_at_disconnect
from shared.wiring import services
from shared.wiring.features import PROVENANCE

HTML = "text/html"
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_VERIFY_SECONDS: Final = 20.0
"""Maximum time to verify a chain for a report; the report of a longer chain shows the last verification."""


async def build_report_reply(report: AmendmentReport, headers: Mapping[str, str]) -> Reply:
    """Build the reply with an amendment report as an HTML page; add ``headers`` to the headers of the reply."""
    page_headers = {"Content-Type": f"{HTML}; charset=utf-8", "Content-Security-Policy": _CONTENT_SECURITY_POLICY}
    return Reply(
        200, await services().runtime.run_in_thread(render_amendment_report_html, report), {**headers, **page_headers}
    )


async def load_report_header(chain: ChainKey, author: Principal) -> ReportHeader:
    """Load the header of a report: workspace, author, time, and evidence about the audit chain.

    The evidence is the last verification and the newest checkpoint of the chain; it is None if the author may not read
    the audit log. If the author may verify chains, the chain is verified first, for at most 20 seconds, unless too many
    other verifications of the author are running.
    """
    workspace = (await services().catalog.get_current_catalog()).workspace
    return ReportHeader(
        workspace_id=workspace.id if workspace else "",
        workspace_name=workspace.name if workspace else "",
        created_at=format_rfc3339(services().runtime.now()),
        created_by=author.member_id,
        author_name=author.name,
        evidence=await _load_chain_evidence(chain, author) if AccessRight.PROVENANCE_READ in author.rights else None,
    )


async def _load_chain_evidence(chain: ChainKey, author: Principal) -> ChainEvidence:
    """Return the last verification and the newest checkpoint of a chain.

    If the author has the right to verify chains, the chain is verified first, within a time limit.
    """
    provenance = services().provenance
    if AccessRight.PROVENANCE_VERIFY in author.rights:
        try:
            with cancel_at_disconnect():
                async with asyncio.timeout(_VERIFY_SECONDS):
                    await provenance.verifier.verify_for_principal(author.member_id, chain)
        except TimeoutError:
            pass
        except WorkspaceError as error:
            if error.kind is not Kind.THROTTLED:
                raise
    verdict = await provenance.chain_overview.find_verdict(chain)
    stored = await provenance.checkpoints.find_newest(chain)
    if stored is None:
        return ChainEvidence(verdict, None, None)
    try:
        return ChainEvidence(verdict, stored, await provenance.checkpoints.verify_and_parse_checkpoint(chain, stored))
    except NoteError:
        return ChainEvidence(verdict, stored, None)


GROUP = Group("amendments")


class RejectQuery(BaseModel):
    """Query parameters of an amendment's rejection. The request body may contain the scope instead."""

    scope_key: RequiredScopeKey = Field(
        None,
        validation_alias=AliasChoices("scopeKey", BODY_SCOPE_FIELD),
        description="Scope of the amendment; required here or as ScopeKey in the body.",
    )


class ApprovalBody(Body):
    """Request body that approves an amendment; it may be empty if the workspace requires no signature."""

    signature: SentSignature = None


class ScopeQuery(BaseModel):
    """Query parameter that names a scope, such as a production line, to select its audit chain."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"required": ["scopeKey"]})

    scope_key: RequiredScopeKey = Field(None, alias="scopeKey", description="Scope; required.")


class ChainQuery(ScopeQuery):
    """Query parameters that select the entity whose amendments are requested, and its scope."""

    model_config = ConfigDict(json_schema_extra={"required": ["scopeKey", "entityId"]})

    entity_id: Annotated[str | None, WithJsonSchema({"type": "string", "minLength": 1})] = Field(
        None, alias="entityId", description="Id of the entity; required."
    )


class AmendmentsQuery(SequenceQuery):
    """Query parameters that filter a list of amendments and decisions."""

    model_config = ConfigDict(json_schema_extra={"required": ["scopeKey"]})

    scope_key: RequiredScopeKey = Field(None, alias="scopeKey", description="Scope; required.")
    entity_id: str | None = Field(None, alias="entityId", description="Only records about this entity.")
    entity_type: str | None = Field(None, alias="entityType", description="Only records about entities of this type.")
    reason_category: str | None = Field(None, alias="reasonCategory", description="Only amendments with this reason.")
    amended_by: str | None = Field(None, alias="amendedBy", description="Only amendments by this principal.")
    status: AmendmentState | None = Field(
        None, description="Only records with this status: pending, approved or rejected."
    )


async def _check_scope_key_of_query(call: Call[ScopeQuery | AmendmentsQuery, Any], faults: ValidationErrors) -> None:
    check_scope(faults, call.query.scope_key)


async def _check_entity_id_of_query(call: Call[ChainQuery], faults: ValidationErrors) -> None:
    check_scope(faults, call.query.scope_key)
    if faults.has_valid_fields("entityId") and not call.query.entity_id:
        faults.add(build_invalid_field_error("entityId", "is required and must not be empty"))


async def _check_amendment(call: Call[Any, AmendmentBody], faults: ValidationErrors) -> None:
    check_scope(faults, call.body.scope_key, BODY_SCOPE_FIELD)
    if faults:
        # A valid request is not checked against the policy here: it may be a retry, which gets the first reply again
        # even if the policy has changed meanwhile.
        check_amendment_reason(faults, call.body, await _load_cached_amendment_policy())


async def _check_rejection(call: Call[RejectQuery, RejectionBody], faults: ValidationErrors) -> None:
    in_body, in_query = call.body.scope_key, call.query.scope_key
    if in_body is not None:
        check_scope(faults, in_body, BODY_SCOPE_FIELD)
    if in_query is not None or (in_body is None and faults.has_valid_fields(BODY_SCOPE_FIELD)):
        check_scope(faults, in_query)
    if in_body and in_query and in_body != in_query and faults.has_valid_fields(BODY_SCOPE_FIELD, QUERY_SCOPE_FIELD):
        faults.add(build_invalid_field_error(BODY_SCOPE_FIELD, "must equal scopeKey in the query string"))


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/amendments",
    right=AccessRight.AMENDMENT_CREATE,
    requires_user=True,
    feature=PROVENANCE,
    body=AmendmentBody,
    unknown=UnknownNames.IGNORE,
    check=_check_amendment,
    docs=replies.AMENDMENT_CREATED,
)
async def create_amendment(call: Call[Any, AmendmentBody]) -> Reply:
    """Record an amendment of an entity.

    Its status is pending if the workspace's policy requires approval, else approved.
    """
    chain = resolve_amendments_chain(call.body.scope_key)
    policy = await _load_cached_amendment_policy()
    if not policy.approval_required:
        # Another instance may just have stored a policy that requires approval.
        policy = await _load_stored_amendment_policy()
    async with reserve_append_id(call) as append_id:
        try:
            created = await _append_amendment(call, chain, policy, append_id)
        except _ApprovalRequiredError as error:
            created = await _append_amendment(call, chain, error.policy, append_id)
    services().webhooks.start_event_sources()
    return await build_created_reply(chain, created)


async def _append_amendment(
    call: Call[Any, AmendmentBody], chain: ChainKey, policy: AmendmentPolicy, append_id: str
) -> AppendResult:
    """Append an amendment; the stored policy decides, directly before the append, if it needs no approval.

    Raises:
        _ApprovalRequiredError: the stored policy requires approval, but ``policy`` does not.
        WorkspaceError: UNAVAILABLE ``PROVENANCE_NOT_PROVISIONED`` if the stored policies no longer have `provenance`.
    """

    async def confirm_policy() -> None:
        stored = await _load_stored_amendment_policy()
        if stored.approval_required and not policy.approval_required:
            raise _ApprovalRequiredError(stored)

    return await services().provenance.amendments.create(
        chain,
        call.principal.member_id,
        call.body,
        policy,
        append_id=append_id,
        body_bytes=len(call.request.body),
        confirm=confirm_policy,
    )


class _ApprovalRequiredError(Exception):
    """Raised before an approved amendment is appended, if the stored policy now requires approval.

    Args:
        policy: the stored policy.
    """

    def __init__(self, policy: AmendmentPolicy) -> None:
        super().__init__("the stored policy requires approval")
        self.policy = policy


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/amendments",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    query=AmendmentsQuery,
    unknown=UnknownNames.REPORT,
    check=_check_scope_key_of_query,
    docs=replies.AMENDMENTS_QUERIED,
)
async def query_scope_amendments(call: Call[AmendmentsQuery]) -> Reply:
    """Return amendments and decisions that match the filters, newest first."""
    query, parser = call.query, LenientParser()
    chain = resolve_amendments_chain(query.scope_key)
    filters = AmendmentFilters(
        entity_id=parser.parse_filter("entityId", query.entity_id),
        entity_type=parser.parse_filter("entityType", query.entity_type),
        reason_category=parser.parse_filter("reasonCategory", query.reason_category),
        amended_by=parser.parse_filter("amendedBy", query.amended_by),
        status=query.status,
        window=parser.parse_range_filters(query),
    )
    with cancel_at_disconnect():
        answer = await services().provenance.overview.query_amendments(
            chain,
            filters,
            limit=parser.parse_number("limit", query.limit, minimum=1, default=DEFAULT_LIMIT),
            offset=parser.parse_number("offset", query.offset, minimum=0, default=0),
        )
    return await build_record_list_reply(chain, answer, parser)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/amendments/chain",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    query=ChainQuery,
    unknown=UnknownNames.REPORT,
    check=_check_entity_id_of_query,
    docs=replies.AMENDMENT_CHAIN,
)
async def amendments_of_entity(call: Call[ChainQuery]) -> Reply:
    """Return the amendments and decisions about an entity, oldest first.

    The reply is a printable page if the Accept header prefers ``text/html``.
    """
    chain, entity_id = resolve_amendments_chain(call.query.scope_key), call.query.entity_id or ""
    store = services().provenance.chain_store
    answer = await query_entity_amendments(store, chain, entity_id, runtime=services().runtime)
    if choose_media_type(call.request.headers.get("accept", ""), (JSON, HTML)) != HTML:
        return await build_record_list_reply(chain, answer, LenientParser())
    reply = await build_record_list_reply(chain, replace(answer, records=()), LenientParser())
    amendments = await services().runtime.run_in_thread(list_amendment_ids, answer.records)
    decided = await find_decisions(store, chain, amendments, runtime=services().runtime)
    receipts: Mapping[str, bytes] = {}
    if AccessRight.PROVENANCE_READ in call.principal.rights:
        shown = (*answer.records, *decided.by_amendment.values())
        receipts = await services().provenance.receipts.issue_receipts_by_record_id(chain, shown)
    header = await load_report_header(chain, call.principal)
    return await build_report_reply(AmendmentReport(chain, entity_id, answer, decided, header, receipts), reply.headers)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/reason-categories",
    right=AccessRight.AMENDMENT_READ,
    feature=PROVENANCE,
    unknown=UnknownNames.REPORT,
    docs=replies.REASON_CATEGORIES,
)
async def reason_categories(_: Call) -> Reply:
    """Return the reason categories that an amendment may use."""
    return build_json_reply({"categories": list((await _load_cached_amendment_policy()).reason_categories)})


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/amendments/{id}/approve",
    right=AccessRight.AMENDMENT_APPROVE,
    requires_user=True,
    feature=PROVENANCE,
    query=ScopeQuery,
    body=ApprovalBody,
    unknown=UnknownNames.IGNORE,
    check=_check_scope_key_of_query,
    docs=replies.AMENDMENT_APPROVED,
)
async def approve_amendment(call: Call[ScopeQuery, ApprovalBody]) -> Reply:
    """Approve a pending amendment; its author cannot approve it."""
    chain = resolve_amendments_chain(call.query.scope_key)
    creators = await services().access.find_author_ids_caller_cannot_approve(call.principal)
    signer = await _build_signer_if_needed(call, call.body.signature, is_rejection=False)
    async with reserve_append_id(call) as append_id:
        decision = await services().provenance.amendments.approve(
            chain,
            call.path["id"],
            call.principal.member_id,
            credential_creators=creators,
            append_id=append_id,
            signer=signer,
            confirm_unsigned=_require_no_signature,
        )
    services().webhooks.start_event_sources()
    return replace(await build_created_reply(chain, decision), status=200)


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/amendments/{id}/reject",
    right=AccessRight.AMENDMENT_APPROVE,
    requires_user=True,
    feature=PROVENANCE,
    query=RejectQuery,
    body=RejectionBody,
    unknown=UnknownNames.IGNORE,
    check=_check_rejection,
    docs=replies.AMENDMENT_REJECTED,
)
async def reject_amendment(call: Call[RejectQuery, RejectionBody]) -> Reply:
    """Reject a pending amendment; its author cannot reject it."""
    in_body, in_query = call.body.scope_key, call.query.scope_key
    chain = resolve_amendments_chain(in_query if in_body is None else in_body)
    creators = await services().access.find_author_ids_caller_cannot_approve(call.principal)
    signer = await _build_signer_if_needed(call, call.body.signature, is_rejection=True)
    async with reserve_append_id(call) as append_id:
        decision = await services().provenance.amendments.reject(
            chain,
            call.path["id"],
            call.principal.member_id,
            call.body.rejection_reason,
            credential_creators=creators,
            append_id=append_id,
            signer=signer,
            confirm_unsigned=_require_no_signature,
        )
    services().webhooks.start_event_sources()
    return replace(await build_created_reply(chain, decision), status=200)


async def _require_no_signature() -> None:
    """Reject a decision without a signature if the stored policies require one, or no longer contain `provenance`."""
    policies = (await services().catalog.reader.load_stored_catalog()).policies
    if _get_signature_requirement(policies) is SignatureRequirement.REQUIRED:
        raise build_signature_required_error()


async def _build_signer_if_needed(
    call: Call[Any, Any], sent_signature: Any, *, is_rejection: bool
) -> DecisionSigner | None:
    return await build_signer_if_needed(
        call,
        sent_signature,
        AccessRight.AMENDMENT_APPROVE,
        _get_signature_requirement,
        is_rejection=is_rejection,
    )


def _get_signature_requirement(policies: Policies) -> SignatureRequirement:
    """Return whether decisions about amendments need a signature; raise an error without the policy `provenance`."""
    if policies.provenance is None:
        raise build_not_provisioned_error()
    return policies.signatures.amendments


async def _load_stored_amendment_policy() -> AmendmentPolicy:
    """Return the amendment policy as stored now, because the cached catalog can be some seconds old."""
    return _require_amendment_policy(await services().catalog.reader.load_stored_catalog())


async def _load_cached_amendment_policy() -> AmendmentPolicy:
    return _require_amendment_policy(await services().catalog.get_current_catalog())


def _require_amendment_policy(catalog: Catalog) -> AmendmentPolicy:
    policies = catalog.policies
    policy = policies.provenance
    if policy is None:
        raise build_not_provisioned_error()
    must_sign = policies.signatures.amendments is SignatureRequirement.REQUIRED
    return AmendmentPolicy(
        approval_required=policy.require_approval or policy.require_two_person_auth or must_sign,
        reason_text_required=policy.require_reason_text,
        reason_categories=policy.reason_categories,
    )
