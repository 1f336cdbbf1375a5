"""What failures of azure-cosmos mean for one document: refused, not known, or try again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos.exceptions import CosmosHttpResponseError

from shared.backends.azure.cosmos_requests import CosmosUsage, is_transient, throttle_delay, was_never_sent
from shared.conditional_requests import precondition_failed
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
_OF_REGIONS: Final = frozenset({3, 1008})
"""Sub-statuses of 403 that speak of regions, not of rights."""

_LOG = logs.get_logger("cosmos")


def http_status(error: Exception) -> int | None:
    """Return the HTTP status of a failure, None where there was no reply."""
    status: int | None = getattr(error, "status_code", None)
    return status


_CERTAIN: Final[Mapping[int, Callable[[Exception], WorkspaceError]]] = {
    HTTPStatus.TOO_MANY_REQUESTS: lambda error: throttled(throttle_delay(error) or 0),
    HTTPStatus.FORBIDDEN: lambda error: unavailable() if _sub_status(error) in _OF_REGIONS else data_plane_forbidden(),
    HTTPStatus.UNAUTHORIZED: lambda _: data_plane_forbidden(),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: lambda _: document_too_large(),
    HTTPStatus.NOT_FOUND: lambda error: (
        table_not_found() if _sub_status(error) == _NO_CONTAINER else document_not_found()
    ),
    HTTPStatus.PRECONDITION_FAILED: lambda _: precondition_failed(),
    HTTPStatus.BAD_REQUEST: lambda _: _not_taken(),
}


def refusal(error: Exception) -> WorkspaceError | None:
    """Return what a failure certainly means, nothing having been done; None where that is not known."""
    told = _CERTAIN.get(http_status(error) or 0)
    if told is not None:
        return told(error)
    return unavailable() if was_never_sent(error) else None


async def retry_read[T](read: Callable[[], Awaitable[T]], usage: CosmosUsage, *, patient: bool = False) -> T:
    """Return what a read gives, sent again while that may help.

    Args:
        read: sends it.
        usage: counts.
        patient: wait where the account asks for a pause, rather than tell the caller.

    Raises:
        WorkspaceError: as :func:`refusal`; UNAVAILABLE after enough tries.
    """
    failures = 0
    while True:
        try:
            return await read()
        except FAILURES as error:
            failures += 1
            pause = throttle_delay(error)
            refused = refusal(error)
            if refused is not None and not (patient and pause is not None) and not was_never_sent(error):
                raise refused from error
            if failures >= ATTEMPTS or isinstance(error, ClientAuthenticationError) or not is_transient(error):
                _LOG.warning("a read failed", extra=logs.fields(status=http_status(error)), exc_info=error)
                raise unavailable() from error
            usage.read_retries += 1
            await backoff(failures, pause or 0)


class WriteRetries:
    """Decides what follows a failed write.

    Attributes:
        uncertain: whether the outcome of a try is not known.
    """

    def __init__(self, usage: CosmosUsage) -> None:
        self.uncertain = False
        self._usage = usage
        self._failures = 0

    async def after(self, error: Exception, *, conditional: bool) -> None:
        """Wait before the next look at the document.

        Args:
            error: how the write failed.
            conditional: whether the caller named the document's state.

        Raises:
            WorkspaceError: the failure is certain and another try pointless; UNAVAILABLE ``DOCUMENT_OUTCOME_UNKNOWN``
                after enough tries.
        """
        refused = refusal(error)
        moved = refused is not None and refused.kind is Kind.PRECONDITION_FAILED
        if refused is not None and not self.uncertain and (conditional or not moved):
            raise refused from error
        if refused is None:
            self.uncertain = True
            self._usage.unknown_outcomes += 1
        self._failures += 1
        if self._failures >= ATTEMPTS:
            _LOG.warning("a write is given up", extra=logs.fields(status=http_status(error)), exc_info=error)
            raise (outcome_unknown() if self.uncertain else unavailable()) from error
        await backoff(self._failures, throttle_delay(error) or 0)


async def backoff(failures: int, asked_seconds: float) -> None:
    """Wait as long as asked, and a little more with each failure; full jitter."""
    longest = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0**failures)
    # Jitter is no secret.
    await asyncio.sleep(asked_seconds + random.random() * longest)  # noqa: S311


def _sub_status(error: Exception) -> int:
    found: Any = getattr(error, "sub_status", None) if isinstance(error, CosmosHttpResponseError) else None
    return int(found or 0)


def _not_taken() -> WorkspaceError:
    detail = "The account does not take the document: its partition key path may differ from the record's."
    return WorkspaceError(Kind.INVALID, "INVALID_REQUEST", detail, errors=[{"field": "body", "message": detail}])
