"""HTTP operations on audit bundles: start, list, get, cancel."""

from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, StrictBool, StrictStr, WithJsonSchema

from functions.bundle_jobs import ORCHESTRATOR
from functions.downloads import parse_wait_seconds, start_job_once
from functions.durable_runner import DurableRunner
from functions.reply_docs import imports as replies
from shared.auth.rights import AccessRight
from shared.downloads.models import BundledChain, BundleRequest, Job, JobKind
from shared.errors import (
    FieldError,
    ValidationErrors,
    WorkspaceError,
    build_invalid_field_error,
    build_invalid_fields_error,
)
from shared.http.messages import Reply, build_json_reply
from shared.http.operation_docs import build_enum_schema
from shared.http.operations import Call, Group
from shared.provenance.models import ScopeKey
from shared.provenance.ports import Target
from shared.provenance.selection import check_target_and_scope
from shared.timestamps import format_rfc3339, parse_iso8601
from shared.wiring import services
from shared.wiring.features import PROVENANCE

GROUP = Group("audit-bundles")
ROUTE: Final = "oi-api/provenance/bundles"
MAX_CHAINS: Final = 1_000
RUNNER: Final = DurableRunner(ORCHESTRATOR)


def _to_audit_record_time_if_given(value: object, *, round_up: bool = False) -> str | None:
    """Convert an ISO 8601 time to the format of audit records; a time without a zone is in UTC. None stays None.

    ``round_up`` is that of :func:`~shared.timestamps.parse_iso8601`.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 date-time such as 2026-01-01T00:00:00Z")  # noqa: TRY004  pydantic's way
    return format_rfc3339(parse_iso8601(value, round_up=round_up))


_DATE_SCHEMA: Final = WithJsonSchema({"type": ["string", "null"], "format": "date-time"})
StartDate = Annotated[str | None, BeforeValidator(partial(_to_audit_record_time_if_given, round_up=True)), _DATE_SCHEMA]
EndDate = Annotated[str | None, BeforeValidator(_to_audit_record_time_if_given), _DATE_SCHEMA]


class BundleScope(BaseModel):
    """Audit chain to include in an audit bundle."""

    target: Annotated[StrictStr, WithJsonSchema(build_enum_schema(Target))] = Field(
        description="Container of the chain."
    )
    scope_key: Annotated[ScopeKey, Field(strict=True)] = Field(
        None, alias="scopeKey", description="Scope of a domain chain; absent for a workspace chain."
    )


class BundleBody(BaseModel):
    """Request body that starts an audit bundle: its chains and filters."""

    scopes: list[BundleScope] = Field(min_length=1, max_length=MAX_CHAINS)
    start_date: StartDate = Field(None, alias="startDate", description="Only records from this time on, inclusive.")
    end_date: EndDate = Field(None, alias="endDate", description="Only records up to this time, inclusive.")
    entity_id: Annotated[StrictStr, Field(min_length=1)] | None = Field(
        None, alias="entityId", description="Only records about this entity."
    )
    receipts: StrictBool = Field(False, description="Add a receipt of each record, and the set of all trusted keys.")


async def _check_bundle(call: Call[Any, BundleBody], faults: ValidationErrors) -> None:
    body = call.body
    is_dated = faults.has_valid_fields("startDate", "endDate") and body.start_date and body.end_date
    if is_dated and (body.start_date or "") > (body.end_date or ""):
        faults.add(build_invalid_field_error("startDate", "must not be after endDate"))
    if faults.has_valid_fields("scopes"):
        checked = set[tuple[str, str | None]]()
        for number, scope in enumerate(body.scopes):
            chain = scope.target, scope.scope_key
            _check_bundle_chain(scope, number, faults, is_repeated=chain in checked)
            checked.add(chain)


def _check_bundle_chain(scope: BundleScope, index: int, faults: ValidationErrors, *, is_repeated: bool) -> None:
    """Check the chain at index ``index`` of a requested audit bundle, and add its errors to ``faults``.

    ``is_repeated`` is True if the same chain is also at an earlier index.
    """
    own = ValidationErrors()
    check_target_and_scope(own, scope.target, scope.scope_key)
    if is_repeated:
        own.add(build_invalid_field_error("target", "must list each chain only once"))
    try:
        own.raise_all()
    except WorkspaceError as error:
        listed: Any = error.members["errors"]
        fields = [FieldError(f"scopes[{index}].{each['field']}", each["message"]) for each in listed]
        faults.add(build_invalid_fields_error(fields, code=error.code))


@GROUP.endpoint(
    "POST",
    ROUTE,
    right=AccessRight.PROVENANCE_EXPORT,
    feature=PROVENANCE,
    body=BundleBody,
    check=_check_bundle,
    docs=replies.BUNDLE_STARTED,
)
async def create_audit_bundle(call: Call[Any, BundleBody]) -> Reply:
    """Start an audit bundle: a zip file with chains, checkpoints and proofs; it can be verified without the service."""
    body = call.body
    request = BundleRequest(
        chains=tuple(BundledChain(target=each.target, scope_key=each.scope_key or "") for each in body.scopes),
        start_date=body.start_date or "",
        end_date=body.end_date or "",
        entity_id=body.entity_id or "",
        receipts=body.receipts,
    )
    downloads = services().downloads.service

    async def start_job(job_id: str) -> Job:
        return await downloads.start_bundle(call.principal, request, RUNNER, job_id=job_id)

    job = await start_job_once(call, start_job, kind=JobKind.BUNDLE)
    headers = {"Location": _build_status_url(job)}
    if wait := parse_wait_seconds(call.request.headers.get("prefer", "")):
        job = await downloads.wait_until_ended(job, wait)
        if not job.is_unfinished:
            return build_json_reply(await _bundle_to_json(job), 200, {**headers, "Preference-Applied": f"wait={wait}"})
    return build_json_reply(await _bundle_to_json(job), 202, headers)


@GROUP.endpoint("GET", ROUTE, right=AccessRight.PROVENANCE_EXPORT, feature=PROVENANCE, docs=replies.BUNDLES_LISTED)
async def list_audit_bundles(call: Call) -> Reply:
    """List the caller's audit bundles, newest first."""
    jobs = await services().downloads.service.list(call.principal, kind=JobKind.BUNDLE)
    return build_json_reply({"bundles": [await _bundle_to_json(job) for job in jobs]})


@GROUP.endpoint(
    "GET", f"{ROUTE}/{{bundleId}}", right=AccessRight.PROVENANCE_EXPORT, feature=PROVENANCE, docs=replies.BUNDLE_SHOWN
)
async def get_audit_bundle(call: Call) -> Reply:
    """Return the status of an audit bundle, with a new link to its file."""
    downloads = services().downloads.service
    job = await downloads.get(call.principal, call.path["bundleId"], kind=JobKind.BUNDLE)
    await downloads.restart_if_stalled(job, RUNNER)
    return build_json_reply(await _bundle_to_json(job))


@GROUP.endpoint(
    "DELETE",
    f"{ROUTE}/{{bundleId}}",
    right=AccessRight.PROVENANCE_EXPORT,
    feature=PROVENANCE,
    docs=replies.JOB_CANCELLED,
)
async def cancel_audit_bundle(call: Call) -> Reply:
    """Cancel a pending or running audit bundle."""
    await services().downloads.service.cancel(call.principal, call.path["bundleId"], RUNNER, kind=JobKind.BUNDLE)
    return Reply(204)


def _build_status_url(job: Job) -> str:
    return f"/{ROUTE}/{job.id}"


async def _bundle_to_json(job: Job) -> dict[str, Any]:
    request = job.bundle or BundleRequest(chains=())
    scopes = [{"target": each.target, "scopeKey": each.scope_key or None} for each in request.chains]
    return {
        "bundleId": job.id,
        "status": job.status,
        "statusUrl": _build_status_url(job),
        "scopes": scopes,
        "filters": {
            "startDate": request.start_date or None,
            "endDate": request.end_date or None,
            "entityId": request.entity_id or None,
        },
        "createdAt": format_rfc3339(job.created_at),
        "progress": {
            "scopesDone": request.chains_done,
            "scopesTotal": len(request.chains),
            "records": request.records,
        },
        "brokenScopes": [scopes[index] for index in request.broken_chains],
        "files": [
            {
                "name": "audit-bundle.zip",
                "url": each.url,
                "urlExpiresAt": format_rfc3339(each.expires_at),
                "records": each.file.rows,
                "bytes": each.file.size,
                "sha256": each.file.sha256,
            }
            for each in await services().downloads.service.create_links(job)
        ],
        "expiresAt": format_rfc3339(job.expires_at),
        "error": job.error,
        "errorCode": job.error_code,
    }
