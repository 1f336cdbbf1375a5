"""HTTP operations on cold downloads: start, list, get, cancel."""

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, model_validator

from functions.download_jobs import ORCHESTRATOR
from functions.durable_runner import DurableRunner
from functions.replies import downloads as replies
from shared.auth.rights import AccessRight
from shared.catalog.fields import Instant
from shared.downloads.models import Format, Job
from shared.http.messages import Reply, json_reply
from shared.http.operations import Call, Group
from shared.timestamps import rfc3339
from shared.wiring import services

GROUP = Group("downloads")
ROUTE: Final = "oi-api/downloads"
LONGEST_RANGE: Final = timedelta(days=366)
LONGEST_WAIT_SECONDS: Final = 60
RUNNER: Final = DurableRunner(ORCHESTRATOR)
_WAIT = re.compile(r'(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;[^,]*)?(?=,|$)', re.ASCII | re.IGNORECASE)


def _require_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be an RFC 3339 date-time such as 2026-01-01T00:00:00Z")  # noqa: TRY004  pydantic's way
    return value


Moment = Annotated[Instant, BeforeValidator(_require_text)]


class DateRange(BaseModel):
    """Time range of a download; `start` is included, `end` is excluded."""

    start: Moment = Field(validation_alias=AliasChoices("start", "from"))
    end: Moment = Field(validation_alias=AliasChoices("end", "to"))

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.start >= self.end:
            raise ValueError("start must be before end")
        if self.end - self.start > LONGEST_RANGE:
            raise ValueError(f"the range must be at most {LONGEST_RANGE.days} days")
        return self


class DownloadBody(BaseModel):
    """Request body that starts a download."""

    format: Format = Format.CSV
    date_range: DateRange = Field(alias="dateRange")


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/data-connections/{{lookup}}",
    right=AccessRight.COLD_DATA_EXPORT,
    body=DownloadBody,
    docs=replies.STARTED,
)
async def download_connection(call: Call[Any, DownloadBody]) -> Reply:
    """Start a cold download of a data connection."""
    return await _start_job(call, await services().downloads.select_connection(call.path["lookup"]))


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/surfaces/{{surfaceLookup}}",
    right=AccessRight.COLD_DATA_EXPORT,
    body=DownloadBody,
    docs=replies.STARTED,
)
async def download_surface(call: Call[Any, DownloadBody]) -> Reply:
    """Start a cold download of all connections of a surface."""
    return await _start_job(call, await services().downloads.select_surface_connections(call.path["surfaceLookup"]))


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/surfaces/{{surfaceLookup}}/connection/{{connLookup}}",
    right=AccessRight.COLD_DATA_EXPORT,
    body=DownloadBody,
    docs=replies.STARTED,
)
async def download_surface_connection(call: Call[Any, DownloadBody]) -> Reply:
    """Start a cold download of one connection of a surface."""
    surface, connection = call.path["surfaceLookup"], call.path["connLookup"]
    return await _start_job(call, await services().downloads.select_surface_connections(surface, connection))


@GROUP.endpoint("GET", ROUTE, right=AccessRight.COLD_DATA_EXPORT, docs=replies.LISTED)
async def list_downloads(call: Call) -> Reply:
    """List the caller's downloads, newest first."""
    jobs = await services().downloads.list(call.principal)
    return json_reply({"downloads": [await _to_json(job) for job in jobs]})


@GROUP.endpoint("GET", f"{ROUTE}/{{downloadId}}", right=AccessRight.COLD_DATA_EXPORT, docs=replies.SHOWN)
async def get_download(call: Call) -> Reply:
    """Return the status of a download, with new links to its files."""
    job = await services().downloads.get(call.principal, call.path["downloadId"])
    await services().downloads.restart_if_stalled(job, RUNNER)
    return json_reply(await _to_json(job))


@GROUP.endpoint("DELETE", f"{ROUTE}/{{downloadId}}", right=AccessRight.COLD_DATA_EXPORT, docs=replies.CANCELLED)
async def cancel_download(call: Call) -> Reply:
    """Cancel a pending or running download."""
    await services().downloads.cancel(call.principal, call.path["downloadId"], RUNNER)
    return Reply(204)


async def _start_job(call: Call[Any, DownloadBody], connections: tuple[str, ...]) -> Reply:
    date_range = call.body.date_range
    downloads = services().downloads
    job = await downloads.start(call.principal, connections, call.body.format, date_range.start, date_range.end, RUNNER)
    headers = {"Location": _build_status_url(job)}
    wait = _parse_wait(call.request.headers.get("prefer", ""))
    if wait:
        job = await downloads.wait_until_ended(job, wait)
        if not job.unfinished:
            return json_reply(await _to_json(job), 200, {**headers, "Preference-Applied": f"wait={wait}"})
    return json_reply(await _to_json(job), 202, headers)


def _parse_wait(prefer: str) -> int:
    """Return the seconds of ``wait`` in a Prefer header (RFC 7240), at most 60; 0 if it is missing."""
    found = _WAIT.search(prefer)
    return min(int(found[1]), LONGEST_WAIT_SECONDS) if found else 0


def _build_status_url(job: Job) -> str:
    return f"/{ROUTE}/{job.id}"


async def _to_json(job: Job) -> dict[str, Any]:
    linked = await services().downloads.create_links(job)
    return {
        "downloadId": job.id,
        "status": job.status,
        "statusUrl": _build_status_url(job),
        "format": job.format,
        "dateRange": {"start": rfc3339(job.start), "end": rfc3339(job.end)},
        "createdAt": rfc3339(job.created_at),
        "progress": {
            "connectionsDone": job.connections_done,
            "connectionsTotal": len(job.connections),
            "rows": job.rows,
        },
        "files": [
            {
                "connection": each.connection,
                "url": each.url,
                "urlExpiresAt": rfc3339(each.expires_at),
                "rows": each.file.rows,
                "bytes": each.file.size,
                "sha256": each.file.sha256,
            }
            for each in linked
        ],
        "completeUpTo": None if job.complete_up_to is None else rfc3339(job.complete_up_to),
        "expiresAt": rfc3339(job.expires_at),
        "error": job.error,
    }
