"""Error codes of the API with their HTTP statuses and an example; docs/reference/errors.md lists the same codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """HTTP statuses and an example text of the errors with one code.

    Attributes:
        statuses: HTTP statuses of the error's replies, the usual one first.
        detail: example of the property ``detail`` in the error reply.
    """

    statuses: tuple[int, ...]
    detail: str


def _build_error_code(detail: str, *http_statuses: int) -> ErrorCode:
    return ErrorCode(http_statuses, detail)


ERROR_CODES: Final[Mapping[str, ErrorCode]] = {
    "INVALID_REQUEST": _build_error_code("A parameter or property is invalid.", 400),
    "BODY_NOT_YAML": _build_error_code(
        "A workspace document in YAML cannot be parsed, is empty, or exceeds a limit.", 400
    ),
    "BODY_NOT_JSON": _build_error_code(
        "The body is not strict JSON (RFC 8259).",
        400,
    ),
    "VERSION_UNKNOWN": _build_error_code("The service does not support the version in the header `Oi-Version`.", 400),
    "UNAUTHENTICATED": _build_error_code(
        "The credential is missing, invalid, expired, revoked, or belongs to a disabled member.", 401
    ),
    "ACCESS_RIGHT_MISSING": _build_error_code("The credential lacks an access right that the operation requires.", 403),
    "ROUTE_NOT_FOUND": _build_error_code("The API has no operation with this path.", 404),
    "METHOD_NOT_ALLOWED": _build_error_code("The path does not support the method of the request.", 405),
    "PROTOCOL_REFUSED": _build_error_code(
        "The MCP server rejects the Accept, Content-Type, Host or Origin of the request.",
        400,
        403,
        406,
        415,
        421,
    ),
    "LENGTH_REQUIRED": _build_error_code(
        "The body was sent in chunks without `Content-Length`, and the platform did not pass it on.", 411
    ),
    "BODY_TOO_LARGE": _build_error_code("The body is larger than the limit of the route.", 413),
    "BODY_NOT_DECODABLE": _build_error_code(
        "The body cannot be decoded with its `Content-Encoding`, or ends too early.", 400
    ),
    "CONTENT_ENCODING_UNSUPPORTED": _build_error_code("The operation does not accept this `Content-Encoding`.", 415),
    "URI_TOO_LONG": _build_error_code("Path and query are longer than 32,768 bytes.", 414),
    "HEADERS_TOO_LARGE": _build_error_code(
        "The request has more than 100 headers, or headers of more than 128 KiB.", 431
    ),
    "INTERNAL_ERROR": _build_error_code("The service failed; its log has the reason under the `traceId`.", 500),
    "THROTTLED": _build_error_code(
        "The query engine, the event hub or a data store is overloaded, or the caller's earlier queries or "
        "verifications did not end in time.",
        429,
    ),
    "RATE_LIMITED": _build_error_code(
        "The caller has sent more requests per minute, or more concurrent requests, than the workspace's tier allows.",
        429,
    ),
    "OVERLOADED": _build_error_code("The instance of the service is overloaded; retry after `Retry-After`.", 503),
    "TOO_MANY_STREAMS": _build_error_code("The caller has reached its limit of open live streams; close one.", 429),
    "TOO_MANY_JOBS": _build_error_code(
        "The caller has reached its limit of unfinished downloads, imports and audit bundles.", 429
    ),
    "DOWNLOAD_QUOTA_EXCEEDED": _build_error_code(
        "The files of the caller's downloads have reached the limit of their total size.", 507
    ),
    "QUOTAS_UNAVAILABLE": _build_error_code("The store that counts live streams and jobs does not respond.", 503),
    "RATE_LIMITS_UNAVAILABLE": _build_error_code("The store of rate limits does not respond.", 503),
    "FILE_NOT_FOUND": _build_error_code(
        "No file of the web console, API Explorer or GraphiQL has this path, or a download's file was deleted.",
        404,
    ),
    "OTHER_WORKSPACE": _build_error_code("The workspace in the GraphQL URL is not the caller's workspace.", 403),
    "TOKEN_NOT_FOUND": _build_error_code("No active token has this id.", 404),
    "DELEGATED_TOKEN": _build_error_code(
        "A token that an OAuth client received by consent cannot sign, create credentials or approve clients.", 403
    ),
    "REAUTHENTICATION_REQUIRED": _build_error_code(
        "This operation requires a recent sign-in: exchange the API key for a new token, or sign in again, and repeat "
        "the request with the new token.",
        401,
    ),
    "SIGNATURE_REQUIRED": _build_error_code("The policy `signatures` requires a signature for this decision.", 400),
    "SIGNATURE_MEANING_INVALID": _build_error_code(
        "The meaning of the signature is not allowed for this decision.", 400
    ),
    "SIGNATURE_NOT_PERSONAL": _build_error_code(
        "The token descends from an API key that another person created, so it cannot sign.", 403
    ),
    "SIGNATURE_TOKEN_USED": _build_error_code(
        "The sign-in has signed another decision, or possibly does so now; sign in again for this signature.", 409
    ),
    "SIGNATURE_LOCKED": _build_error_code(
        "Too many signatures of the member were refused; retry after `Retry-After`.", 429
    ),
    "SIGNATURES_UNAVAILABLE": _build_error_code("The store of sign-ins and refused signatures does not respond.", 503),
    "OAUTH_CLIENT_UNKNOWN": _build_error_code(
        "No OAuth client has this `client_id`, or its metadata document cannot be used.", 400
    ),
    "REDIRECT_URI_MISMATCH": _build_error_code(
        "The redirect URI of the authorization request does not belong to the client.", 400
    ),
    "GRANT_NOT_FOUND": _build_error_code("No consent to an OAuth client has this id.", 404),
    "CREDENTIAL_BOUND": _build_error_code(
        "A credential that is bound to connections cannot manage keys and tokens.", 403
    ),
    "CONNECTION_NOT_ALLOWED": _build_error_code(
        "The credential is bound to connections, but not to the connection of the request.", 403
    ),
    "DEVICE_NOT_ALLOWED": _build_error_code(
        "The credential is bound to devices, but not to the device of a message in the request.", 403
    ),
    "BOUND_KEY_REQUIRED": _build_error_code(
        "The policy `requireBoundKeys` requires an API key that is bound to connections for telemetry.", 403
    ),
    "API_KEY_NOT_FOUND": _build_error_code("No API key has this id.", 404),
    "TOO_MANY_API_KEYS": _build_error_code(
        "The principal has 1,000 API keys that are not revoked; revoke keys that are not used any more.", 409
    ),
    "SIGNING_KEY_UNAVAILABLE": _build_error_code("The key that signs tokens cannot be reached.", 503),
    "CONNECTION_STATES_UNAVAILABLE": _build_error_code("The store of connection states does not respond.", 503),
    "CREDENTIALS_UNAVAILABLE": _build_error_code("The store of API keys and revoked tokens does not respond.", 503),
    "IDEMPOTENCY_UNAVAILABLE": _build_error_code(
        "The store of idempotency keys does not respond; nothing was appended.", 503
    ),
    "IDEMPOTENCY_KEY_IN_USE": _build_error_code(
        "The first request with this Idempotency-Key is still in progress after 30 s.", 409
    ),
    "IDEMPOTENCY_KEY_REUSED": _build_error_code("The Idempotency-Key was used for another request.", 422),
    "IDENTITY_PROVIDER_UNAVAILABLE": _build_error_code("Entra ID's keys cannot be fetched.", 503),
    "WARM_QUERY_NOT_FOUND": _build_error_code("No warm query has this lookup or API path.", 404),
    "WARM_QUERY_APPROVED": _build_error_code("An approved query can neither be rejected nor signed again.", 409),
    "WARM_QUERY_REJECTED": _build_error_code(
        "The draft was rejected; it must be edited before it can be approved.", 409
    ),
    "QUERY_NOT_APPROVED": _build_error_code("The warm query is a draft; another person must approve it first.", 403),
    "MAKER_CHECKER_VIOLATION": _build_error_code(
        "The last editor of a warm query, or the author of an amendment, cannot approve or reject it.",
        403,
    ),
    "WARM_QUERY_NAME_TAKEN": _build_error_code(
        "Another query has this name, or the name of one query is the lookup or the API path of another query.", 409
    ),
    "WARM_QUERY_PATH_TAKEN": _build_error_code("Another query has this API path or lookup.", 409),
    "QUERY_INVALID": _build_error_code(
        "The KQL text is invalid, or a dynamic value of its result has more than 200 levels.", 400
    ),
    "QUERY_NOT_READ_ONLY": _build_error_code(
        "The query contains a control command, such as `.drop table`; only queries that read are allowed.", 400
    ),
    "QUERY_TOO_LARGE": _build_error_code(
        "The query needs more memory, or returns more rows, than the query engine allows.", 400
    ),
    "TIME_RANGE_NOT_APPLICABLE": _build_error_code(
        "The query reads telemetry that `timeRange`, or `from` and `to`, cannot filter.", 400
    ),
    "QUERY_TIMEOUT": _build_error_code("The query ran longer than `QUERY_TIMEOUT_SECONDS`.", 504),
    "QUERY_ENGINE_UNAVAILABLE": _build_error_code("The query engine does not respond.", 503),
    "CONNECTION_NOT_FOUND": _build_error_code("No connection has this lookup.", 404),
    "CONNECTION_DISABLED": _build_error_code("The connection is disabled and accepts no telemetry.", 409),
    "MESSAGE_TOO_LARGE": _build_error_code("A message is larger than 256 KiB.", 413),
    "STORAGE_FULL": _build_error_code(
        "The disk of the local host has less free space than the reserve (`DISK_RESERVE_MB`).", 507
    ),
    "TELEMETRY_HUB_UNAVAILABLE": _build_error_code(
        "The event hub does not accept messages now, or has stored only a part of them; send all of them again.", 503
    ),
    "SURFACE_NOT_FOUND": _build_error_code("No surface has this lookup.", 404),
    "UPGRADE_REQUIRED": _build_error_code(
        "The live stream needs a WebSocket: `Upgrade: websocket` and `Connection: Upgrade`.", 426
    ),
    "LIVE_STREAM_UNAVAILABLE": _build_error_code(
        "The message service of the live stream does not respond or is not configured.", 503
    ),
    "BLOB_STORE_UNAVAILABLE": _build_error_code(
        "The store of the telemetry archive and of download files does not respond.", 503
    ),
    "CATALOG_UNAVAILABLE": _build_error_code("The workspace's catalog cannot be read.", 503),
    "CATALOG_CHANGED": _build_error_code(
        "The catalog was changed by other requests at the same time; retry. If the query was changed while its "
        "decision was signed, read the query again first.",
        409,
    ),
    "PARTITION_KEY_IMMUTABLE": _build_error_code("The partition key path of a container cannot be changed.", 409),
    "WORKSPACE_ID_FIXED": _build_error_code(
        "The workspace id in the document differs from the id of the stored workspace.", 409
    ),
    "MEMBER_NOT_FOUND": _build_error_code("The team has no member with this id.", 404),
    "RIGHT_NOT_HELD": _build_error_code(
        "The changed member has, before or after the change, rights that the caller lacks.", 403
    ),
    "SELF_LOCKOUT": _build_error_code(
        "Members cannot disable or remove themselves, and cannot remove their own `Workspace.Team.Manage`.", 409
    ),
    "LAST_ADMINISTRATOR": _build_error_code("The change would leave no enabled person with the role Admin.", 409),
    "MEMBER_ID_RETIRED": _build_error_code("The id belonged to a removed member, and cannot be used again.", 409),
    "MEMBER_ID_TAKEN": _build_error_code(
        "The id differs from the id of another member only in case, width or compatibility forms.", 409
    ),
    "MEMBER_OID_TAKEN": _build_error_code("Another member has the same object id of Entra ID.", 409),
    "MEMBER_IN_USE": _build_error_code(
        "The member cannot be removed, because an existing warm query has the member's approval; disable the member.",
        409,
    ),
    "CONNECTION_IN_USE": _build_error_code(
        "The connection cannot be removed, because a surface contains it or an alert rule watches it.", 409
    ),
    "SURFACE_IN_USE": _build_error_code(
        "The surface cannot be removed, because warm queries or alert rules belong to it.", 409
    ),
    "ALERT_RULE_NOT_FOUND": _build_error_code("No alert rule has this lookup.", 404),
    "ALERT_NOT_FOUND": _build_error_code("No alert has this id.", 404),
    "ALERT_RESOLVED": _build_error_code(
        "The alert is resolved; only pending and firing alerts can be acknowledged.",
        409,
    ),
    "ALERT_CHANGED": _build_error_code("The alert was changed concurrently; try again.", 409),
    "ALERTS_UNAVAILABLE": _build_error_code("The store of alerts does not respond.", 503),
    "PROVENANCE_REQUIRED": _build_error_code("The policy `provenance` cannot be removed through the API.", 409),
    "WORKSPACE_NOT_DECLARED": _build_error_code("No workspace document was applied yet.", 503),
    "PROVENANCE_UNAVAILABLE": _build_error_code(
        "The audit log does not respond, its file is damaged, or the stored end (tip) of a chain is invalid.", 503
    ),
    "PROVENANCE_NOT_PROVISIONED": _build_error_code("The workspace has no provenance policy.", 503),
    "PROVENANCE_BUSY": _build_error_code(
        "Too many records are waiting to be appended to the audit log; retry later.", 503
    ),
    "PROVENANCE_OUTCOME_UNKNOWN": _build_error_code("It is unknown whether the record was stored.", 503),
    "RECORD_TOO_LARGE": _build_error_code(
        "The audit record, also that of a change, is larger than its maximum size.", 413
    ),
    "RECORD_DAMAGED": _build_error_code(
        "The stored record is damaged: a repeated request does not get it, and an amendment cannot be decided.", 409
    ),
    "RECORD_NOT_FOUND": _build_error_code("The chain has no record with this RecordID.", 404),
    "TARGET_UNKNOWN": _build_error_code("`target` must be one of the four targets.", 400),
    "TARGET_SCOPE_MISMATCH": _build_error_code(
        "A workspace target must not have a scope, and a domain target must have one.", 400
    ),
    "TARGET_READ_ONLY": _build_error_code(
        "Events cannot be appended to DomainAmendments; use the routes for amendments.", 400
    ),
    "SCOPE_KEY_REQUIRED": _build_error_code("The scope is missing or empty.", 400),
    "VERIFY_TIMEOUT": _build_error_code("The verification was ended without a result after 200 seconds.", 504),
    "CHECKPOINT_NOT_FOUND": _build_error_code(
        "The chain has no signed checkpoint yet, or no checkpoint of this size.", 404
    ),
    "RECEIPT_NOT_READY": _build_error_code("No checkpoint covers the record yet; retry after `Retry-After`.", 404),
    "CHAIN_BROKEN": _build_error_code("The chain is broken, so it gets no receipts: verify the chain.", 409),
    "CHECKPOINT_REFUSED": _build_error_code("The chain differs from its last checkpoint: verify the chain.", 409),
    "CHECKPOINTS_UNAVAILABLE": _build_error_code("The store of checkpoints does not respond.", 503),
    "AMENDMENT_NOT_FOUND": _build_error_code("No amendment in this scope has this id.", 404),
    "AMENDMENT_NOT_PENDING": _build_error_code("The amendment was already approved or rejected.", 409),
    "REASON_CATEGORY_UNKNOWN": _build_error_code("The reason category is not one of the workspace's categories.", 400),
    "DOWNLOAD_NOT_FOUND": _build_error_code(
        "The download does not exist or has expired.",
        404,
    ),
    "DOWNLOAD_ENDED": _build_error_code("The download has ended and cannot be cancelled.", 409),
    "BUNDLE_NOT_FOUND": _build_error_code(
        "The audit bundle does not exist or has expired.",
        404,
    ),
    "BUNDLE_ENDED": _build_error_code("The audit bundle has ended and cannot be cancelled.", 409),
    "DOWNLOADS_UNAVAILABLE": _build_error_code(
        "Downloads, imports and audit bundles cannot be read, stored or started at the moment.", 503
    ),
    "DATABASE_NOT_FOUND": _build_error_code("The workspace has no database with this lookup.", 404),
    "DATABASE_NOT_IN_STORE": _build_error_code("The data store in the URL does not have this database.", 404),
    "TABLE_NOT_FOUND": _build_error_code(
        "The database has no table with this name, or the container of the table does not exist.", 404
    ),
    "TABLE_NOT_EXPOSED": _build_error_code("The API exposes no operation of the container.", 404),
    "OPERATION_NOT_EXPOSED": _build_error_code("The API does not expose this operation of the container.", 403),
    "PARTITION_KEY_REQUIRED": _build_error_code("The request does not contain the partition key of the document.", 400),
    "DATA_PLANE_FORBIDDEN": _build_error_code(
        "The Cosmos DB account exists, but the service has no access to its documents.", 403
    ),
    "DOCUMENT_NOT_FOUND": _build_error_code("The table has no document with this id and partition key.", 404),
    "DOCUMENT_EXISTS": _build_error_code("A document with this id and partition key exists.", 409),
    "UNIQUE_KEY_CONFLICT": _build_error_code(
        "Another document of the partition has the same values in a unique key of the container.", 409
    ),
    "PARTITION_FULL": _build_error_code(
        "The documents with this partition key have reached the size limit of the Cosmos DB account.", 507
    ),
    "DOCUMENT_TOO_LARGE": _build_error_code("The document is larger than 2,000,000 bytes.", 413),
    "PRECONDITION_REQUIRED": _build_error_code(
        "Applying a workspace document needs the `planTag` of a plan in `If-Match`.", 428
    ),
    "PRECONDITION_FAILED": _build_error_code(
        "The stored item does not satisfy `If-Match` or `If-None-Match`; read the item again.", 412
    ),
    "DOCUMENT_OUTCOME_UNKNOWN": _build_error_code("It is unknown whether the document was written.", 503),
    "DATA_STORE_UNAVAILABLE": _build_error_code("The data store does not respond; nothing was changed.", 503),
    "CONTAINER_OUTCOME_UNKNOWN": _build_error_code(
        "It is unknown whether the container was created; list the containers before you create it again.", 503
    ),
    "CONTAINER_EXISTS": _build_error_code("The database has a container, or a record, of this name.", 409),
    "CONTAINER_NOT_FOUND": _build_error_code("The database has neither a container nor a record of this name.", 404),
    "CONTAINER_PROVISIONED": _build_error_code(
        "The record cannot be removed, because its container still exists in the account.", 409
    ),
    "CONTAINER_NOT_DECLARED": _build_error_code(
        "The container exists in the account, but the workspace has no record of it that could be removed.", 409
    ),
    "DATA_CLASS_REFUSED": _build_error_code("Containers cannot have the data class `evidence`.", 400),
    "STORE_NOT_AVAILABLE": _build_error_code("The configured store is not supported yet.", 503),
    "NOT_READY": _build_error_code("A store or the query engine does not respond (`/readyz`).", 503),
    "IMPORT_NOT_FOUND": _build_error_code("The import does not exist or has expired.", 404),
    "IMPORT_NOT_UPLOADED": _build_error_code(
        "The import has no file yet, or the file does not have the announced size.", 409
    ),
    "IMPORT_TOO_LARGE": _build_error_code("The uploaded file is larger than the maximum size for an import.", 413),
    "IMPORT_STARTED": _build_error_code(
        "The import has started; its mapping cannot change, nor its file on a local host.", 409
    ),
    "IMPORT_ENDED": _build_error_code("The import has ended and can be neither started nor cancelled.", 409),
    "WEBHOOK_NOT_FOUND": _build_error_code("The workspace has no webhook with this id.", 404),
    "DELIVERY_NOT_FOUND": _build_error_code(
        "The webhook has no delivery with this id, or it is older than 30 days.", 404
    ),
    "WEBHOOK_URL_REFUSED": _build_error_code(
        "The URL of the webhook is not allowed, for example because its host is not public.", 400
    ),
    "TOO_MANY_WEBHOOKS": _build_error_code("The workspace has 50 webhooks; remove one first.", 409),
    "WEBHOOK_DISABLED": _build_error_code(
        "The webhook is disabled, so nothing can be sent to it; enable it first.", 409
    ),
    "WEBHOOK_KEY_UNAVAILABLE": _build_error_code("The key that encrypts the secrets of webhooks cannot be used.", 503),
    "WEBHOOKS_UNAVAILABLE": _build_error_code(
        "Webhooks and their deliveries cannot be read or stored at the moment.", 503
    ),
}
