"""Documentation of the replies of the operations on audit bundles."""

from datetime import datetime
from typing import Any, Final, TypedDict

from shared.downloads.models import JobStatus
from shared.http.operation_docs import IDEMPOTENT, NO_CONTENT, WAITING, DocumentedReply, OperationDocs
from shared.provenance.ports import Target


class BundledScope(TypedDict):
    """An audit chain that an audit bundle contains."""

    target: Target
    scopeKey: str | None


class BundleFilters(TypedDict):
    """Filters that select the records of an audit bundle."""

    startDate: datetime | None
    endDate: datetime | None
    entityId: str | None


class BundleProgress(TypedDict):
    """Progress of a job that builds an audit bundle."""

    scopesDone: int
    scopesTotal: int
    records: int


class BundleLink(TypedDict):
    """The zip file of an audit bundle and its link; until `urlExpiresAt`, the link needs no credential."""

    name: str
    url: str
    urlExpiresAt: datetime
    records: int
    bytes: int
    sha256: str


class AuditBundle(TypedDict):
    """An audit bundle. `files` is empty until the status is `completed`; `error` is null unless it is `failed`."""

    bundleId: str
    status: JobStatus
    statusUrl: str
    scopes: list[BundledScope]
    filters: BundleFilters
    createdAt: datetime
    progress: BundleProgress
    files: list[BundleLink]
    expiresAt: datetime
    error: str | None


class AuditBundles(TypedDict):
    """List of the caller's audit bundles."""

    bundles: list[AuditBundle]


_ID: Final = "5b1c6f0a9d3e4c7f8a2b1d0e9f8c7b6a"
_PENDING: Final[dict[str, Any]] = {
    "bundleId": _ID,
    "status": "pending",
    "statusUrl": f"/oi-api/provenance/bundles/{_ID}",
    "scopes": [{"target": "DomainEvents", "scopeKey": "line-1"}],
    "filters": {"startDate": None, "endDate": None, "entityId": None},
    "createdAt": "2026-01-06T08:00:00.000000Z",
    "progress": {"scopesDone": 0, "scopesTotal": 1, "records": 0},
    "files": [],
    "expiresAt": "2026-01-07T08:00:00.000000Z",
    "error": None,
}
_COMPLETED: Final[dict[str, Any]] = {
    **_PENDING,
    "status": "completed",
    "progress": {"scopesDone": 1, "scopesTotal": 1, "records": 42},
    "files": [
        {
            "name": "audit-bundle.zip",
            "url": "http://127.0.0.1:7071/files/downloads/audit-bundle.zip?signature=c2ln",
            "urlExpiresAt": "2026-01-06T08:15:00.000000Z",
            "records": 42,
            "bytes": 20480,
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        }
    ],
}
_LOCATION: Final = {"Location": "URL of the bundle."}

STARTED = OperationDocs(
    (
        DocumentedReply(202, "The bundle is built in the background.", AuditBundle, _PENDING, headers=_LOCATION),
        DocumentedReply(
            200,
            "The bundle ended within the seconds of `Prefer: wait=` (at most 60).",
            AuditBundle,
            _COMPLETED,
            headers={**_LOCATION, "Preference-Applied": "The wait that the service applied, in seconds."},
        ),
    ),
    error_statuses=(409, 422, 429, 503, 507),
    example={"scopes": [{"target": "DomainEvents", "scopeKey": "line-1"}]},
    headers={**IDEMPOTENT, **WAITING},
)
LISTED = OperationDocs(
    (DocumentedReply(200, "The bundles.", AuditBundles, {"bundles": [_COMPLETED]}),), error_statuses=(503,)
)
SHOWN = OperationDocs((DocumentedReply(200, "The bundle.", AuditBundle, _COMPLETED),), error_statuses=(404, 503))
CANCELLED = OperationDocs((NO_CONTENT,), error_statuses=(404, 409, 503))
