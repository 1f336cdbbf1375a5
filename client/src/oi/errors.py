"""Exceptions of the client; most of them correspond to an HTTP error status."""

from collections.abc import Mapping, Sequence
from typing import Any

REAUTHENTICATION_REQUIRED = "REAUTHENTICATION_REQUIRED"
"""Code of the error if an electronic signature needs a more recent sign-in (RFC 9470)."""
_UNREACHABLE = 0


class ApiError(Exception):
    """A request to the service failed.

    Attributes:
        status: HTTP status; 0 if the error has none, for instance because there was no reply.
        code: code of the error for programs, for instance ``WARM_QUERY_NOT_FOUND``; it never changes.
        detail: description for people.
        errors: invalid fields, each with ``field`` and ``message``.
        trace_id: id under which the service logged the request; empty if unknown.
        problem: the whole body of the reply (RFC 9457).
        retry_after: seconds to wait before another attempt; None if the service named no time.
        accepted: number of telemetry messages that the service accepted before the error, in the same call.
        attempted: number of telemetry messages in the request that failed; they follow the accepted messages.
        is_outcome_unknown: True if the service may have made the requested change, because the connection was lost
            during the request or the service failed.
    """

    accepted = 0
    attempted = 0
    is_outcome_unknown = False

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        problem: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(_format_message(detail, code))
        self.status = status
        self.code = code
        self.detail = detail
        self.problem: Mapping[str, Any] = problem or {}
        fields = self.problem.get("errors")
        self.errors: Sequence[Mapping[str, Any]] = (
            [each for each in fields if isinstance(each, Mapping)] if isinstance(fields, list) else ()
        )
        self.trace_id = str(self.problem.get("traceId") or "")
        self.retry_after = retry_after

    def prefix_detail(self, prefix: str) -> None:
        """Write a prefix, such as the names of the rows that were sent, before the description of the error."""
        self.detail = f"{prefix}: {self.detail}"
        self.args = (_format_message(self.detail, self.code),)


def _format_message(detail: str, code: str) -> str:
    return f"{detail} ({code})" if code else detail


class UnreachableError(ApiError):
    """The service cannot be reached, or sent no reply in time.

    If the connection was lost during a change, the change may have been made; the description then states this, and
    `is_outcome_unknown` is True.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(_UNREACHABLE, "", detail)


class InvalidRequestError(ApiError):
    """The request is invalid (400, 413, 415, 422, 428), or the service ignored invalid parameters.

    ``errors`` names the fields. The status is 0 if the request was not sent, because its URL would be invalid: it is
    longer than 65,536 characters, or contains control characters.
    """


class SignInError(ApiError):
    """The API key or token is missing, invalid, expired or revoked (401)."""


class ForbiddenError(ApiError):
    """The API key or token lacks an access right, or a rule forbids the action to this caller (403)."""


class NotFoundError(ApiError):
    """The item does not exist (404)."""


class ConflictError(ApiError):
    """The state of the item does not permit the action (409)."""


class PreconditionFailedError(ApiError):
    """The item was changed after the caller had read it, or exists already (412)."""


class TooManyRequestsError(ApiError):
    """The rate limit is exhausted (429)."""


class ServerError(ApiError):
    """The service failed (5xx)."""


class OverloadedError(ServerError):
    """The service or one of its stores is temporarily unavailable (503)."""


class WebhookError(ValueError):
    """A webhook request has no valid signature or no current timestamp, or the secret is malformed."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: SignInError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    429: TooManyRequestsError,
    503: OverloadedError,
}
_SERVER_ERRORS = 500


def build_api_error(
    status: int, problem: Mapping[str, Any], *, retry_after: float | None = None, fallback_detail: str = ""
) -> ApiError:
    """Build the exception that matches the status of an HTTP error reply.

    Args:
        status: HTTP status.
        problem: JSON body of the reply; empty if the body was not a JSON object.
        retry_after: value of the header ``Retry-After`` in seconds; None if it is missing or malformed.
        fallback_detail: description of the error if the body contains none.
    """
    general = ServerError if status >= _SERVER_ERRORS else InvalidRequestError
    kind = _BY_STATUS.get(status, general)
    detail = str(problem.get("detail") or problem.get("title") or fallback_detail or f"The service replied {status}.")
    return kind(status, str(problem.get("code") or ""), detail, problem=problem, retry_after=retry_after)
