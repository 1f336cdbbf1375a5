"""Requests to Cosmos DB: counters, retries of reads, transactional batches, and conversion of errors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aiohttp import ClientConnectorError
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.ports import OutcomeUnknownError, TipMovedError
from shared.runtime import Runtime

UNAVAILABLE: Final = "PROVENANCE_UNAVAILABLE"
READ_ATTEMPTS: Final = 10
READ_RETRY_SECONDS: Final = 30.0
"""Time in seconds after which a failed read is not retried; waiting for a lost reply takes 10 s of this time."""
FIRST_BACKOFF_SECONDS: Final = 0.01
LONGEST_BACKOFF_SECONDS: Final = 2.0

RETRY_WITH: Final = 449
"""HTTP status of Cosmos DB: a concurrent change prevented a write, which can be sent again."""
_MOVED: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED})
_REJECTED: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
_FIRST_SERVER_ERROR: Final = 500
_TRANSIENT: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.GONE, HTTPStatus.TOO_MANY_REQUESTS, RETRY_WITH})
_SESSION_NOT_AVAILABLE: Final = 1002
"""Cosmos DB sub-status of status 404: the replica has not yet received what this client wrote or read before."""
_LEAST_THROTTLE_SECONDS: Final = 0.005
_LOG = logs.get_logger("cosmos")

type Operation = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Operation of a transactional batch as the SDK expects it: kind, arguments, options."""

type BatchResults = Sequence[Mapping[str, Any]]
"""Result of each operation of a transactional batch, as the SDK returns it."""


@dataclass(slots=True)
class CosmosUsage:
    """Counters of requests to Cosmos DB since the adapter was created.

    Attributes:
        requests: requests with a successful reply.
        request_units: request units that Cosmos DB charged for these requests, and for failed requests.
        read_retries: reads that were sent again.
        throttled: batches rejected with 429 and sent again.
        conflicts: batches rejected because a condition was false, for instance after another writer's append.
        unknown_outcomes: batches whose outcome Cosmos DB did not report.
    """

    requests: int = 0
    request_units: float = 0.0
    read_retries: int = 0
    throttled: int = 0
    conflicts: int = 0
    unknown_outcomes: int = 0

    def record_reply(self, headers: Mapping[str, Any], _body: object = None) -> None:
        """Count a reply of Cosmos DB; the SDK calls this method as its ``response_hook``."""
        self.requests += 1
        self.add_request_charge(headers)

    def add_request_charge(self, headers: Mapping[str, Any]) -> None:
        """Add the request units that the headers of a reply state, if any."""
        self.request_units += float(headers.get("x-ms-request-charge") or 0)


class ReadRetries:
    """Retry policy of one read: random pauses, whose maximum length doubles with each failure.

    Args:
        usage: counters of requests.
        runtime: clock, randomness and threads.
    """

    def __init__(self, usage: CosmosUsage, runtime: Runtime) -> None:
        self._usage = usage
        self._runtime = runtime
        self._failures = 0
        self._since = runtime.monotonic()

    def reset(self) -> None:
        """Reset the number of failures to 0 after progress, for instance after the next item of a query has arrived."""
        self._failures = 0
        self._since = self._runtime.monotonic()

    async def wait_after_failure(self, error: Exception) -> None:
        """Wait after a failed read, before the next attempt.

        Raises:
            WorkspaceError: UNAVAILABLE if a retry cannot help or all attempts are used up.
        """
        self._failures += 1
        is_late = self._runtime.monotonic() - self._since > READ_RETRY_SECONDS
        if not is_transient_error(error) or is_late or self._failures >= READ_ATTEMPTS:
            _LOG.warning("a read failed", extra=logs.fields(status=getattr(error, "status_code", None)), exc_info=error)
            raise build_unavailable_error() from error
        self._usage.read_retries += 1
        longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0**self._failures)
        await self._runtime.sleep(_read_retry_after_seconds(error) + self._runtime.uniform(0, longest))


async def retry_read[T](read: Callable[[], Awaitable[T]], usage: CosmosUsage, runtime: Runtime) -> T:
    """Send a read request, with retries after transient failures, and return its result.

    Raises:
        WorkspaceError: UNAVAILABLE if no attempt succeeds.
        CosmosHttpResponseError: status 404, which is a valid reply.
    """
    retries = ReadRetries(usage, runtime)
    while True:
        try:
            return await read()
        except CosmosHttpResponseError as error:
            if error.status_code == HTTPStatus.NOT_FOUND and not is_stale_replica_error(error):
                raise
            await retries.wait_after_failure(error)
        except (AzureError, OSError, TimeoutError) as error:
            await retries.wait_after_failure(error)


async def send_batch(
    container: ContainerProxy,
    operations: Sequence[Operation],
    partition_key: str,
    usage: CosmosUsage,
    monotonic_deadline: float,
    *,
    runtime: Runtime,
) -> BatchResults:
    """Send a transactional batch and return its results.

    The batch is sent again only after a rejection that guarantees that nothing was written.

    Args:
        container: container of the changed items.
        operations: up to 100 operations on one logical partition.
        partition_key: partition key of the items.
        usage: counters of requests.
        monotonic_deadline: time on the monotonic clock after which a throttled batch is not sent again.
        runtime: clock, randomness and threads.

    Raises:
        TipMovedError: a condition does not hold, or an item exists or is missing; nothing was written.
        OutcomeUnknownError: the batch may have been written, or may still be.
        WorkspaceError: UNAVAILABLE; nothing was written.
    """
    while True:
        # The SDK removes the conditions from its arguments; a retry with the same ones would be unconditional.
        copies = [(kind, arguments, dict(options)) for kind, arguments, options in operations]
        try:
            return await container.execute_item_batch(
                copies, partition_key, no_response=True, response_hook=usage.record_reply
            )
        except (AzureError, OSError, TimeoutError) as error:
            delay = find_throttle_delay_seconds(error)
            if delay is None or runtime.monotonic() + delay > monotonic_deadline:
                raise error_from_failed_batch(error, usage) from error
            usage.throttled += 1
            usage.add_request_charge(getattr(error, "headers", None) or {})
            await runtime.sleep(max(delay, _LEAST_THROTTLE_SECONDS))


def error_from_failed_batch(error: Exception, usage: CosmosUsage) -> Exception:
    """Return the error for a failed batch: TipMovedError (conflict), OutcomeUnknownError, or UNAVAILABLE (not written).

    The batch must have been sent only once. If it was sent twice, the first attempt may have caused the conflict.
    """
    status = getattr(error, "status_code", None)
    usage.add_request_charge(getattr(error, "headers", None) or {})
    is_batch_result = isinstance(error, CosmosBatchOperationError)
    # A missing head also means that the tip has changed. A missing container is a 404 of the request as a whole.
    if status in _MOVED or (is_batch_result and status == HTTPStatus.NOT_FOUND):
        usage.conflicts += 1
        return TipMovedError()
    if is_batch_result or status in _REJECTED or is_unsent_request_error(error):
        _LOG.warning("a batch was rejected", extra=logs.fields(status=status, error=type(error).__name__))
        return build_unavailable_error()
    usage.unknown_outcomes += 1
    failure = f"{type(error).__name__} {status or ''}".strip()
    return OutcomeUnknownError(f"the batch failed with {failure}; it is unknown whether it was written")


def find_throttle_delay_seconds(error: Exception) -> float | None:
    """Return the seconds to wait before a throttled request is sent again; None if the request was not throttled."""
    if isinstance(error, CosmosBatchOperationError):
        if error.status_code not in (HTTPStatus.TOO_MANY_REQUESTS, RETRY_WITH):
            return None
        replies = error.operation_responses or []
        return max((float(reply.get("retryAfterMilliseconds") or 0) for reply in replies), default=0) / 1000
    if isinstance(error, CosmosHttpResponseError) and error.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return _read_retry_after_seconds(error)
    return None


def is_transient_error(error: Exception) -> bool:
    """Return whether a failure of a request is transient, so that another attempt can succeed."""
    if isinstance(error, ClientAuthenticationError):
        return False
    status: Any = getattr(error, "status_code", None)
    return status is None or status in _TRANSIENT or status >= _FIRST_SERVER_ERROR or is_stale_replica_error(error)


def is_stale_replica_error(error: Exception) -> bool:
    """Return whether a 404 comes from a replica that lacks earlier writes, so that the item or container may exist.

    The SDK does not repeat such a request without endpoint discovery.
    """
    is_missing = isinstance(error, CosmosHttpResponseError) and error.status_code == HTTPStatus.NOT_FOUND
    return is_missing and get_sub_status_or_zero(error) == _SESSION_NOT_AVAILABLE


def get_sub_status_or_zero(error: Exception) -> int:
    """Return the Cosmos DB sub-status of a failed request; 0 if there is none."""
    found: Any = getattr(error, "sub_status", None) if isinstance(error, CosmosHttpResponseError) else None
    return int(found or 0)


def is_unsent_request_error(error: Exception) -> bool:
    """Return whether the request was not sent, because there was no connection or no token."""
    return isinstance(error, ClientAuthenticationError) or isinstance(error.__cause__, ClientConnectorError)


def build_unavailable_error(detail: str = "The audit log does not respond; retry later.") -> WorkspaceError:
    """Build the UNAVAILABLE error of a Cosmos DB request that failed and wrote nothing."""
    return WorkspaceError(Kind.UNAVAILABLE, UNAVAILABLE, detail)


def _read_retry_after_seconds(error: Exception) -> float:
    headers = getattr(error, "headers", None) or {}
    return float(headers.get("x-ms-retry-after-ms") or 0) / 1000
