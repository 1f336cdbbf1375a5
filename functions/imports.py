"""HTTP operations on imports of earlier telemetry: create, preview, start, list, get, cancel."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, StrictInt, StrictStr

from functions.downloads import parse_wait_seconds, start_job_once
from functions.durable_runner import DurableRunner
from functions.import_jobs import ORCHESTRATOR
from functions.reply_docs import imports as replies
from shared.auth.rights import AccessRight
from shared.catalog.models import TimestampFormat
from shared.cold_data.ports import UPLOAD_HEADERS
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest
from shared.downloads.models import Job, JobKind, JobStatus
from shared.errors import ValidationErrors
from shared.http.messages import Reply, build_json_reply
from shared.http.operations import Call, Group
from shared.imports.mapping_rules import MAX_COLUMNS, check_column_mapping
from shared.imports.service import get_import_request
from shared.imports.uploads import MAX_BYTES
from shared.interpreter import load_modules
from shared.timestamps import format_rfc3339
from shared.wiring import services

GROUP = Group("imports")
ROUTE: Final = "oi-api/imports"
RUNNER: Final = DurableRunner(ORCHESTRATOR)

Column = Annotated[StrictStr, Field(min_length=1, max_length=1024)]


class MappingBody(BaseModel):
    """Mapping that assigns a file's columns (in NDJSON, top-level properties) to time, ids and payload of messages."""

    timestamp: Column = Field(description="Column of the time of measurement.")
    timestamp_format: TimestampFormat = Field(
        TimestampFormat.RFC3339, alias="timestampFormat", description="Format of the times."
    )
    device: Column | None = Field(
        None, description="Column of the device id; without it, the connection's lookup is the device id."
    )
    message_id: Column | None = Field(
        None, alias="messageId", description="Column of the message id; without it, ids are derived from the content."
    )
    columns: Annotated[list[Column], Field(min_length=1, max_length=MAX_COLUMNS)] | None = Field(
        None, description="Columns that become the payload; by default all columns without another meaning."
    )
    delimiter: Annotated[StrictStr, Field(min_length=1, max_length=1)] | None = Field(
        None, description="Separator of the cells of a CSV file; a comma by default."
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="Decimal mark of the numbers of a CSV file; a point by default."
    )
    time_zone: Annotated[StrictStr, Field(min_length=1, max_length=64)] | None = Field(
        None,
        alias="timeZone",
        description="IANA time zone of times without a zone, which are invalid otherwise.",
    )


class ImportBody(BaseModel):
    """Request body that creates an import of earlier telemetry.

    `bytes` is the size of the file that will be uploaded. `mapping` states which columns of the file contain the time,
    the ids and the payload of the messages.
    """

    format: ImportFormat
    file_name: Annotated[StrictStr, Field(min_length=1, max_length=255)] = Field(
        alias="fileName", description="Name of the file, for people."
    )
    bytes: Annotated[StrictInt, Field(ge=1, le=MAX_BYTES)] | None = Field(
        None, description="Size of the file in bytes; an upload of another size is incomplete."
    )
    mapping: MappingBody


class RemappingBody(BaseModel):
    """Request body that previews or starts an import.

    `mapping` replaces the column mapping of the import. The body may be empty.
    """

    mapping: MappingBody | None = None


async def _check_import(call: Call[Any, ImportBody], faults: ValidationErrors) -> None:
    if faults.has_valid_fields("format", "mapping"):
        check_column_mapping(call.body.format, call.body.mapping.model_dump(), faults)


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/data-connections/{{lookup}}",
    right=AccessRight.TELEMETRY_IMPORT,
    body=ImportBody,
    check=_check_import,
    docs=replies.IMPORT_CREATED,
)
async def create_import(call: Call[Any, ImportBody]) -> Reply:
    """Create an import of historical telemetry into a data connection.

    Next: upload the file, preview it, start the import.
    """
    body, imports = call.body, services().imports.service

    def build_request(upload_expires_at: datetime) -> ImportRequest:
        return ImportRequest(
            format=body.format,
            file_name=body.file_name,
            declared_bytes=body.bytes,
            mapping=to_import_mapping(body.mapping),
            upload_expires_at=upload_expires_at,
        )

    async def create_job(job_id: str) -> Job:
        return await imports.create(call.principal, call.path["lookup"], build_request, job_id=job_id)

    job = await start_job_once(call, create_job, kind=JobKind.IMPORT)
    upload = {"uploadUrl": await imports.create_upload_link(job), "uploadHeaders": dict(UPLOAD_HEADERS)}
    return build_json_reply({**await _import_to_json(job), **upload}, 201, {"Location": _build_status_url(job)})


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/{{importId}}/preview",
    right=AccessRight.TELEMETRY_IMPORT,
    body=RemappingBody,
    docs=replies.IMPORT_PREVIEWED,
)
async def preview_import(call: Call[Any, RemappingBody]) -> Reply:
    """Return the first messages of an uploaded file as an import would store them, and problems of its first rows."""
    imports = services().imports
    job = await imports.service.get(call.principal, call.path["importId"])
    await load_modules(services().runtime, "shared.imports.preview")
    preview = await imports.preview.create_preview(job, _validate_requested_mapping(call.body, job))
    return build_json_reply(preview.to_json())


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/{{importId}}/start",
    right=AccessRight.TELEMETRY_IMPORT,
    body=RemappingBody,
    docs=replies.IMPORT_STARTED,
)
async def start_import(call: Call[Any, RemappingBody]) -> Reply:
    """Start an import; its file must already be uploaded."""
    imports, job_id = services().imports.service, call.path["importId"]
    mapping = _validate_requested_mapping(call.body, await imports.get(call.principal, job_id))
    job = await imports.start(call.principal, job_id, RUNNER, mapping)
    headers = {"Location": _build_status_url(job)}
    if wait := parse_wait_seconds(call.request.headers.get("prefer", "")):
        job = await services().downloads.service.wait_until_ended(job, wait)
        if not job.is_unfinished:
            return build_json_reply(await _import_to_json(job), 200, {**headers, "Preference-Applied": f"wait={wait}"})
    return build_json_reply(await _import_to_json(job), 202, headers)


@GROUP.endpoint("GET", ROUTE, right=AccessRight.TELEMETRY_IMPORT, docs=replies.IMPORTS_LISTED)
async def list_imports(call: Call) -> Reply:
    """List the caller's imports, newest first."""
    jobs = await services().imports.service.list(call.principal)
    return build_json_reply({"imports": [await _import_to_json(job) for job in jobs]})


@GROUP.endpoint("GET", f"{ROUTE}/{{importId}}", right=AccessRight.TELEMETRY_IMPORT, docs=replies.IMPORT_SHOWN)
async def get_import(call: Call) -> Reply:
    """Return the status of an import, with a new link to the file of its rejected rows."""
    imports = services().imports.service
    job = await imports.get(call.principal, call.path["importId"])
    await imports.restart_if_stalled(job, RUNNER)
    return build_json_reply(await _import_to_json(job))


@GROUP.endpoint("DELETE", f"{ROUTE}/{{importId}}", right=AccessRight.TELEMETRY_IMPORT, docs=replies.JOB_CANCELLED)
async def cancel_import(call: Call) -> Reply:
    """Cancel an import that has not ended; messages that are stored already remain."""
    await services().imports.service.cancel(call.principal, call.path["importId"], RUNNER)
    return Reply(204)


def to_import_mapping(body: MappingBody) -> ImportMapping:
    """Convert the column mapping in a request; missing properties get their default values."""
    given = {name: value for name, value in body.model_dump().items() if value is not None}
    return ImportMapping(**given)


def _validate_requested_mapping(body: RemappingBody, job: Job) -> ImportMapping | None:
    """Return the column mapping in a request; None if the request contains no mapping.

    Raises:
        WorkspaceError: INVALID if the mapping does not fit the format of the import.
    """
    if body.mapping is None:
        return None
    faults = ValidationErrors()
    check_column_mapping(get_import_request(job).format, body.mapping.model_dump(), faults)
    faults.raise_all()
    return to_import_mapping(body.mapping)


def _build_status_url(job: Job) -> str:
    return f"/{ROUTE}/{job.id}"


async def _import_to_json(job: Job) -> dict[str, Any]:
    request = get_import_request(job)
    linked = await services().downloads.service.create_links(job)
    return {
        "importId": job.id,
        "status": job.status,
        "statusUrl": _build_status_url(job),
        "connection": job.connections[0],
        "format": request.format,
        "fileName": request.file_name,
        "mapping": _mapping_to_json(request),
        "createdAt": format_rfc3339(job.created_at),
        "uploadExpiresAt": format_rfc3339(request.upload_expires_at),
        "startedAt": None if request.started_at is None else format_rfc3339(request.started_at),
        "progress": _progress_to_json(job, request),
        "accepted": request.accepted,
        "duplicates": request.duplicates,
        "rejected": request.rejected,
        "files": [
            {
                "connection": each.connection,
                "url": each.url,
                "urlExpiresAt": format_rfc3339(each.expires_at),
                "rows": each.file.rows,
                "bytes": each.file.size,
                "sha256": each.file.sha256,
            }
            for each in linked
        ],
        "expiresAt": format_rfc3339(job.expires_at),
        "error": job.error,
        "errorCode": job.error_code,
    }


def _progress_to_json(job: Job, request: ImportRequest) -> Mapping[str, int | None]:
    is_done = job.status is JobStatus.COMPLETED
    size = None if request.file is None else request.file.size
    return {
        "connectionsDone": int(is_done),
        "connectionsTotal": 1,
        "rows": request.rows,
        # The position of a Parquet file is a number of rows.
        "bytesDone": size if is_done else None if request.format is ImportFormat.PARQUET else request.position,
        "bytesTotal": size,
    }


def _mapping_to_json(request: ImportRequest) -> Mapping[str, Any]:
    mapping = request.mapping
    is_csv = request.format is ImportFormat.CSV
    return {
        "timestamp": mapping.timestamp,
        "timestampFormat": mapping.timestamp_format,
        "device": mapping.device or None,
        "messageId": mapping.message_id or None,
        "columns": None if mapping.columns is None else list(mapping.columns),
        "delimiter": mapping.delimiter if is_csv else None,
        "decimal": mapping.decimal if is_csv else None,
        "timeZone": mapping.time_zone or None,
    }
