"""Errors as RFC 9457 problem documents."""

from http import HTTPStatus

from shared.auth.reauthentication import build_www_authenticate_header
from shared.errors import Kind, WorkspaceError
from shared.http.messages import PROBLEM_JSON, Reply, Request
from shared.text_formats.serialisation import serialise_json

STATUS: dict[Kind, HTTPStatus] = {
    Kind.INVALID: HTTPStatus.BAD_REQUEST,
    Kind.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Kind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    Kind.CONFLICT: HTTPStatus.CONFLICT,
    Kind.PRECONDITION_FAILED: HTTPStatus.PRECONDITION_FAILED,
    Kind.PRECONDITION_REQUIRED: HTTPStatus.PRECONDITION_REQUIRED,
    Kind.LENGTH_REQUIRED: HTTPStatus.LENGTH_REQUIRED,
    Kind.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Kind.TARGET_TOO_LONG: HTTPStatus.REQUEST_URI_TOO_LONG,
    Kind.HEADERS_TOO_LARGE: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    Kind.UNKNOWN_ENCODING: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Kind.UNPROCESSABLE: HTTPStatus.UNPROCESSABLE_ENTITY,
    Kind.STORAGE_FULL: HTTPStatus.INSUFFICIENT_STORAGE,
    Kind.UPGRADE_REQUIRED: HTTPStatus.UPGRADE_REQUIRED,
    Kind.THROTTLED: HTTPStatus.TOO_MANY_REQUESTS,
    Kind.TIMEOUT: HTTPStatus.GATEWAY_TIMEOUT,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Kind.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}
TYPE_BASE = "urn:oi:problem:"
DEFAULT_RETRY_AFTER = 5


def build_problem_reply(error: WorkspaceError, trace_id: str, status: HTTPStatus | None = None) -> Reply:
    """Build the HTTP reply with the problem document of an error.

    Args:
        error: error of the service.
        trace_id: id of the request, for the property ``traceId``.
        status: HTTP status to use instead of the status of the error's kind.
    """
    status = status or STATUS[error.kind]
    document = {
        **{name: value for name, value in error.members.items() if value is not None or name != "retryAfter"},
        "type": TYPE_BASE + error.code.lower().replace("_", "-"),
        "title": status.phrase,
        "status": int(status),
        "detail": error.detail,
        "code": error.code,
        "traceId": trace_id,
    }
    headers = {"Content-Type": PROBLEM_JSON, **build_error_headers(error)}
    return Reply(int(status), serialise_json(document), headers, error.code)


def build_default_error_reply(error: WorkspaceError, trace_id: str, _: Request) -> Reply:
    """Build the error reply of endpoint groups without their own error format: a problem document."""
    return build_problem_reply(error, trace_id)


def build_error_headers(error: WorkspaceError) -> dict[str, str]:
    """Return the headers that an error reply has in every format, such as Retry-After."""
    match error.kind:
        case Kind.UNAUTHENTICATED:
            return {"WWW-Authenticate": build_www_authenticate_header(error)}
        case Kind.UPGRADE_REQUIRED:
            return {"Upgrade": "websocket"}
        case Kind.UNKNOWN_ENCODING:
            supported = error.members.get("supported")
            return {"Accept-Encoding": ", ".join([*(supported if isinstance(supported, list) else []), "identity"])}
        case Kind.METHOD_NOT_ALLOWED:
            allow = error.members.get("allow")
            return {"Allow": ", ".join(allow) if isinstance(allow, list) else ""}
        case kind:
            default = DEFAULT_RETRY_AFTER if kind in {Kind.THROTTLED, Kind.UNAVAILABLE} else None
            seconds = error.members.get("retryAfter", default)
            return {} if seconds is None else {"Retry-After": str(seconds)}
