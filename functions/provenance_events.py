"""HTTP operations on the audit log: write, query, verify, export, checkpoints and proofs."""

import base64
from collections.abc import Sequence
from dataclasses import replace

from functions.idempotency import reserve_append_id
from functions.provenance_queries import (
    CheckpointQuery,
    EventsQuery,
    ExportFormat,
    ExportQuery,
    LenientParser,
    ProofQuery,
    TargetQuery,
    VerifyBody,
    WriteQuery,
)
from functions.provenance_replies import (
    build_created_reply,
    build_csv_reply,
    build_export_file_name,
    build_record_list_reply,
    compute_max_csv_bytes,
)
from functions.reply_docs import provenance_events as replies
from shared.auth.rights import AccessRight
from shared.errors import Kind, ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.http.unknown_names import UnknownNames
from shared.provenance.models import EventBody
from shared.provenance.notes import NoteError
from shared.provenance.queries import DEFAULT_EXPORT_LIMIT, DEFAULT_LIMIT, export_records, query_records
from shared.provenance.records import build_event_draft
from shared.provenance.selection import (
    BODY_SCOPE_FIELD,
    check_target_and_scope,
    parse_requested_sequence,
    resolve_chain_to_read,
    resolve_chain_to_write,
)
from shared.warm_queries.disconnects import cancel_at_disconnect
from shared.wiring import services
from shared.wiring.features import PROVENANCE

GROUP = Group("provenance")


async def _check_event(call: Call[WriteQuery, EventBody], faults: ValidationErrors) -> None:
    check_target_and_scope(faults, call.query.target, call.body.scope_key, BODY_SCOPE_FIELD)
    if faults.has_valid_fields("target"):
        with faults.collect_raised_error():
            resolve_chain_to_write(call.query.target, call.body.scope_key)


async def _check_selected_chain(
    call: Call[EventsQuery | ExportQuery | CheckpointQuery], faults: ValidationErrors
) -> None:
    check_target_and_scope(faults, call.query.target, call.query.scope_key)


async def _check_verification_request(call: Call[TargetQuery, VerifyBody], faults: ValidationErrors) -> None:
    with faults.collect_raised_error():
        _parse_record_id_if_requested(call.body)
    check_target_and_scope(faults, call.query.target, call.body.scope_key, BODY_SCOPE_FIELD)


async def _check_proof_query(call: Call[ProofQuery], faults: ValidationErrors) -> None:
    query = call.query
    await _check_selected_chain(call, faults)
    if faults.has_valid_fields("size") and query.size is None:
        rule = "is required: the number of records that the proof covers, such as the size of a checkpoint"
        faults.add(build_invalid_field_error("size", rule))
    if faults.has_valid_fields("sequence", "from") and (query.sequence is None) == (query.from_size is None):
        faults.add(build_invalid_field_error("sequence", "exactly one of sequence and from is required"))


def _parse_record_id_if_requested(body: VerifyBody) -> int | None:
    """Return the sequence number of the record that the property RecordID requests; None if it requests none."""
    return parse_requested_sequence(body.model_dump(by_alias=True, exclude_unset=True))


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/events",
    right=AccessRight.PROVENANCE_WRITE,
    requires_user=True,
    feature=PROVENANCE,
    query=WriteQuery,
    body=EventBody,
    unknown=UnknownNames.IGNORE,
    check=_check_event,
    docs=replies.WRITTEN,
)
async def write_audit_event(call: Call[WriteQuery, EventBody]) -> Reply:
    """Append an audit event to the audit chain of its target and scope."""
    chain = resolve_chain_to_write(call.query.target, call.body.scope_key)
    draft = await services().runtime.run_in_thread_if_large(
        len(call.request.body), lambda: build_event_draft(call.principal.member_id, call.body.to_event())
    )
    async with reserve_append_id(call) as append_id:
        appended = await services().provenance.chain_log.append(chain, draft, append_id=append_id)
    return await build_created_reply(chain, appended)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/events/query",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=EventsQuery,
    unknown=UnknownNames.REPORT,
    check=_check_selected_chain,
    docs=replies.QUERIED,
)
async def query_audit_events(call: Call[EventsQuery]) -> Reply:
    """Return audit events that match the filters, newest first."""
    parameters, parser = call.query, LenientParser()
    chain = resolve_chain_to_read(parameters.target, parameters.scope_key)
    filters = replace(parser.parse_range_filters(parameters), equal=parser.parse_equality_filters(parameters))
    with cancel_at_disconnect():
        answer = await query_records(
            services().provenance.chain_store,
            chain,
            filters,
            limit=parser.parse_number("limit", parameters.limit, minimum=1, default=DEFAULT_LIMIT),
            offset=parser.parse_number("offset", parameters.offset, minimum=0, default=0),
            runtime=services().runtime,
        )
    return await build_record_list_reply(chain, answer, parser)


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/events/verify",
    right=AccessRight.PROVENANCE_VERIFY,
    feature=PROVENANCE,
    query=TargetQuery,
    body=VerifyBody,
    unknown=UnknownNames.REPORT,
    check=_check_verification_request,
    docs=replies.VERIFIED,
)
async def verify_audit_chain(call: Call[TargetQuery, VerifyBody]) -> Reply:
    """Verify an audit chain from its first record to its last.

    With RecordID, the reply also contains that record and its recomputed digest.
    """
    sequence = _parse_record_id_if_requested(call.body)
    chain = resolve_chain_to_read(call.query.target, call.body.scope_key)
    with cancel_at_disconnect():
        verdict = await services().provenance.verifier.verify_for_principal(call.principal.member_id, chain, sequence)
    return build_json_reply(verdict.to_reply_json(chain))


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/events/export",
    right=AccessRight.PROVENANCE_EXPORT,
    feature=PROVENANCE,
    query=ExportQuery,
    unknown=UnknownNames.REPORT,
    check=_check_selected_chain,
    docs=replies.EXPORTED,
)
async def export_audit_events(call: Call[ExportQuery]) -> Reply:
    """Download audit events that match the filters, oldest first, as JSON or CSV."""
    parameters, parser = call.query, LenientParser()
    chain = resolve_chain_to_read(parameters.target, parameters.scope_key)
    filters = replace(parser.parse_range_filters(parameters), equal=parser.parse_equality_filters(parameters))
    limit = parser.parse_number("limit", parameters.limit, minimum=1, default=DEFAULT_EXPORT_LIMIT)
    as_csv = parameters.format is ExportFormat.CSV
    with cancel_at_disconnect():
        answer = await export_records(
            services().provenance.chain_store,
            chain,
            filters,
            limit=limit,
            measure_bytes=compute_max_csv_bytes if as_csv else None,
            runtime=services().runtime,
        )
    build_reply = build_csv_reply if as_csv else build_record_list_reply
    reply = await build_reply(chain, answer, parser)
    reply.headers["Content-Disposition"] = f'attachment; filename="{build_export_file_name(chain)}"'
    return reply


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/checkpoint",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=CheckpointQuery,
    unknown=UnknownNames.REPORT,
    check=_check_selected_chain,
    docs=replies.CHECKPOINT,
)
async def newest_checkpoint(call: Call[CheckpointQuery]) -> Reply:
    """Return the newest signed checkpoint of a chain."""
    chain = resolve_chain_to_read(call.query.target, call.query.scope_key)
    try:
        current = await services().provenance.checkpoints.load_newest_verified(chain)
    except NoteError as error:
        detail = "The signature of the stored checkpoint is not from this workspace's key. Verify the chain."
        raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail) from error
    return build_json_reply(
        {
            "origin": current.checkpoint.origin,
            "size": current.checkpoint.size,
            "rootHash": base64.b64encode(current.checkpoint.root).decode(),
            "lastHash": current.last_hash,
            "timestamp": current.stored.created_at,
            "signedNote": current.stored.note.decode(),
        }
    )


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/proof",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=ProofQuery,
    unknown=UnknownNames.REPORT,
    check=_check_proof_query,
    docs=replies.PROOF,
)
async def prove(call: Call[ProofQuery]) -> Reply:
    """Return an inclusion proof of a record, or a consistency proof of two checkpoints."""
    parameters = call.query
    chain = resolve_chain_to_read(parameters.target, parameters.scope_key)
    size = parameters.size or 0
    if parameters.sequence is not None:
        inclusion = await services().provenance.proofs.prove_inclusion(chain, parameters.sequence, size)
        return build_json_reply(
            {"leafIndex": inclusion.leaf_index, "size": inclusion.size, "hashes": _to_base64_texts(inclusion.hashes)}
        )
    consistency = await services().provenance.proofs.prove_consistency(chain, parameters.from_size or 0, size)
    return build_json_reply(
        {"from": consistency.old, "size": consistency.size, "hashes": _to_base64_texts(consistency.hashes)}
    )


def _to_base64_texts(hashes: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(one).decode() for one in hashes]
