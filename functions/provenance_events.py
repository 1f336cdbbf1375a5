"""The audit log: write, query, verify, export, checkpoints and proofs."""

import asyncio
import base64
import csv
import io
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, Strict, WithJsonSchema

from functions.idempotency import appended_once
from functions.provenance_queries import Lenient, SequenceQuery, WindowQuery, present
from functions.provenance_queries import Sequence as SequenceNumber
from functions.replies import provenance as replies
from shared.auth.rights import AccessRight
from shared.errors import Kind, ValidationErrors, WorkspaceError, invalid
from shared.http.messages import JSON, Reply, json_reply
from shared.http.operations import Access, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.observability.metrics import measure
from shared.provenance.models import EventBody, ScopeKey
from shared.provenance.notes import NoteError
from shared.provenance.ports import ChainKey, ChainRecord, Target
from shared.provenance.queries import DEFAULT_EXPORT_LIMIT, DEFAULT_LIMIT, AuditQueryResult, export, query
from shared.provenance.records import draft_event, parse_record, to_json
from shared.provenance.selection import (
    BODY_SCOPE_FIELD,
    check_chain,
    parse_record_id,
    resolve_chain_to_read,
    resolve_chain_to_write,
)
from shared.text_formats.csv_cells import escape_formula
from shared.wiring import PROVENANCE, services
from shared.worker_threads import collection_paused, run_in_worker

GROUP = Group("provenance")
CSV_COLUMNS = ("RecordID", "Timestamp", "UserID", "ActionType", "EntityType", "EntityID", "PreviousHash", "Hash")
MAX_LINK = 2_048
DAMAGED = "x-provenance-damaged"
MAX_DAMAGED = 100


_TARGETS: Final = "By default DomainEvents with a scope, PlatformConfig without."
AnyTarget = Annotated[str | None, WithJsonSchema({"type": "string", "enum": list(Target)})]
WrittenTarget = Annotated[
    str | None,
    WithJsonSchema({"type": "string", "enum": [one for one in Target if one is not Target.DOMAIN_AMENDMENTS]}),
]


class TargetQuery(BaseModel):
    """Which container is meant."""

    model_config = ConfigDict(extra="ignore")

    target: AnyTarget = Field(None, description=_TARGETS)


class WriteQuery(BaseModel):
    """Which container is written to."""

    model_config = ConfigDict(extra="ignore")

    target: WrittenTarget = Field(None, description="By default DomainEvents with a scope, PlatformConfig without.")


class EventsQuery(SequenceQuery):
    """Filters of audit events."""

    target: AnyTarget = Field(None, description=_TARGETS)
    entity_type: str | None = Field(None, alias="entityType", description="Only records of this entity type.")
    action_type: str | None = Field(None, alias="actionType", description="Only records of this action.")
    user_id: str | None = Field(None, alias="userId", description="Only records of this principal.")


class ExportFormat(StrEnum):
    """Forms of an export."""

    JSON = "json"
    CSV = "csv"


class ExportQuery(WindowQuery):
    """Filters and form of an export."""

    target: AnyTarget = Field(None, description=_TARGETS)
    entity_type: str | None = Field(None, alias="entityType", description="Only records of this entity type.")
    action_type: str | None = Field(None, alias="actionType", description="Only records of this action.")
    user_id: str | None = Field(None, alias="userId", description="Only records of this principal.")
    format: ExportFormat = Field(ExportFormat.JSON, description="json or csv.")


class VerifyBody(BaseModel):
    """What to verify; that RecordID is there, and not what it is, asks for a record."""

    model_config = ConfigDict(extra="ignore")

    scope_key: Annotated[ScopeKey, Strict()] = Field(None, alias="ScopeKey")
    record_id: Annotated[Any, WithJsonSchema({"type": "string", "pattern": "^[0-9]{12}$"})] = Field(
        None, alias="RecordID", description="A record whose digest is recomputed, too."
    )


class CheckpointQuery(TargetQuery):
    """Which chain's checkpoint."""

    scope_key: ScopeKey = Field(None, alias="scopeKey", description="Scope; the workspace's own chain without it.")


class ProofQuery(CheckpointQuery):
    """Which proof: of a record (``sequence``), or of growth (``from``)."""

    model_config = ConfigDict(json_schema_extra={"required": ["size"]})

    sequence: SequenceNumber = Field(None, description="Sequence of the record; or else from.")
    from_size: SequenceNumber = Field(None, alias="from", description="Size of the earlier checkpoint.")
    size: SequenceNumber = Field(None, description="Size of the checkpoint; required.")


async def _sound_event(call: Call[WriteQuery, EventBody], faults: ValidationErrors) -> None:
    check_chain(faults, call.query.target, call.body.scope_key, BODY_SCOPE_FIELD)


async def _sound_chain(call: Call[EventsQuery | ExportQuery | CheckpointQuery], faults: ValidationErrors) -> None:
    check_chain(faults, call.query.target, call.query.scope_key)


async def _sound_verification(call: Call[TargetQuery, VerifyBody], faults: ValidationErrors) -> None:
    with faults.gathered():
        _named(call.body)
    check_chain(faults, call.query.target, call.body.scope_key, BODY_SCOPE_FIELD)


async def _sound_proof(call: Call[ProofQuery], faults: ValidationErrors) -> None:
    wanted = call.query
    await _sound_chain(call, faults)
    if faults.readable("size") and wanted.size is None:
        faults.add(invalid("size", "is required: the size of the checkpoint"))
    if faults.readable("sequence", "from") and (wanted.sequence is None) == (wanted.from_size is None):
        faults.add(invalid("sequence", "give either sequence, for a record, or from, for an earlier size"))


def _named(body: VerifyBody) -> int | None:
    return parse_record_id(body.model_dump(by_alias=True, exclude_unset=True))


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/events",
    right=AccessRight.PROVENANCE_WRITE,
    identity=True,
    feature=PROVENANCE,
    query=WriteQuery,
    body=EventBody,
    unknown=UnknownNames.IGNORE,
    check=_sound_event,
    docs=replies.WRITTEN,
)
async def write_audit_event(call: Call[WriteQuery, EventBody]) -> Reply:
    """Append an audit event."""
    chain = resolve_chain_to_write(call.query.target, call.body.scope_key)
    draft = await run_in_worker(
        len(call.request.body), lambda: draft_event(call.principal.member_id, call.body.to_event())
    )
    async with appended_once(call) as append_id:
        written = await services().chain_log.append(chain, draft, append_id=append_id)
    return created(chain, written.record)


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/events/query",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=EventsQuery,
    unknown=UnknownNames.REPORT,
    check=_sound_chain,
    docs=replies.QUERIED,
)
async def query_audit_events(call: Call[EventsQuery]) -> Reply:
    """Return audit events that match, newest first."""
    wanted, lenient = call.query, Lenient()
    chain = resolve_chain_to_read(wanted.target, wanted.scope_key)
    filters = replace(lenient.window(wanted), equal=_equal(wanted))
    answer = await query(
        services().chain_store,
        chain,
        filters,
        limit=lenient.number("limit", wanted.limit, least=1, default=DEFAULT_LIMIT),
        offset=lenient.number("offset", wanted.offset, least=0, default=0),
    )
    return await listed(chain, answer, lenient)


@GROUP.endpoint(
    "POST",
    "oi-api/provenance/events/verify",
    right=AccessRight.PROVENANCE_VERIFY,
    feature=PROVENANCE,
    query=TargetQuery,
    body=VerifyBody,
    unknown=UnknownNames.REPORT,
    check=_sound_verification,
    docs=replies.VERIFIED,
)
async def verify_audit_chain(call: Call[TargetQuery, VerifyBody]) -> Reply:
    """Verify a chain from its first record to its last, and one record's digest when it is named."""
    named = _named(call.body)
    chain = resolve_chain_to_read(call.query.target, call.body.scope_key)
    started = time.perf_counter()
    verdict = await services().verifier.verify(chain, named)
    measure("workspace.chain.verify.duration", time.perf_counter() - started, sound=verdict.chain_valid)
    return json_reply(verdict.to_reply(chain))


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/events/export",
    right=AccessRight.PROVENANCE_EXPORT,
    feature=PROVENANCE,
    query=ExportQuery,
    unknown=UnknownNames.REPORT,
    check=_sound_chain,
    docs=replies.EXPORTED,
)
async def export_audit_events(call: Call[ExportQuery]) -> Reply:
    """Download audit events that match, oldest first."""
    wanted, lenient = call.query, Lenient()
    chain = resolve_chain_to_read(wanted.target, wanted.scope_key)
    filters = replace(lenient.window(wanted), equal=_equal(wanted))
    limit = lenient.number("limit", wanted.limit, least=1, default=DEFAULT_EXPORT_LIMIT)
    as_csv = wanted.format is ExportFormat.CSV
    answer = await export(services().chain_store, chain, filters, limit=limit, weigh=_csv_weight if as_csv else None)
    if as_csv:
        reply = await listed(chain, replace(answer, records=()), lenient)
        reply.body = await asyncio.to_thread(_csv, answer.records)
        reply.headers["Content-Type"] = "text/csv; charset=utf-8; header=present"
    else:
        reply = await listed(chain, answer, lenient)
    reply.headers["Content-Disposition"] = f'attachment; filename="{_file_name(chain)}"'
    return reply


@GROUP.endpoint(
    "GET",
    "oi-api/provenance/checkpoint",
    right=AccessRight.PROVENANCE_READ,
    feature=PROVENANCE,
    query=CheckpointQuery,
    unknown=UnknownNames.REPORT,
    check=_sound_chain,
    docs=replies.CHECKPOINT,
)
async def newest_checkpoint(call: Call[CheckpointQuery]) -> Reply:
    """Return the newest signed checkpoint of a chain."""
    chain = resolve_chain_to_read(call.query.target, call.query.scope_key)
    try:
        current = await services().checkpoints.current(chain)
    except NoteError as error:
        detail = "The stored checkpoint is not signed by this workspace's key; verify the chain."
        raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail) from error
    return json_reply(
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
    check=_sound_proof,
    docs=replies.PROOF,
)
async def prove(call: Call[ProofQuery]) -> Reply:
    """Prove that a record is in a checkpoint, or that a checkpoint grew from an earlier one."""
    wanted = call.query
    chain = resolve_chain_to_read(wanted.target, wanted.scope_key)
    size = wanted.size or 0
    if wanted.sequence is not None:
        proof = await services().proofs.prove_inclusion(chain, wanted.sequence, size)
        return json_reply({"leafIndex": proof.leaf_index, "size": proof.size, "hashes": _base64(proof.hashes)})
    growth = await services().proofs.prove_consistency(chain, wanted.from_size or 0, size)
    return json_reply({"from": growth.old, "size": growth.size, "hashes": _base64(growth.hashes)})


@GROUP.endpoint(
    "GET", ".well-known/oi-checkpoint-key", access=Access.PUBLIC, feature=PROVENANCE, docs=replies.VERIFIER_KEY
)
async def checkpoint_key(_: Call) -> Reply:
    """Publish the key that verifies checkpoints."""
    key = await services().checkpoints.verifier_key()
    return Reply(200, f"{key}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})


def created(chain: ChainKey, record: ChainRecord) -> Reply:
    """Return the 201 of a stored record, with the way to the checkpoint that will cover it."""
    where = {"target": str(chain.target), **({"scopeKey": chain.scope_key} if chain.scope_key else {})}
    link = f'</oi-api/provenance/checkpoint?{urlencode(where)}>; rel="checkpoint"'
    # Proxies stop at header lines of a few kilobytes.
    receipt = {"Link": link} if len(link) <= MAX_LINK else {}
    return Reply(201, to_json(record), {"Content-Type": JSON, **receipt})


async def listed(chain: ChainKey, answer: AuditQueryResult, lenient: Lenient) -> Reply:
    """Return records as a JSON array with the headers that every list of records has."""
    headers = {
        "Content-Type": JSON,
        "x-provenance-scanned": str(answer.scanned),
        "x-provenance-has-more": "true" if answer.has_more else "false",
        "x-provenance-target": str(chain.target),
        **({DAMAGED: ", ".join(answer.damaged[:MAX_DAMAGED])} if answer.damaged else {}),
        **lenient.headers(),
    }
    return Reply(200, await asyncio.to_thread(answer.json_array), headers)


def _equal(wanted: EventsQuery | ExportQuery) -> dict[str, str]:
    return present(EntityType=wanted.entity_type, ActionType=wanted.action_type, UserID=wanted.user_id)


def _csv_weight(record: ChainRecord) -> int:
    """Return about how many bytes a record takes in CSV, never fewer."""
    return (
        2 * len(CSV_COLUMNS) * len("''") + 2 * sum(len(text.encode()) + 1 for text in record.projection.values()) + 200
    )


def _csv(records: Sequence[ChainRecord]) -> bytes:
    with collection_paused(sum(len(record.canonical) for record in records)):
        return _csv_text(records).encode("utf-8")


def _csv_text(records: Sequence[ChainRecord]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for record in records:
        whole = {**parse_record(record.canonical, record.hash), **record.projection}
        writer.writerow([escape_formula(str(whole.get(name, ""))) for name in CSV_COLUMNS])
    return text.getvalue()


def _file_name(chain: ChainKey) -> str:
    # The interface names it .csv for both forms.
    return f"provenance-{re.sub(r'[^A-Za-z0-9._-]', '_', chain.scope_key or chain.target)}.csv"


def _base64(hashes: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(one).decode() for one in hashes]
