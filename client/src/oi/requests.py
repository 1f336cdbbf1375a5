"""Rules for HTTP requests: headers, error replies, which requests are repeated, and the pauses between attempts."""

import random
import ssl
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from oi.addresses import describe_redirect, format_url_without_secrets
from oi.errors import ApiError, InvalidRequestError, NotFoundError, UnreachableError, build_api_error
from oi.instants import parse_retry_after_seconds

MAX_ATTEMPTS = 5
"""Default of the maximum number of attempts of one request."""
MAX_WAIT_SECONDS = 60.0
"""Maximum pause between two attempts; a longer ``Retry-After`` ends the attempts."""
SLOW_REPLY_SECONDS = 240.0
"""Time to wait for the reply to a query or a verification; the service replies within 230 s."""
_REPEATED = frozenset({429, 503})
_BAD_GATEWAY = 502
_PROXY_ERRORS = frozenset({_BAD_GATEWAY, 503, 504})
_ROUTE_NOT_FOUND = "ROUTE_NOT_FOUND"
_KEY_IN_USE, _KEY_REUSED = "IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_REUSED"
_READING = frozenset({"GET", "HEAD"})
_CERTAIN = frozenset({413, 415, 428})
"""HTTP statuses of errors that depend only on the request itself, so that every attempt gets the same reply."""
_BAD_REQUEST, _SERVER_ERRORS = 400, 500
_UNCERTAIN = frozenset({500, 502, 503, 504})
"""HTTP statuses of errors that can occur after the service made the requested change."""
_WITHOUT_EFFECT = frozenset({"OVERLOADED", "RATE_LIMITS_UNAVAILABLE", "DATA_STORE_UNAVAILABLE"})
"""Codes of errors with an uncertain status that the service reports only if it changed nothing."""
_UNRECOGNISED = frozenset({401, 403, 429})
"""HTTP statuses of errors that the service reports before it compares the Idempotency-Key with earlier requests."""
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_REDIRECTS, _ERRORS = 300, 400


def quote_path_segment(name: str) -> str:
    """Percent-encode a name or id for one segment of a URL path.

    Raises:
        NotFoundError: the name is empty, ``.`` or ``..``. The HTTP library removes such a segment from the path, so the
            request would have another effect, for instance read a list instead of one of its items.
    """
    if name in {"", ".", ".."}:
        raise NotFoundError(404, "", f"The name or id {name!r} must not be empty, `.` or `..`.")
    return quote(name, safe="")


def build_request_headers(token: str, extra_headers: Mapping[str, str] | None, *, is_append: bool) -> dict[str, str]:
    """Build the HTTP headers of a request.

    Args:
        token: JWT or API key; empty for none.
        extra_headers: further headers of the request.
        is_append: True if a repetition would create something twice; the request then gets an ``Idempotency-Key``, by
            which the service recognises a repetition.
    """
    built = dict(extra_headers or {})
    if token:
        built["Authorization"] = f"Bearer {token}"
    if is_append:
        built.setdefault("Idempotency-Key", str(uuid.uuid4()))
    return built


def build_if_match_header(etag: str | None) -> dict[str, str]:
    """Build the header ``If-Match``, with which a change is made only if the stored item has this ETag.

    Return no header if the ETag is None.
    """
    return {} if etag is None else {"If-Match": etag}


def build_proxy_error(cause: Exception) -> UnreachableError:
    """Build the error if the HTTP or WebSocket library cannot use the proxy that the environment variables name.

    Args:
        cause: error of the library; an ``ImportError`` if a package for SOCKS proxies is missing.
    """
    if isinstance(cause, ImportError):
        return UnreachableError("The proxy in the environment variables is a SOCKS proxy; install oi-client[socks].")
    # The message of the library contains the address of the proxy, which may contain a password.
    return UnreachableError("The proxy URL in the environment variables is invalid")


def build_signed_link_request(client: httpx.AsyncClient | httpx.Client, signed_url: str) -> httpx.Request:
    """Build the request for a file by a signed link; the log of the HTTP library does not contain the signature.

    Args:
        client: HTTP client that will send the request.
        signed_url: signed link, whose query is secret.
    """
    request = client.build_request("GET", signed_url)
    request.url = _SignedLink(request.url)
    return request


class _SignedLink(httpx.URL):
    """Signed link whose text has no query, because the HTTP library writes the text of each URL to its log."""

    def __str__(self) -> str:
        return format_url_without_secrets(super().__str__())


def build_signature_property(meaning: str | None, statement: str | None) -> dict[str, Any]:
    """Build the JSON property ``signature`` of a decision's request body; empty if the decision is not signed.

    Args:
        meaning: meaning of the electronic signature, for instance ``approval``; None for a decision without signature.
        statement: text that is stored with the signature.

    Raises:
        ValueError: there is a statement, but no meaning.
    """
    if meaning is None:
        if statement is not None:
            raise ValueError("A signature statement requires a meaning; pass `meaning`, too.")
        return {}
    return {"signature": {"meaning": meaning, **({} if statement is None else {"statement": statement})}}


def is_safe_to_repeat(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request can be sent again although the service may have processed the first attempt."""
    return method in {*_READING, "PUT", "DELETE"} or "Idempotency-Key" in headers


def can_method_change_data(method: str) -> bool:
    """Return whether a request with this HTTP method can change data of the service."""
    return method not in _READING


def is_outcome_uncertain(error: ApiError) -> bool:
    """Return whether the service may have made the requested change before it replied with this error."""
    return error.status in _UNCERTAIN and error.code not in _WITHOUT_EFFECT


def is_service_unreachable(error: ApiError) -> bool:
    """Return whether the service itself sent no reply: no reply arrived, or a proxy in front of the service sent it.

    An error reply of the service has a code; an error reply of a proxy has none.
    """
    return isinstance(error, UnreachableError) or (error.status in _PROXY_ERRORS and not error.code)


def has_failed_before_sending(cause: httpx.RequestError) -> bool:
    """Return whether a request failed before it was sent, so that the service cannot have received it."""
    return isinstance(cause, _UNSENT)


def has_invalid_certificate(error: BaseException) -> bool:
    """Return whether an invalid TLS certificate of the service caused an error; a repetition cannot succeed."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        # httpcore, which httpx uses, raises errors without naming their cause. The context of another error can be an
        # error that the caller handles while it uses the client.
        is_context_cause = type(cause).__module__.partition(".")[0] == "httpcore"
        cause = cause.__cause__ or (cause.__context__ if is_context_cause else None)
    return cause is not None


def find_error_of_uncertain_change(method: str, headers: Mapping[str, str], last_error: ApiError) -> ApiError | None:
    """Return the error to raise for a failed request of which one attempt may have made the requested change.

    The caller calls this if the reply to an attempt was lost, or was an error that can occur after the change. Then the
    last error is not always the outcome. For example, if the ETag no longer matches, either an earlier attempt or
    another caller has changed the item.

    Args:
        method: HTTP method of the request.
        headers: headers of the request.
        last_error: error of the last attempt.

    Returns:
        None if the request was a deletion without ETag and the item no longer exists: the deletion has succeeded.
        ``last_error`` if it proves that no attempt made the change, or if it leaves the outcome open, such as 500.
        Otherwise an `UnreachableError` that states that the outcome is unknown. The attribute `is_outcome_unknown` of
        the returned error is False only if no attempt made the change.
    """
    if _is_proof_of_no_change(method, last_error):
        last_error.is_outcome_unknown = False
        return last_error
    is_missing = isinstance(last_error, NotFoundError) and last_error.code not in {"", _ROUTE_NOT_FOUND}
    # With a condition, the first attempt may have been refused, and another caller may have deleted the item.
    if method == "DELETE" and is_missing and "If-Match" not in httpx.Headers(headers):
        return None
    outcome = (
        "The change may have been made; read the item before you repeat the change."
        if method in {"PUT", "DELETE"}
        # A POST can also be a query.
        else "If the request changes data, the change may have been made."
    )
    if is_outcome_uncertain(last_error):
        last_error.add_note(outcome)
        return last_error
    unknown = UnreachableError(
        f"The outcome of a {method} request is unknown. {outcome} Error of the last attempt: {last_error}"
    )
    unknown.is_outcome_unknown = True
    return unknown


def _is_proof_of_no_change(method: str, last_error: ApiError) -> bool:
    """Return whether an error of the last attempt shows that no attempt made the change."""
    if method in {"PUT", "DELETE"}:
        # The body of a PUT can contain properties that the service sets, such as `etag`. After the change they are not
        # those of the stored item, so the repetition gets 400.
        return last_error.status in _CERTAIN or (method == "DELETE" and last_error.status == _BAD_REQUEST)
    if last_error.code in {_KEY_IN_USE, _KEY_REUSED}:
        # The service has received an earlier attempt, whose outcome these errors do not tell.
        return False
    # The client repeats a POST only if the service, whose errors have codes, recognises the repetition.
    return bool(last_error.code) and last_error.status not in _UNRECOGNISED and last_error.status < _SERVER_ERRORS


def find_error(response: httpx.Response) -> ApiError | None:
    """Return the exception for an HTTP error reply; None if the reply reports success."""
    if response.status_code < _REDIRECTS:
        return None
    if is_redirect(response.status_code):
        return build_redirect_error(response.status_code, str(response.url), response.headers.get("location", ""))
    problem: Any = {}
    if "json" in response.headers.get("content-type", ""):
        try:
            problem = response.json()
        except (ValueError, RecursionError):
            problem = {}
    return build_api_error(
        response.status_code,
        problem if isinstance(problem, dict) else {},
        retry_after=parse_retry_after_seconds(
            response.headers.get("retry-after", ""), response.headers.get("date", "")
        ),
        fallback_detail=f"The service replied {response.status_code} {response.reason_phrase}.",
    )


def is_redirect(status: int) -> bool:
    """Return whether an HTTP status is that of a redirect."""
    return _REDIRECTS <= status < _ERRORS


def build_redirect_error(status: int, url: str, location: str) -> ApiError:
    """Build the error for a redirect, which is not followed: no other address must get the credential.

    Args:
        status: HTTP status of the reply.
        url: address of the request.
        location: value of the header ``Location``; empty if it is missing.
    """
    return build_api_error(status, {}, fallback_detail=describe_redirect(url, location))


def parse_json_reply(response: httpx.Response) -> Any:
    """Return the JSON value of a reply.

    Raises:
        ApiError: the reply is not JSON, most often because the address belongs to another server.
    """
    try:
        return response.json()
    except (ValueError, RecursionError):
        raise _build_foreign_reply_error(response, "JSON") from None


def require_no_content(response: httpx.Response) -> None:
    """Check that the service has confirmed a deletion, with a reply 204.

    Raises:
        ApiError: another server replied, such as a proxy.
    """
    if response.status_code != httpx.codes.NO_CONTENT:
        raise _build_foreign_reply_error(response, "204 No Content")


def require_no_html_page(response: httpx.Response) -> None:
    """Check that a reply is not an HTML page, which another server such as a proxy would send instead of the service.

    Call this for a reply whose body is not used, and so is not checked.

    Raises:
        ApiError: another server replied, such as a proxy.
    """
    if _get_media_type(response) == "text/html":
        raise _build_foreign_reply_error(response, "a confirmation")


def get_yaml_reply(response: httpx.Response) -> str:
    """Return the YAML text of a reply.

    Raises:
        ApiError: the reply is not YAML, most often because the address belongs to another server.
    """
    require_media_type(response, "application/yaml")
    return response.text


def require_media_type(response: httpx.Response, media_type: str) -> None:
    """Check that a reply has the requested media type; parameters such as ``charset`` are ignored.

    Raises:
        ApiError: the reply has another media type, most often because the address belongs to another server.
    """
    if _get_media_type(response) != media_type:
        raise _build_foreign_reply_error(response, media_type)


def get_audit_header(response: httpx.Response, name: str) -> str:
    """Return a header that each reply with audit records has.

    Raises:
        ApiError: the header is missing, most often because the address belongs to another server.
    """
    value = response.headers.get(name)
    if value is None:
        raise _build_foreign_reply_error(response, "audit records")
    return str(value)


def _get_media_type(response: httpx.Response) -> str:
    """Return the media type of a reply without parameters such as ``charset``; empty if it has none."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _build_foreign_reply_error(response: httpx.Response, expected: str) -> ApiError:
    """Build the error for a successful reply of another server, such as a proxy.

    Args:
        response: the reply.
        expected: content with which the service replies, in words for the error message, such as ``JSON``.
    """
    url = format_url_without_secrets(str(response.url))
    detail = f"{url} did not reply with {expected}. Is it the address of a workspace?"
    return ApiError(response.status_code, "", detail)


def require_no_ignored_parameters(response: httpx.Response) -> None:
    """Check that the service has used all query parameters of a request for audit records.

    The audit log ignores a parameter with an invalid value, such as a date that does not exist, and names it in a
    header of the reply. The reply then contains other records than the caller requested.

    Raises:
        InvalidRequestError: the service has ignored a parameter; ``errors`` names it.
    """
    if ignored := response.headers.get("x-provenance-ignored"):
        rule = "the value is invalid or empty, or the service does not know the parameter"
        errors = [{"field": name, "message": rule} for name in ignored.split(", ")]
        detail = "The service ignored parameters of the request, and returned other records than requested."
        raise InvalidRequestError(response.status_code, "", detail, problem={"errors": errors})


def require_messages_accepted(response: httpx.Response, message_count: int) -> None:
    """Check that the service has accepted all ``message_count`` telemetry messages of a request.

    A proxy before the service can reply with a success of its own, such as a page about maintenance.

    Raises:
        ApiError: the reply does not confirm the messages.
    """
    body = parse_json_reply(response)
    if (
        response.status_code != httpx.codes.ACCEPTED
        or not isinstance(body, dict)
        or body.get("accepted") != message_count
    ):
        detail = (
            f"The reply {response.status_code} does not confirm {message_count:,} messages. "
            "Is another server answering?"
        )
        raise ApiError(response.status_code, "", detail)


def find_retry_delay_seconds(error: ApiError, attempts_so_far: int, max_attempts: int = MAX_ATTEMPTS) -> float | None:
    """Return the seconds to wait before the next attempt; None if the request must not be repeated.

    Args:
        error: error of the last attempt.
        attempts_so_far: number of attempts so far.
        max_attempts: maximum number of attempts of the request.
    """
    # A 504 is not repeated: the service may still work on the request, for instance on a query.
    is_bad_gateway = error.status == _BAD_GATEWAY and not error.code
    is_temporary = not error.status or error.status in _REPEATED or error.code == _KEY_IN_USE or is_bad_gateway
    if attempts_so_far >= max_attempts or not is_temporary:
        return None
    if error.retry_after is None:
        return float(min(MAX_WAIT_SECONDS, 2.0 ** (attempts_so_far - 1) * random.uniform(0.5, 1.0)))
    return error.retry_after if error.retry_after <= MAX_WAIT_SECONDS else None
