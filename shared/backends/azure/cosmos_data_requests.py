"""Retries and error conversion for requests to the accounts of data stores."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from azure.core.exceptions import AzureError, ClientAuthenticationError

from shared.backends.azure.cosmos_requests import (
    RETRY_WITH,
    CosmosUsage,
    find_throttle_delay_seconds,
    get_sub_status_or_zero,
    is_stale_replica_error,
    is_transient_error,
    is_unsent_request_error,
)
from shared.backends.azure.cosmos_transport import REGION_SUB_STATUSES
from shared.conditional_requests import build_precondition_failed_error
from shared.data_stores.document_rules import build_document_too_large_error
from shared.data_stores.errors import (
    build_data_plane_forbidden_error,
    build_document_not_found_error,
    build_partition_full_error,
    build_store_unavailable_error,
    build_table_not_found_error,
    build_throttled_error,
    build_unique_key_conflict_error,
    build_write_outcome_unknown_error,
)
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.runtime import Runtime

FAILURES: Final = (AzureError, OSError, TimeoutError)
ATTEMPTS: Final = 10
FIRST_BACKOFF_SECONDS: Final = 0.01
LONGEST_BACKOFF_SECONDS: Final = 1.0

_NO_CONTAINER: Final = 1003
_PARTITION_FULL: Final = 1014
"""Cosmos DB sub-status of status 403: the documents of a partition key have reached their maximum size."""

_LOG = logs.get_logger("cosmos")


def find_http_status(error: Exception) -> int | None:
    """Return the HTTP status of a failed request; None if there was no reply."""
    status: int | None = getattr(error, "status_code", None)
    return status


_CERTAIN: Final[Mapping[int, Callable[[Exception], WorkspaceError]]] = {
    HTTPStatus.TOO_MANY_REQUESTS: lambda error: build_throttled_error(find_throttle_delay_seconds(error) or 0),
    HTTPStatus.FORBIDDEN: lambda error: _build_forbidden_error(get_sub_status_or_zero(error)),
    HTTPStatus.UNAUTHORIZED: lambda _: build_data_plane_forbidden_error(),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: lambda _: build_document_too_large_error(),
    HTTPStatus.NOT_FOUND: lambda error: (
        build_table_not_found_error()
        if get_sub_status_or_zero(error) == _NO_CONTAINER
        else build_document_not_found_error()
    ),
    HTTPStatus.CONFLICT: lambda _: build_unique_key_conflict_error(),
    HTTPStatus.PRECONDITION_FAILED: lambda _: build_precondition_failed_error(),
    HTTPStatus.BAD_REQUEST: lambda _: _build_invalid_document_error(),
}


def build_error_if_nothing_changed(error: Exception) -> WorkspaceError | None:
    """Return the error to raise for a failed request that certainly changed nothing in the account.

    Return None if the request may have changed something. Status 409 is converted to the error for a violated unique
    key. ``CosmosDocumentStore.create`` handles 409 itself, because an existing document with the id also causes it.
    """
    if is_stale_replica_error(error):
        return None
    create_error = _CERTAIN.get(find_http_status(error) or 0)
    if create_error is not None:
        return create_error(error)
    return build_store_unavailable_error() if is_unsent_request_error(error) else None


async def retry_document_read[T](
    read: Callable[[], Awaitable[T]], usage: CosmosUsage, runtime: Runtime, *, retry_throttled: bool = False
) -> T:
    """Send a read request, with retries after transient failures, and return its result.

    Args:
        read: sends the request once and returns its result; called again for each retry.
        usage: counters of requests.
        runtime: clock, randomness and threads.
        retry_throttled: True to retry a throttled request; False to raise THROTTLED.

    Raises:
        WorkspaceError: see :func:`build_error_if_nothing_changed`; UNAVAILABLE after the last attempt.
    """
    failures = 0
    while True:
        try:
            return await read()
        except FAILURES as error:
            failures += 1
            delay = find_throttle_delay_seconds(error)
            rejection = build_error_if_nothing_changed(error)
            if (
                rejection is not None
                and not (retry_throttled and delay is not None)
                and not is_unsent_request_error(error)
            ):
                raise rejection from error
            if failures >= ATTEMPTS or isinstance(error, ClientAuthenticationError) or not is_transient_error(error):
                _LOG.warning("a read failed", extra=logs.fields(status=find_http_status(error)), exc_info=error)
                raise build_store_unavailable_error() from error
            usage.read_retries += 1
            await wait_with_backoff(failures, delay or 0, runtime)


class WriteRetries:
    """Retry policy of one write of a document.

    Attributes:
        uncertain: whether an attempt may have been applied although it failed.
    """

    def __init__(self, usage: CosmosUsage, runtime: Runtime) -> None:
        self.uncertain = False
        self._usage = usage
        self._runtime = runtime
        self._failures = 0

    async def wait_after_failure(self, error: Exception, *, has_if_match: bool) -> None:
        """Wait after a failed write; afterwards, the caller reads the document again and retries.

        Args:
            error: failure of the write.
            has_if_match: whether the caller's request has an If-Match condition.

        Raises:
            WorkspaceError: a retry cannot help; UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN`` after the last attempt, if the
                write may have been applied.
        """
        rejection = build_error_if_nothing_changed(error)
        has_changed = rejection is not None and rejection.kind is Kind.PRECONDITION_FAILED
        if rejection is not None and not self.uncertain and (has_if_match or not has_changed):
            raise rejection from error
        if rejection is None and not _is_retry_requested(error):
            self.uncertain = True
            self._usage.unknown_outcomes += 1
        self._failures += 1
        if self._failures >= ATTEMPTS:
            _LOG.warning(
                "a write failed after all attempts", extra=logs.fields(status=find_http_status(error)), exc_info=error
            )
            raise (
                build_write_outcome_unknown_error() if self.uncertain else build_store_unavailable_error()
            ) from error
        await wait_with_backoff(self._failures, find_throttle_delay_seconds(error) or 0, self._runtime)


async def wait_with_backoff(failure_count: int, min_seconds: float, runtime: Runtime) -> None:
    """Wait for ``min_seconds`` plus a random time; the maximum of the random time doubles with each failure."""
    longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0**failure_count)
    await runtime.sleep(min_seconds + runtime.uniform(0, longest))


def _is_retry_requested(error: Exception) -> bool:
    """Return whether the account did not apply a write and requests that the same write is sent again."""
    return is_stale_replica_error(error) or find_http_status(error) == RETRY_WITH


def _build_forbidden_error(sub_status: int) -> WorkspaceError:
    if sub_status in REGION_SUB_STATUSES:
        return build_store_unavailable_error()
    return build_partition_full_error() if sub_status == _PARTITION_FULL else build_data_plane_forbidden_error()


def _build_invalid_document_error() -> WorkspaceError:
    detail = "The account rejects the document; the container's partition key path may differ from the declared path."
    return WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail, errors=[{"field": "body", "message": detail}])
