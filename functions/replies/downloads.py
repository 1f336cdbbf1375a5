"""Documentation of replies about cold downloads."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from shared.http.operation_docs import NO_CONTENT, DocumentedReply, OperationDocs


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
    """A file and its link; until `urlExpiresAt`, the link needs no credential."""

    connection: str
    url: str
    urlExpiresAt: datetime
    rows: int
    bytes: int
    sha256: str


class Download(TypedDict):
    """A download. `files` is empty until the status is `completed`; `error` is null unless the status is `failed`.

    The files contain all messages that were accepted before `completeUpTo`; null if this time is not known.
    """

    downloadId: str
    status: Literal["pending", "running", "completed", "failed", "cancelled"]
    statusUrl: str
    format: Literal["csv", "jsonl", "parquet"]
    dateRange: Range
    createdAt: datetime
    progress: Progress
    files: list[DownloadFile]
    completeUpTo: datetime | None
    expiresAt: datetime
    error: str | None


class Downloads(TypedDict):
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

STARTED = OperationDocs(
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
    error_statuses=(404, 429, 503, 507),
    example={"format": "csv", "dateRange": {"start": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}},
)
SHOWN = OperationDocs((DocumentedReply(200, "The download.", Download, _COMPLETED),), error_statuses=(404, 503))
LISTED = OperationDocs(
    (DocumentedReply(200, "The downloads.", Downloads, {"downloads": [_COMPLETED]}),), error_statuses=(503,)
)
CANCELLED = OperationDocs((NO_CONTENT,), error_statuses=(404, 409, 503))
