"""Error codes of each operation: codes of the request pipeline, and codes of the operation's own rules.

This module is separate from ``responses`` because it is a table that tests compare with the code of the operations.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from shared.http.load_shedding import ALWAYS_ADMITTED
from shared.http.operation_docs import IDEMPOTENCY_KEY
from shared.http.operations import Access, NoQuery, Operation
from shared.http.unknown_names import UnknownNames
from shared.openapi.error_codes import ERROR_CODES

_ENGINE = ("QUERY_ENGINE_UNAVAILABLE", "QUERY_TIMEOUT", "THROTTLED", "QUERY_INVALID", "QUERY_TOO_LARGE")
_RUN = (*_ENGINE, "TIME_RANGE_NOT_APPLICABLE", "WARM_QUERY_NOT_FOUND", "QUERY_NOT_APPROVED")
_CHAIN = ("TARGET_UNKNOWN", "TARGET_SCOPE_MISMATCH", "SCOPE_KEY_REQUIRED")
_APPEND = ("RECORD_TOO_LARGE",)
_CATALOG_WRITE = ("CATALOG_CHANGED", "RIGHT_NOT_HELD", *_APPEND)
_JOB = (
    *("TOO_MANY_JOBS", "DOWNLOAD_QUOTA_EXCEEDED", "QUOTAS_UNAVAILABLE", "DOWNLOADS_UNAVAILABLE"),
    *("BLOB_STORE_UNAVAILABLE", "STORAGE_FULL", "IDEMPOTENCY_KEY_IN_USE"),
)
_FILES = ("DOWNLOADS_UNAVAILABLE", "BLOB_STORE_UNAVAILABLE")
_IMPORT = (*_FILES, "IMPORT_NOT_FOUND", "IMPORT_ENDED", "CONNECTION_NOT_FOUND", "CONNECTION_DISABLED")
_UPLOAD = (*_IMPORT, "IMPORT_NOT_UPLOADED", "IMPORT_TOO_LARGE", "STORAGE_FULL")
_WEBHOOKS = ("WEBHOOKS_UNAVAILABLE", "WEBHOOK_KEY_UNAVAILABLE")
_WEBHOOK = (*_WEBHOOKS, "WEBHOOK_NOT_FOUND")
_STREAM = ("CONNECTION_NOT_FOUND", "SURFACE_NOT_FOUND", "TOO_MANY_STREAMS", "QUOTAS_UNAVAILABLE")
_CREDENTIAL = ("CREDENTIAL_BOUND", "DELEGATED_TOKEN")
_REPEATED = ("IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_UNAVAILABLE")
_MEMBER = ("SELF_LOCKOUT", "LAST_ADMINISTRATOR")
_NEW_MEMBER = ("MEMBER_ID_RETIRED", "MEMBER_ID_TAKEN", "MEMBER_OID_TAKEN")
_ACCOUNT = ("DATA_STORE_UNAVAILABLE", "STORE_NOT_AVAILABLE", "THROTTLED")
_TABLE = (
    *("DATABASE_NOT_FOUND", "DATABASE_NOT_IN_STORE", "TABLE_NOT_FOUND", "TABLE_NOT_EXPOSED", "OPERATION_NOT_EXPOSED"),
    *("DATA_PLANE_FORBIDDEN", *_ACCOUNT),
)
_DOCUMENT = (*_TABLE, "DOCUMENT_NOT_FOUND", "PARTITION_KEY_REQUIRED")
_DOCUMENT_WRITE = (
    *(*_DOCUMENT, "DOCUMENT_TOO_LARGE", "DOCUMENT_OUTCOME_UNKNOWN"),
    *("UNIQUE_KEY_CONFLICT", "PARTITION_FULL"),
)
_PROOF = (*_CHAIN, "CHECKPOINTS_UNAVAILABLE", "CHECKPOINT_NOT_FOUND")
_SIGN = (
    *("SIGNATURE_REQUIRED", "SIGNATURE_MEANING_INVALID", "REAUTHENTICATION_REQUIRED", "SIGNATURE_NOT_PERSONAL"),
    *("DELEGATED_TOKEN", "SIGNATURE_TOKEN_USED", "SIGNATURE_LOCKED", "SIGNATURES_UNAVAILABLE"),
)
_DECIDE = (
    *_SIGN,
    *("AMENDMENT_NOT_FOUND", "AMENDMENT_NOT_PENDING", "RECORD_DAMAGED", "MAKER_CHECKER_VIOLATION"),
    *("SCOPE_KEY_REQUIRED", *_APPEND),
)
_DOCUMENT_PLAN = (
    *("BODY_NOT_YAML", "WORKSPACE_ID_FIXED", "DATA_CLASS_REFUSED", *_CATALOG_WRITE, *_MEMBER, *_NEW_MEMBER, *_ENGINE),
    *("MEMBER_IN_USE", "CONNECTION_IN_USE", "SURFACE_IN_USE", "PROVENANCE_REQUIRED", "PARTITION_KEY_IMMUTABLE"),
    # Containers that the document no longer declares are looked up in their account.
    "DATA_STORE_UNAVAILABLE",
)

OWN_CODES: Final[Mapping[str, tuple[str, ...]]] = {
    "ready": ("NOT_READY",),
    "console_file": ("FILE_NOT_FOUND",),
    "explorer_file": ("FILE_NOT_FOUND",),
    "graphiql_file": ("FILE_NOT_FOUND",),
    "handle_live_stream_event": ("UNAUTHENTICATED",),
    "mint_token": _CREDENTIAL,
    "revoke_token": (*_CREDENTIAL, "TOKEN_NOT_FOUND"),
    "list_keys": _CREDENTIAL,
    "create_key": (
        *(*_CREDENTIAL, "ACCESS_RIGHT_MISSING", "CONNECTION_NOT_FOUND", "IDEMPOTENCY_KEY_IN_USE"),
        *("RIGHT_NOT_HELD", "REAUTHENTICATION_REQUIRED", "TOO_MANY_API_KEYS"),
    ),
    "revoke_key": (*_CREDENTIAL, "API_KEY_NOT_FOUND"),
    "jwks": ("SIGNING_KEY_UNAVAILABLE",),
    "execute_warm_query": _RUN,
    "execute_warm_query_by_id": _RUN,
    "execute_ad_hoc": (*_ENGINE, "QUERY_NOT_READ_ONLY", "TIME_RANGE_NOT_APPLICABLE"),
    "put_warm_query": (
        *(*_CATALOG_WRITE, *_ENGINE, "QUERY_NOT_READ_ONLY", "WARM_QUERY_NAME_TAKEN", "WARM_QUERY_PATH_TAKEN"),
        "SURFACE_NOT_FOUND",
    ),
    "delete_warm_query": (*_CATALOG_WRITE, "WARM_QUERY_NOT_FOUND"),
    "approve_warm_query": (
        *(*_CATALOG_WRITE, *_ENGINE, "QUERY_NOT_READ_ONLY", "WARM_QUERY_NOT_FOUND", "WARM_QUERY_REJECTED"),
        *("WARM_QUERY_APPROVED", "MAKER_CHECKER_VIOLATION", "IDEMPOTENCY_KEY_IN_USE", *_SIGN),
    ),
    "reject_warm_query": (
        *(*_CATALOG_WRITE, "WARM_QUERY_NOT_FOUND", "WARM_QUERY_APPROVED", "MAKER_CHECKER_VIOLATION"),
        *("IDEMPOTENCY_KEY_IN_USE", *_SIGN),
    ),
    "list_signatures": ("SIGNATURES_UNAVAILABLE",),
    "put_workspace": (*_CATALOG_WRITE, "PROVENANCE_REQUIRED"),
    "read_member": ("MEMBER_NOT_FOUND",),
    "put_member": (*_CATALOG_WRITE, *_MEMBER, *_NEW_MEMBER),
    "delete_member": (*_CATALOG_WRITE, *_MEMBER, "MEMBER_NOT_FOUND", "MEMBER_IN_USE"),
    "read_connection": ("CONNECTION_NOT_FOUND", "CONNECTION_STATES_UNAVAILABLE"),
    "list_connections": ("CONNECTION_STATES_UNAVAILABLE",),
    "put_connection": (*_CATALOG_WRITE, "CONNECTION_STATES_UNAVAILABLE"),
    "delete_connection": (*_CATALOG_WRITE, "CONNECTION_NOT_FOUND", "CONNECTION_IN_USE"),
    "list_signals": ("CONNECTION_NOT_FOUND",),
    "infer_connection_signals": ("CONNECTION_NOT_FOUND", *_ENGINE),
    "read_surface": ("SURFACE_NOT_FOUND",),
    "put_surface": (*_CATALOG_WRITE, "CONNECTION_NOT_FOUND"),
    "delete_surface": (*_CATALOG_WRITE, "SURFACE_NOT_FOUND", "SURFACE_IN_USE"),
    "list_alert_rules": ("ALERTS_UNAVAILABLE",),
    "read_alert_rule": ("ALERT_RULE_NOT_FOUND", "ALERTS_UNAVAILABLE"),
    "put_alert_rule": (*_CATALOG_WRITE, *_ENGINE, "QUERY_NOT_READ_ONLY", "ALERTS_UNAVAILABLE"),
    "delete_alert_rule": (*_CATALOG_WRITE, "ALERT_RULE_NOT_FOUND"),
    "evaluate_alert_rule": ("ALERT_RULE_NOT_FOUND", "ALERTS_UNAVAILABLE"),
    "list_alerts": ("ALERTS_UNAVAILABLE",),
    "acknowledge_alert": (
        *("ALERT_NOT_FOUND", "ALERT_RESOLVED", "ALERT_CHANGED", "ALERTS_UNAVAILABLE"),
        *_REPEATED,
    ),
    "plan_workspace_document": _DOCUMENT_PLAN,
    "apply_workspace_document": (*_DOCUMENT_PLAN, "PRECONDITION_REQUIRED"),
    "accept_telemetry": (
        *("CONNECTION_NOT_FOUND", "CONNECTION_DISABLED", "MESSAGE_TOO_LARGE", "TELEMETRY_HUB_UNAVAILABLE"),
        *("CONNECTION_NOT_ALLOWED", "DEVICE_NOT_ALLOWED", "BOUND_KEY_REQUIRED", "THROTTLED", "STORAGE_FULL"),
    ),
    "live_stream": (*_STREAM, "UPGRADE_REQUIRED", "LIVE_STREAM_UNAVAILABLE"),
    "negotiate_live_stream": (*_STREAM, "LIVE_STREAM_UNAVAILABLE"),
    "download_connection": (*_JOB, "CONNECTION_NOT_FOUND", "DOWNLOAD_NOT_FOUND"),
    "download_surface": (*_JOB, "SURFACE_NOT_FOUND", "DOWNLOAD_NOT_FOUND"),
    "download_surface_connection": (*_JOB, "SURFACE_NOT_FOUND", "CONNECTION_NOT_FOUND", "DOWNLOAD_NOT_FOUND"),
    "create_import": (*_JOB, *_IMPORT),
    "preview_import": _UPLOAD,
    "start_import": (*_UPLOAD, "IMPORT_STARTED"),
    "list_imports": _FILES,
    "get_import": _IMPORT,
    "cancel_import": _IMPORT,
    "list_webhooks": _WEBHOOKS,
    "create_webhook": (*_WEBHOOKS, "TOO_MANY_WEBHOOKS", "WEBHOOK_URL_REFUSED", *_APPEND, *_REPEATED),
    "read_webhook": _WEBHOOK,
    "put_webhook": (*_WEBHOOK, "WEBHOOK_URL_REFUSED", *_APPEND),
    "delete_webhook": _WEBHOOK,
    "rotate_webhook_secret": (*_WEBHOOK, *_APPEND, *_REPEATED),
    "send_webhook_test": (*_WEBHOOK, "WEBHOOK_DISABLED", *_REPEATED),
    "list_webhook_deliveries": _WEBHOOK,
    "retry_webhook_delivery": (*_WEBHOOK, "DELIVERY_NOT_FOUND", "WEBHOOK_DISABLED", *_REPEATED),
    "list_downloads": _FILES,
    "get_download": (*_FILES, "DOWNLOAD_NOT_FOUND"),
    "cancel_download": (*_FILES, "DOWNLOAD_NOT_FOUND", "DOWNLOAD_ENDED"),
    "write_audit_event": (*_CHAIN, "TARGET_READ_ONLY", "RECORD_DAMAGED", *_APPEND),
    "query_audit_events": _CHAIN,
    "export_audit_events": _CHAIN,
    "verify_audit_chain": (*_PROOF, "CHECKPOINT_REFUSED", "RECORD_NOT_FOUND", "VERIFY_TIMEOUT", "THROTTLED"),
    "newest_checkpoint": (*_PROOF, "CHECKPOINT_REFUSED"),
    "prove": (*_PROOF, "CHECKPOINT_REFUSED", "RECORD_NOT_FOUND"),
    "issue_receipt": (*_PROOF, "CHECKPOINT_REFUSED", "RECORD_NOT_FOUND", "RECEIPT_NOT_READY", "CHAIN_BROKEN"),
    "checkpoint_key": ("CHECKPOINT_REFUSED", "CHECKPOINTS_UNAVAILABLE"),
    "list_scopes": ("TARGET_UNKNOWN",),
    "create_audit_bundle": (*_CHAIN, *_JOB, "BUNDLE_NOT_FOUND"),
    "list_audit_bundles": _FILES,
    "get_audit_bundle": (*_FILES, "BUNDLE_NOT_FOUND"),
    "cancel_audit_bundle": (*_FILES, "BUNDLE_NOT_FOUND", "BUNDLE_ENDED"),
    "create_amendment": ("REASON_CATEGORY_UNKNOWN", "SCOPE_KEY_REQUIRED", "RECORD_DAMAGED", *_APPEND),
    "query_scope_amendments": ("SCOPE_KEY_REQUIRED",),
    "amendments_of_entity": ("SCOPE_KEY_REQUIRED", "CHECKPOINTS_UNAVAILABLE", "CHECKPOINT_REFUSED"),
    "approve_amendment": _DECIDE,
    "reject_amendment": _DECIDE,
    "list_containers": ("DATABASE_NOT_FOUND", *_ACCOUNT),
    "create_container": (
        *(*_CATALOG_WRITE, "DATABASE_NOT_FOUND", "DATA_CLASS_REFUSED", "CONTAINER_EXISTS", *_ACCOUNT),
        *("CONTAINER_OUTCOME_UNKNOWN", "IDEMPOTENCY_KEY_IN_USE"),
    ),
    "delete_container": (
        *(*_CATALOG_WRITE, "DATABASE_NOT_FOUND", "CONTAINER_NOT_FOUND", "CONTAINER_PROVISIONED"),
        *("CONTAINER_NOT_DECLARED", *_ACCOUNT),
    ),
    "read_container": ("DATABASE_NOT_FOUND", "CONTAINER_NOT_FOUND"),
    "put_container": (
        *(*_CATALOG_WRITE, "DATABASE_NOT_FOUND", "CONTAINER_NOT_FOUND", "DATA_CLASS_REFUSED"),
        "PARTITION_KEY_IMMUTABLE",
    ),
    "list_documents": _TABLE,
    "create_document": (*_DOCUMENT_WRITE, "DOCUMENT_EXISTS"),
    "read_document": _DOCUMENT,
    "replace_document": _DOCUMENT_WRITE,
    "delete_document": (*_DOCUMENT, "DOCUMENT_OUTCOME_UNKNOWN"),
    "mcp": ("PROTOCOL_REFUSED",),
    "mcp_metadata": ("PROTOCOL_REFUSED",),
    "start_authorization": ("OAUTH_CLIENT_UNKNOWN", "REDIRECT_URI_MISMATCH", "PROTOCOL_REFUSED", "URI_TOO_LONG"),
    "decide_authorization": (
        *(*_CREDENTIAL, "OAUTH_CLIENT_UNKNOWN", "REDIRECT_URI_MISMATCH", "PROTOCOL_REFUSED"),
        "REAUTHENTICATION_REQUIRED",
    ),
    "preview_authorization": (*_CREDENTIAL, "OAUTH_CLIENT_UNKNOWN", "REDIRECT_URI_MISMATCH", "PROTOCOL_REFUSED"),
    "list_grants": ("CREDENTIAL_BOUND",),
    "end_grant": (*_CREDENTIAL, "ACCESS_RIGHT_MISSING", "GRANT_NOT_FOUND"),
}
"""Codes of the rules of each operation, by the name of the operation; the codes of the pipeline are not repeated."""


def list_error_codes(operation: Operation, http_status: int) -> list[str]:
    """Return the error codes, sorted, that an operation can return with the given HTTP status."""
    codes = {*_iterate_pipeline_error_codes(operation), *OWN_CODES.get(operation.name, ())}
    return sorted(code for code in codes if http_status in ERROR_CODES[code].statuses)


def list_error_statuses(operation: Operation) -> list[int]:
    """Return the HTTP statuses of an operation's errors, sorted.

    These are the usual (first) status of each error code, and the statuses that the operation itself declares.
    """
    own = OWN_CODES.get(operation.name, ()) if operation.docs.errors is None else ()
    codes = {*_iterate_pipeline_error_codes(operation), *own}
    implied = {ERROR_CODES[code].statuses[0] for code in codes}
    return sorted({*implied, *operation.docs.error_statuses})


def _iterate_pipeline_error_codes(operation: Operation) -> Iterator[str]:
    yield from ("INTERNAL_ERROR", "HEADERS_TOO_LARGE")
    if f"/{operation.route}" not in ALWAYS_ADMITTED:
        yield "OVERLOADED"
    if operation.is_versioned:
        yield "VERSION_UNKNOWN"
    if operation.access is not Access.PUBLIC:
        yield from _iterate_authentication_error_codes(operation)
    if operation.feature:
        yield from ("PROVENANCE_NOT_PROVISIONED", "PROVENANCE_UNAVAILABLE")
    yield from _iterate_validation_error_codes(operation)
    yield from _iterate_header_error_codes(operation)


def _iterate_authentication_error_codes(operation: Operation) -> Iterator[str]:
    yield from ("UNAUTHENTICATED", "RATE_LIMITED", "RATE_LIMITS_UNAVAILABLE", "CREDENTIALS_UNAVAILABLE")
    yield from ("CATALOG_UNAVAILABLE", "WORKSPACE_NOT_DECLARED", "SIGNING_KEY_UNAVAILABLE")
    if operation.access is Access.KEYS:
        yield "IDENTITY_PROVIDER_UNAVAILABLE"
    if operation.right is not None:
        yield "ACCESS_RIGHT_MISSING"
    if operation.method != "GET" or operation.access is Access.KEYS:
        # The change is an audit event.
        yield from ("PROVENANCE_UNAVAILABLE", "PROVENANCE_BUSY", "PROVENANCE_OUTCOME_UNKNOWN")


def _iterate_validation_error_codes(operation: Operation) -> Iterator[str]:
    is_parametrised = "{" in operation.route
    if operation.query is not NoQuery or operation.unknown is UnknownNames.REJECT or is_parametrised:
        yield "INVALID_REQUEST"
    if operation.takes_body:
        yield from ("INVALID_REQUEST", "BODY_NOT_JSON", "BODY_NOT_DECODABLE")
        yield from ("LENGTH_REQUIRED", "BODY_TOO_LARGE", "CONTENT_ENCODING_UNSUPPORTED")
    if is_parametrised:
        yield "ROUTE_NOT_FOUND"
    if is_parametrised or operation.query is not NoQuery:
        yield "URI_TOO_LONG"


def _iterate_header_error_codes(operation: Operation) -> Iterator[str]:
    headers = operation.docs.headers
    if headers:
        yield "INVALID_REQUEST"
    if "If-Match" in headers:
        yield "PRECONDITION_FAILED"
    if IDEMPOTENCY_KEY in headers and operation.docs.stores_idempotency_key:
        yield from ("IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_UNAVAILABLE")
