"""Retries and error conversion for requests to the accounts of data stores."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure.cosmos_requests import CosmosUsage, is_transient, throttle_delay, was_never_sent
from shared.conditional_requests import precondition_failed_error
from shared.data_stores.document_rules import document_too_large
from shared.data_stores.errors import (
    data_plane_forbidden,
    document_not_found,
    outcome_unknown,
    table_not_found,
    throttled,
    unavailable,
)
from shared.errors import Kind, WorkspaceError
from shared.observability import logs

FAILURES: Final = (AzureError, OSError, TimeoutError)
ATTEMPTS: Final = 10
FIRST_BACKOFF_SECONDS: Final = 0.01
LONGEST_BACKOFF_SECONDS: Final = 1.0

_NO_CONTAINER: Final = 1003
_REGION_SUB_STATUSES: Final = frozenset({3, 1008})
"""Sub-statuses of 403 that concern regions and not access rights."""

_LOG = logs.get_logger("cosmos")


def http_status(error: Exception) -> int | None:
    """Return the HTTP status of a failed request; None if there was no reply."""
    status: int | None = getattr(error, "status_code", None)
    return status


_CERTAIN: Final[Mapping[int, Callable[[Exception], WorkspaceError]]] = {
    HTTPStatus.TOO_MANY_REQUESTS: lambda error: throttled(throttle_delay(error) or 0),
    HTTPStatus.FORBIDDEN: lambda error: (
        unavailable() if _read_sub_status(error) in _REGION_SUB_STATUSES else data_plane_forbidden()
    ),
    HTTPStatus.UNAUTHORIZED: lambda _: data_plane_forbidden(),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: lambda _: document_too_large(),
    HTTPStatus.NOT_FOUND: lambda error: (
        table_not_found() if _read_sub_status(error) == _NO_CONTAINER else document_not_found()
    ),
    HTTPStatus.PRECONDITION_FAILED: lambda _: precondition_failed_error(),
    HTTPStatus.BAD_REQUEST: lambda _: _invalid_document_error(),
}


def error_from_rejection(error: Exception) -> WorkspaceError | None:
    """Convert the failure of a request that had no effect to an error; None if it may have had an effect."""
    create_error = _CERTAIN.get(http_status(error) or 0)
    if create_error is not None:
        return create_error(error)
    return unavailable() if was_never_sent(error) else None


async def retry_read[T](read: Callable[[], Awaitable[T]], usage: CosmosUsage, *, retry_throttled: bool = False) -> T:
    """Send a read, with retries after transient failures, and return its result.

    Args:
        read: sends the request.
        usage: counters of requests.
        retry_throttled: retry when the account throttles; otherwise THROTTLED is raised.

    Raises:
        WorkspaceError: see :func:`error_from_rejection`; UNAVAILABLE after the last attempt.
    """
    failures = 0
    while True:
        try:
            return await read()
        except FAILURES as error:
            failures += 1
            delay = throttle_delay(error)
            rejection = error_from_rejection(error)
            if rejection is not None and not (retry_throttled and delay is not None) and not was_never_sent(error):
                raise rejection from error
            if failures >= ATTEMPTS or isinstance(error, ClientAuthenticationError) or not is_transient(error):
                _LOG.warning("a read failed", extra=logs.fields(status=http_status(error)), exc_info=error)
                raise unavailable() from error
            usage.read_retries += 1
            await backoff(failures, delay or 0)


class WriteRetries:
    """Retry policy of one write.

    Attributes:
        uncertain: whether an attempt may have been applied although it failed.
    """

    def __init__(self, usage: CosmosUsage) -> None:
        self.uncertain = False
        self._usage = usage
        self._failures = 0

    async def wait_after(self, error: Exception, *, conditional: bool) -> None:
        """Wait before the document is read again.

        Args:
            error: failure of the write.
            conditional: whether the caller's request has an If-Match condition.

        Raises:
            WorkspaceError: a retry cannot help; UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN`` after the last attempt, if the
                write may have been applied.
        """
        rejection = error_from_rejection(error)
        has_changed = rejection is not None and rejection.kind is Kind.PRECONDITION_FAILED
        if rejection is not None and not self.uncertain and (conditional or not has_changed):
            raise rejection from error
        if rejection is None:
            self.uncertain = True
            self._usage.unknown_outcomes += 1
        self._failures += 1
        if self._failures >= ATTEMPTS:
            _LOG.warning(
                "a write failed after all attempts", extra=logs.fields(status=http_status(error)), exc_info=error
            )
            raise (outcome_unknown() if self.uncertain else unavailable()) from error
        await backoff(self._failures, throttle_delay(error) or 0)


async def backoff(failures: int, least_seconds: float) -> None:
    """Wait for at least a number of seconds, plus an exponential backoff with full jitter."""
    longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0**failures)
    await asyncio.sleep(least_seconds + random.random() * longest)  # noqa: S311  jitter is no secret


def _read_sub_status(error: Exception) -> int:
    found: Any = getattr(error, "sub_status", None) if isinstance(error, CosmosHttpResponseError) else None
    return int(found or 0)


def _invalid_document_error() -> WorkspaceError:
    detail = "The account rejects the document: the partition key path of its container may differ from the catalog's."
    return WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail, errors=[{"field": "body", "message": detail}])
