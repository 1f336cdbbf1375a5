"""What failures of azure-cosmos mean for a chain: nothing written, not known, or try again."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from aiohttp import ClientConnectorError
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from shared.backends.azure.cosmos_usage import CosmosUsage
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.ports import OutcomeUnknownError, TipMovedError

UNAVAILABLE: Final = "PROVENANCE_UNAVAILABLE"
READ_ATTEMPTS: Final = 10
READ_PATIENCE_SECONDS: Final = 30.0
"""After this, a read that fails is not sent again: replies that do not come at all cost 10 s each."""
FIRST_BACKOFF_SECONDS: Final = 0.01
LONGEST_BACKOFF_SECONDS: Final = 2.0

_RETRY_WITH: Final = 449
_MOVED: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED})
_REFUSED: Final = frozenset(
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
_TRANSIENT: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.GONE, HTTPStatus.TOO_MANY_REQUESTS, _RETRY_WITH})
_LOG = logs.logger("cosmos")


def unavailable(reason: str = "does not answer at the moment; try again") -> WorkspaceError:
    """Return the error that says that nothing was written."""
    return WorkspaceError(Kind.UNAVAILABLE, UNAVAILABLE, f"The audit log {reason}.")


def throttled_seconds(error: Exception) -> float | None:
    """Return how long a batch that certainly was not written is to wait before it goes out again; None for others."""
    if isinstance(error, CosmosBatchOperationError):
        if error.status_code not in (HTTPStatus.TOO_MANY_REQUESTS, _RETRY_WITH):
            return None
        answers = error.operation_responses or []
        return max((float(answer.get("retryAfterMilliseconds") or 0) for answer in answers), default=0) / 1000
    if isinstance(error, CosmosHttpResponseError) and error.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return _asked_seconds(error)
    return None


def of_batch(error: Exception, usage: CosmosUsage) -> Exception:
    """Return what a failed batch means: ``TipMovedError``, ``OutcomeUnknownError``, or UNAVAILABLE: nothing written.

    It must have been sent at most once: otherwise a conflict may come from its own first try.
    """
    status = getattr(error, "status_code", None)
    usage.charged(getattr(error, "headers", None) or {})
    atomic = isinstance(error, CosmosBatchOperationError)
    # A head that is gone, too, is another one than the writer knows; a missing container is told apart by the 404
    # of the request as a whole.
    if status in _MOVED or (atomic and status == HTTPStatus.NOT_FOUND):
        usage.conflicts += 1
        return TipMovedError()
    if atomic or status in _REFUSED or never_sent(error):
        _LOG.warning("a batch was refused", extra=logs.fields(status=status, error=type(error).__name__))
        return unavailable()
    usage.unknown_outcomes += 1
    return OutcomeUnknownError(f"{type(error).__name__} {status or ''}".strip())


class ReadRetries:
    """Decides whether a failed read is sent again, with full-jitter backoff.

    Args:
        usage: counts them.
    """

    def __init__(self, usage: CosmosUsage) -> None:
        self._usage = usage
        self._failures = 0
        self._since = time.monotonic()

    def progressed(self) -> None:
        """Forget the failures: something was read."""
        self._failures = 0
        self._since = time.monotonic()

    async def wait(self, error: Exception) -> None:
        """Wait before the next try.

        Raises:
            WorkspaceError: UNAVAILABLE; another try is pointless, or there were enough.
        """
        self._failures += 1
        late = time.monotonic() - self._since > READ_PATIENCE_SECONDS
        if not transient(error) or late or self._failures >= READ_ATTEMPTS:
            _LOG.warning("a read failed", extra=logs.fields(status=getattr(error, "status_code", None)), exc_info=error)
            raise unavailable() from error
        self._usage.read_retries += 1
        longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0**self._failures)
        # Jitter is no secret.
        await asyncio.sleep(_asked_seconds(error) + random.random() * longest)  # noqa: S311


async def reading[T](read: Callable[[], Awaitable[T]], usage: CosmosUsage) -> T:
    """Return what a read gives, sent again while that may help.

    Raises:
        WorkspaceError: UNAVAILABLE.
        CosmosHttpResponseError: 404; it is an answer.
    """
    retries = ReadRetries(usage)
    while True:
        try:
            return await read()
        except CosmosHttpResponseError as error:
            if error.status_code == HTTPStatus.NOT_FOUND:
                raise
            await retries.wait(error)
        except (AzureError, OSError, TimeoutError) as error:
            await retries.wait(error)


def transient(error: Exception) -> bool:
    """Say whether another try may succeed."""
    if isinstance(error, ClientAuthenticationError):
        return False
    status: Any = getattr(error, "status_code", None)
    return status is None or status in _TRANSIENT or status >= _FIRST_SERVER_ERROR


def never_sent(error: Exception) -> bool:
    """Say whether no connection was had, or no token: both come before the request."""
    return isinstance(error, ClientAuthenticationError) or isinstance(error.__cause__, ClientConnectorError)


def _asked_seconds(error: Exception) -> float:
    headers = getattr(error, "headers", None) or {}
    return float(headers.get("x-ms-retry-after-ms") or 0) / 1000
