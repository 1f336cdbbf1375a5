"""Documentation of the replies of the handler modules `imports` and `audit_bundles`."""

from datetime import datetime
from typing import Any, Final, Literal, TypedDict

from shared.catalog.models import TimestampFormat
from shared.downloads.import_request import ImportFormat
from shared.downloads.models import JobStatus
from shared.http.operation_docs import IDEMPOTENT, NO_CONTENT, WAITING, DocumentedReply, OperationDocs
from shared.provenance.ports import Target


class ImportMappingReply(TypedDict):
    """Mapping of an import: the columns of the file with the time, the ids and the payload of the messages.

    `timestamp`, `device` and `messageId` are names of columns. If `device` is null, the lookup of the connection is the
    device id; if `messageId` is null, ids are derived from the content. `columns` are the names of the payload's
    columns; null means all columns without another meaning.
    """

    timestamp: str
    timestampFormat: TimestampFormat
    device: str | None
    messageId: str | None
    columns: list[str] | None
    delimiter: str | None
    decimal: Literal[".", ","] | None
    timeZone: str | None


class ImportProgress(TypedDict):
    """Progress of an import; `bytesDone` is null for a Parquet file until the import is completed."""

    connectionsDone: int
    connectionsTotal: int
    rows: int
    bytesDone: int | None
    bytesTotal: int | None


class RejectedRows(TypedDict):
    """CSV file of the rejected rows with reasons, and its link; until `urlExpiresAt`, the link needs no credential."""

    connection: str
    url: str
    urlExpiresAt: datetime
    rows: int
    bytes: int
    sha256: str


class Import(TypedDict):
    """An import. It waits for its start while `status` is `pending` and `startedAt` is null.

    `rows` of the progress is the sum of `accepted`, `duplicates` and `rejected`. `files` is empty if no row was
    rejected, and until the status is `completed`; `error` is null unless the status is `failed`. `errorCode` is the
    code with which `error` begins; null if the failure has no code.
    """

    importId: str
    status: JobStatus
    statusUrl: str
    connection: str
    format: ImportFormat
    fileName: str
    mapping: ImportMappingReply
    createdAt: datetime
    uploadExpiresAt: datetime
    startedAt: datetime | None
    progress: ImportProgress
    accepted: int
    duplicates: int
    rejected: int
    files: list[RejectedRows]
    expiresAt: datetime
    error: str | None
    errorCode: str | None


class CreatedImport(Import):
    """An import that waits for its file: send it to `uploadUrl` with PUT and the headers `uploadHeaders`."""

    uploadUrl: str
    uploadHeaders: dict[str, str]


class ImportList(TypedDict):
    """List of the caller's imports."""

    imports: list[Import]


class PreviewedMessage(TypedDict):
    """A telemetry message as the import would store it."""

    timestamp: datetime
    connection: str
    deviceId: str
    messageId: str
    payload: dict[str, Any]


class PreviewProblem(TypedDict):
    """A problem of a row of the file, counted from 1 after the header; `row` is null for the whole file."""

    row: int | None
    message: str


class PreviewReply(TypedDict):
    """Preview of an import: its first 100 messages, the columns of the file, and the problems of the rows."""

    columns: list[str]
    messages: list[PreviewedMessage]
    problems: list[PreviewProblem]


_ID: Final = "5b1c6f0a9d3e4c7f8a2b1d0e9f8c7b6a"
_EXAMPLE_MAPPING: Final = {
    "timestamp": "datetime",
    "timestampFormat": "rfc3339",
    "device": None,
    "messageId": None,
    "columns": None,
    "delimiter": ";",
    "decimal": ".",
    "timeZone": "UTC",
}
_PENDING_IMPORT: Final[dict[str, Any]] = {
    "importId": _ID,
    "status": "pending",
    "statusUrl": f"/oi-api/imports/{_ID}",
    "connection": "pump-rig",
    "format": "csv",
    "fileName": "valve1-0.csv",
    "mapping": _EXAMPLE_MAPPING,
    "createdAt": "2026-01-06T08:00:00.000000Z",
    "uploadExpiresAt": "2026-01-07T08:00:00.000000Z",
    "startedAt": None,
    "progress": {"connectionsDone": 0, "connectionsTotal": 1, "rows": 0, "bytesDone": 0, "bytesTotal": None},
    "accepted": 0,
    "duplicates": 0,
    "rejected": 0,
    "files": [],
    "expiresAt": "2026-01-07T08:00:00.000000Z",
    "error": None,
    "errorCode": None,
}
_CREATED: Final[dict[str, Any]] = {
    **_PENDING_IMPORT,
    "uploadUrl": f"http://127.0.0.1:7071/files/downloads/{_ID}/upload?exp=1767772800&perm=w&sig=c2ln",
    "uploadHeaders": {"x-ms-blob-type": "BlockBlob"},
}
_RUNNING: Final[dict[str, Any]] = {
    **_PENDING_IMPORT,
    "startedAt": "2026-01-06T08:10:00.000000Z",
    "progress": {"connectionsDone": 0, "connectionsTotal": 1, "rows": 0, "bytesDone": 0, "bytesTotal": 152640},
}
_COMPLETED_IMPORT: Final[dict[str, Any]] = {
    **_RUNNING,
    "status": "completed",
    "progress": {"connectionsDone": 1, "connectionsTotal": 1, "rows": 1147, "bytesDone": 152640, "bytesTotal": 152640},
    "accepted": 1146,
    "duplicates": 0,
    "rejected": 1,
    "files": [
        {
            "connection": "pump-rig",
            "url": "http://127.0.0.1:7071/files/downloads/rejected.csv?sig=c2ln",
            "urlExpiresAt": "2026-01-06T08:25:00.000000Z",
            "rows": 1,
            "bytes": 112,
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        }
    ],
}
_PREVIEW: Final[dict[str, Any]] = {
    "columns": ["datetime", "pressure"],
    "messages": [
        {
            "timestamp": "2020-03-09T10:14:33.000000Z",
            "connection": "pump-rig",
            "deviceId": "pump-rig",
            "messageId": "0af7651916cd43dd8448eb211c80319c",
            "payload": {"pressure": 0.054711},
        }
    ],
    "problems": [{"row": 2, "message": "The row has 3 cells; the header has 2."}],
}
_IMPORT_LOCATION: Final = {"Location": "URL of the import."}
_BODY: Final[dict[str, Any]] = {
    "format": "csv",
    "fileName": "valve1-0.csv",
    "mapping": {"timestamp": "datetime", "delimiter": ";", "timeZone": "UTC"},
}

IMPORT_CREATED = OperationDocs(
    (DocumentedReply(201, "The import waits for its file.", CreatedImport, _CREATED, headers=_IMPORT_LOCATION),),
    error_statuses=(404, 409, 422, 429, 503, 507),
    headers=IDEMPOTENT,
    example=_BODY,
)
IMPORT_PREVIEWED = OperationDocs(
    (DocumentedReply(200, "The first messages of the file.", PreviewReply, _PREVIEW),),
    error_statuses=(404, 409, 413, 503),
    example={"mapping": _BODY["mapping"]},
)
IMPORT_STARTED = OperationDocs(
    (
        DocumentedReply(202, "The import runs in the background.", Import, _RUNNING, headers=_IMPORT_LOCATION),
        DocumentedReply(
            200,
            "The import ended within the seconds of `Prefer: wait=` (at most 60).",
            Import,
            _COMPLETED_IMPORT,
            headers={**_IMPORT_LOCATION, "Preference-Applied": "The wait that the service applied, in seconds."},
        ),
    ),
    error_statuses=(404, 409, 413, 503),
    headers=WAITING,
    example={"mapping": _BODY["mapping"]},
)
IMPORTS_LISTED = OperationDocs(
    (DocumentedReply(200, "The imports.", ImportList, {"imports": [_COMPLETED_IMPORT]}),), error_statuses=(503,)
)
IMPORT_SHOWN = OperationDocs(
    (DocumentedReply(200, "The import.", Import, _COMPLETED_IMPORT),), error_statuses=(404, 503)
)
JOB_CANCELLED = OperationDocs((NO_CONTENT,), error_statuses=(404, 409, 503))


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
    """An audit bundle. `files` is empty until the status is `completed`; `error` is null unless it is `failed`.

    `errorCode` is the code with which `error` begins; null if the failure has no code. `brokenScopes` are the chains
    that the verification for the bundle found broken. A chain of which filters exclude records is not verified.
    """

    bundleId: str
    status: JobStatus
    statusUrl: str
    scopes: list[BundledScope]
    filters: BundleFilters
    createdAt: datetime
    progress: BundleProgress
    brokenScopes: list[BundledScope]
    files: list[BundleLink]
    expiresAt: datetime
    error: str | None
    errorCode: str | None


class AuditBundles(TypedDict):
    """List of the caller's audit bundles."""

    bundles: list[AuditBundle]


_PENDING_BUNDLE: Final[dict[str, Any]] = {
    "bundleId": _ID,
    "status": "pending",
    "statusUrl": f"/oi-api/provenance/bundles/{_ID}",
    "scopes": [{"target": "DomainEvents", "scopeKey": "line-1"}],
    "filters": {"startDate": None, "endDate": None, "entityId": None},
    "createdAt": "2026-01-06T08:00:00.000000Z",
    "progress": {"scopesDone": 0, "scopesTotal": 1, "records": 0},
    "brokenScopes": [],
    "files": [],
    "expiresAt": "2026-01-07T08:00:00.000000Z",
    "error": None,
    "errorCode": None,
}
_COMPLETED_BUNDLE: Final[dict[str, Any]] = {
    **_PENDING_BUNDLE,
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
_BUNDLE_LOCATION: Final = {"Location": "URL of the bundle."}

BUNDLE_STARTED = OperationDocs(
    (
        DocumentedReply(
            202, "The bundle is built in the background.", AuditBundle, _PENDING_BUNDLE, headers=_BUNDLE_LOCATION
        ),
        DocumentedReply(
            200,
            "The bundle ended within the seconds of `Prefer: wait=` (at most 60).",
            AuditBundle,
            _COMPLETED_BUNDLE,
            headers={**_BUNDLE_LOCATION, "Preference-Applied": "The wait that the service applied, in seconds."},
        ),
    ),
    error_statuses=(409, 422, 429, 503, 507),
    example={"scopes": [{"target": "DomainEvents", "scopeKey": "line-1"}]},
    headers={**IDEMPOTENT, **WAITING},
)
BUNDLES_LISTED = OperationDocs(
    (DocumentedReply(200, "The bundles.", AuditBundles, {"bundles": [_COMPLETED_BUNDLE]}),), error_statuses=(503,)
)
BUNDLE_SHOWN = OperationDocs(
    (DocumentedReply(200, "The bundle.", AuditBundle, _COMPLETED_BUNDLE),), error_statuses=(404, 503)
)
