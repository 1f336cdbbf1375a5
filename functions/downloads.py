"""HTTP operations on cold downloads (start, list, get, cancel), and the documentation of their replies."""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Self, TypedDict

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, model_validator

from functions.download_jobs import ORCHESTRATOR
from functions.durable_runner import DurableRunner
from functions.idempotency import HEADER, run_once_per_idempotency_key
from shared.auth.rights import AccessRight
from shared.catalog.fields import Instant
from shared.downloads.models import DownloadFormat, Job, JobKind, JobStatus
from shared.http.deprecations import FORMER_NAMES, DeprecatedAlias, ModelWithAliases
from shared.http.messages import Reply, build_json_reply
from shared.http.operation_docs import IDEMPOTENT, NO_CONTENT, WAITING, DocumentedReply, OperationDocs
from shared.http.operations import Call, Group
from shared.timestamps import format_rfc3339
from shared.wiring import services

GROUP = Group("downloads")
ROUTE: Final = "oi-api/downloads"
LONGEST_RANGE: Final = timedelta(days=366)
LONGEST_WAIT_SECONDS: Final = 60
RUNNER: Final = DurableRunner(ORCHESTRATOR)
_WAIT = re.compile(r'(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;[^,]*)?(?=,|$)', re.ASCII | re.IGNORECASE)


class Range(TypedDict):
    """Time range of a download; `start` is included, `end` is excluded."""

    start: datetime
    end: datetime


class Progress(TypedDict):
    """Progress of a download."""

    connectionsDone: int
    connectionsTotal: int
    rows: int


class DownloadFile(TypedDict):
    """A file of a download and its link; until `urlExpiresAt`, the link needs no credential."""

    connection: str
    url: str
    urlExpiresAt: datetime
    rows: int
    bytes: int
    sha256: str


class Download(TypedDict):
    """A download job. `files` is empty until its status is `completed`; `error` is null unless it is `failed`.

    `errorCode` is the code with which `error` begins; null if the failure has no code.
    The files contain all messages that were accepted before `completeUpTo`; null if this time is not known.
    """

    downloadId: str
    status: JobStatus
    statusUrl: str
    format: DownloadFormat
    dateRange: Range
    createdAt: datetime
    progress: Progress
    files: list[DownloadFile]
    completeUpTo: datetime | None
    expiresAt: datetime
    error: str | None
    errorCode: str | None


class DownloadList(TypedDict):
    """List of the caller's downloads."""

    downloads: list[Download]


_ID = "5b1c6f0a9d3e4c7f8a2b1d0e9f8c7b6a"
_PENDING: Final[dict[str, Any]] = {
    "downloadId": _ID,
    "status": "pending",
    "statusUrl": f"/oi-api/downloads/{_ID}",
    "format": "csv",
    "dateRange": {"start": "2026-01-05T00:00:00.000000Z", "end": "2026-01-06T00:00:00.000000Z"},
    "createdAt": "2026-01-06T08:00:00.000000Z",
    "progress": {"connectionsDone": 0, "connectionsTotal": 1, "rows": 0},
    "files": [],
    "completeUpTo": None,
    "expiresAt": "2026-01-07T08:00:00.000000Z",
    "error": None,
    "errorCode": None,
}
_COMPLETED: Final[dict[str, Any]] = {
    **_PENDING,
    "status": "completed",
    "completeUpTo": "2026-01-06T08:00:00.000000Z",
    "progress": {"connectionsDone": 1, "connectionsTotal": 1, "rows": 86400},
    "files": [
        {
            "connection": "pump-rig",
            "url": "http://127.0.0.1:7071/files/downloads/pump-rig.csv?signature=c2ln",
            "urlExpiresAt": "2026-01-06T08:15:00.000000Z",
            "rows": 86400,
            "bytes": 7257600,
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        }
    ],
}
_LOCATION: Final = {"Location": "URL of the download."}

STARTED_DOCS = OperationDocs(
    (
        DocumentedReply(202, "The download runs in the background.", Download, _PENDING, headers=_LOCATION),
        DocumentedReply(
            200,
            "The download ended within the seconds of `Prefer: wait=` (at most 60).",
            Download,
            _COMPLETED,
            headers={**_LOCATION, "Preference-Applied": "The wait that the service applied, in seconds."},
        ),
    ),
    error_statuses=(404, 409, 422, 429, 503, 507),
    example={"format": "csv", "dateRange": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}},
    headers={**IDEMPOTENT, **WAITING},
)
SHOWN_DOCS = OperationDocs((DocumentedReply(200, "The download.", Download, _COMPLETED),), error_statuses=(404, 503))
LISTED_DOCS = OperationDocs(
    (DocumentedReply(200, "The downloads.", DownloadList, {"downloads": [_COMPLETED]}),), error_statuses=(503,)
)
CANCELLED_DOCS = OperationDocs((NO_CONTENT,), error_statuses=(404, 409, 503))


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be an RFC 3339 date-time such as 2026-01-01T00:00:00Z")  # noqa: TRY004  pydantic's way
    return value


Moment = Annotated[Instant, BeforeValidator(_require_text)]


class DateRange(ModelWithAliases):
    """Time range of a download; `start` is included, `end` is excluded."""

    start: Annotated[Moment, DeprecatedAlias("from", FORMER_NAMES)] = Field(
        validation_alias=AliasChoices("start", "from")
    )
    end: Annotated[Moment, DeprecatedAlias("to", FORMER_NAMES)] = Field(validation_alias=AliasChoices("end", "to"))

    @model_validator(mode="after")
    def _check_order_and_length(self) -> Self:
        if self.start >= self.end:
            raise ValueError("start must be before end")
        if self.end - self.start > LONGEST_RANGE:
            raise ValueError(f"the range must be at most {LONGEST_RANGE.days} days")
        return self


class DownloadBody(BaseModel):
    """Request body that starts a download."""

    format: DownloadFormat = DownloadFormat.CSV
    date_range: DateRange = Field(alias="dateRange")


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/data-connections/{{lookup}}",
    right=AccessRight.COLD_DATA_EXPORT,
    body=DownloadBody,
    docs=STARTED_DOCS,
)
async def download_connection(call: Call[Any, DownloadBody]) -> Reply:
    """Start a cold download of a data connection.

    A cold download converts archived telemetry to files.
    """
    return await _start_download(call, await services().downloads.service.select_one_connection(call.path["lookup"]))


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/surfaces/{{surfaceLookup}}",
    right=AccessRight.COLD_DATA_EXPORT,
    body=DownloadBody,
    docs=STARTED_DOCS,
)
async def download_surface(call: Call[Any, DownloadBody]) -> Reply:
    """Start a cold download of all connections of a surface.

    A cold download converts archived telemetry to files. A surface is a named group of connections.
    """
    return await _start_download(
        call, await services().downloads.service.select_surface_connections(call.path["surfaceLookup"])
    )


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/surfaces/{{surfaceLookup}}/connection/{{connLookup}}",
    right=AccessRight.COLD_DATA_EXPORT,
    body=DownloadBody,
    docs=STARTED_DOCS,
)
async def download_surface_connection(call: Call[Any, DownloadBody]) -> Reply:
    """Start a cold download of one connection of a surface.

    A cold download converts archived telemetry to files. A surface is a named group of connections.
    """
    surface, connection = call.path["surfaceLookup"], call.path["connLookup"]
    return await _start_download(
        call, await services().downloads.service.select_surface_connections(surface, connection)
    )


@GROUP.endpoint("GET", ROUTE, right=AccessRight.COLD_DATA_EXPORT, docs=LISTED_DOCS)
async def list_downloads(call: Call) -> Reply:
    """List the caller's downloads, newest first."""
    jobs = await services().downloads.service.list(call.principal)
    return build_json_reply({"downloads": [await _download_to_json(job) for job in jobs]})


@GROUP.endpoint("GET", f"{ROUTE}/{{downloadId}}", right=AccessRight.COLD_DATA_EXPORT, docs=SHOWN_DOCS)
async def get_download(call: Call) -> Reply:
    """Return the status of a download, with new links to its files."""
    job = await services().downloads.service.get(call.principal, call.path["downloadId"])
    await services().downloads.service.restart_if_stalled(job, RUNNER)
    return build_json_reply(await _download_to_json(job))


@GROUP.endpoint("DELETE", f"{ROUTE}/{{downloadId}}", right=AccessRight.COLD_DATA_EXPORT, docs=CANCELLED_DOCS)
async def cancel_download(call: Call) -> Reply:
    """Cancel a pending or running download."""
    await services().downloads.service.cancel(call.principal, call.path["downloadId"], RUNNER)
    return Reply(204)


async def _start_download(call: Call[Any, DownloadBody], connections: tuple[str, ...]) -> Reply:
    body, downloads = call.body, services().downloads.service

    async def start_download(job_id: str) -> Job:
        start, end = body.date_range.start, body.date_range.end
        return await downloads.start(call.principal, connections, body.format, start, end, RUNNER, job_id=job_id)

    job = await start_job_once(call, start_download)
    headers = {"Location": _build_status_url(job)}
    wait = parse_wait_seconds(call.request.headers.get("prefer", ""))
    if wait:
        job = await downloads.wait_until_ended(job, wait)
        if not job.is_unfinished:
            return build_json_reply(
                await _download_to_json(job), 200, {**headers, "Preference-Applied": f"wait={wait}"}
            )
    return build_json_reply(await _download_to_json(job), 202, headers)


async def start_job_once(
    call: Call[Any, Any], start_job: Callable[[str], Awaitable[Job]], *, kind: JobKind = JobKind.DOWNLOAD
) -> Job:
    """Start a job; for a retry with the same Idempotency-Key, return the existing job in its current state.

    Args:
        call: validated request.
        start_job: starts a job and returns it. Its argument is the id of the job, or empty to create a new id. A retry
            of the request calls it with the same id.
        kind: kind of the job.

    Raises:
        WorkspaceError: the same errors as :func:`functions.idempotency.run_once_per_idempotency_key`; NOT_FOUND if the
            job has expired.
    """

    async def start_job_and_encode_id(append_id: str) -> bytes:
        return (await start_job(append_id)).id.encode()

    if HEADER not in call.request.headers:
        return await start_job("")
    job_id = (await run_once_per_idempotency_key(call, start_job_and_encode_id)).decode()
    return await services().downloads.service.get(call.principal, job_id, kind=kind)


def parse_wait_seconds(prefer_header: str) -> int:
    """Return the seconds that a header ``Prefer: wait=N`` requests (RFC 7240), at most 60; 0 if it requests none."""
    found = _WAIT.search(prefer_header)
    return min(int(found[1]), LONGEST_WAIT_SECONDS) if found else 0


def _build_status_url(job: Job) -> str:
    return f"/{ROUTE}/{job.id}"


async def _download_to_json(job: Job) -> dict[str, Any]:
    linked = await services().downloads.service.create_links(job)
    return {
        "downloadId": job.id,
        "status": job.status,
        "statusUrl": _build_status_url(job),
        "format": job.format,
        "dateRange": {"start": format_rfc3339(job.start), "end": format_rfc3339(job.end)},
        "createdAt": format_rfc3339(job.created_at),
        "progress": {
            "connectionsDone": job.converted_connection_count,
            "connectionsTotal": len(job.connections),
            "rows": job.row_count,
        },
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
        "completeUpTo": None if job.complete_up_to is None else format_rfc3339(job.complete_up_to),
        "expiresAt": format_rfc3339(job.expires_at),
        "error": job.error,
        "errorCode": job.error_code,
    }
