"""Conversion of failures that the SDK azure-kusto-data raises to errors of the service.

This module is separate from the adapter, because the failure codes change with the engine and not with the queries.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import NoReturn

from azure.kusto.data.exceptions import KustoApiError, KustoMultiApiError, KustoNetworkError, KustoServiceError

from shared.errors import Kind, WorkspaceError, invalid
from shared.observability import logs
from shared.warm_queries.ports import EngineQuery

_LOG = logs.get_logger("kusto")
_POSITION = re.compile(r"\[line:position=(\d+):(\d+)\]")
_SERVER_ERRORS = 500
_EMBEDDED_ONLY = "EMB0001"
"""Code in the message of the local emulator for a construct that it does not support, in contrast to Data Explorer."""
_TOO_LARGE = ("LimitsExceeded", "LowMemoryCondition", "E_QUERY_RESULT_SET_TOO_LARGE", "E_RUNAWAY_QUERY")
_TIMED_OUT = ("TimeoutException", "Timeout", "timed out", "504", "80DA0002")
_READ_ONLY = ("request_readonly", "NotReadOnly", "read-only", "E_QUERY_NOT_READ_ONLY")


def raise_failure(error: KustoServiceError, query: EngineQuery) -> NoReturn:
    """Convert a failure that the query engine reported to an error of this service, and raise the error.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY`` or ``QUERY_TOO_LARGE`` if the query caused
            the failure; TIMEOUT ``QUERY_TIMEOUT``; UNAVAILABLE ``QUERY_ENGINE_UNAVAILABLE``.
    """
    if isinstance(error, KustoNetworkError):
        raise (
            build_timeout_error(query) if isinstance(error.__cause__, TimeoutError) else build_unavailable_error()
        ) from error
    failure = _parse_failure(error)
    if failure.status == HTTPStatus.GATEWAY_TIMEOUT or _contains_any(_TIMED_OUT, failure.code):
        raise build_timeout_error(query) from error
    if _contains_any(_TOO_LARGE, failure.code):
        detail = "The query requires more memory or returns more rows than the engine allows."
        raise invalid("query", detail, code="QUERY_TOO_LARGE") from error
    if failure.is_caused_by_query:
        raise _invalid_query_error(failure, query) from error
    _LOG.warning(
        "the query engine reported a failure", extra=logs.fields(status=failure.status, engineCode=failure.code)
    )
    raise build_unavailable_error() from error


@dataclass(frozen=True, slots=True)
class _EngineFailure:
    """Failure that the query engine reports; ``status`` is 200 if a successful HTTP reply contains the failure."""

    code: str
    message: str
    status: int
    permanent: bool

    @property
    def is_caused_by_query(self) -> bool:
        """True if the query itself caused the failure; False for example if this service lacks access rights."""
        denied = self.code.startswith(("Forbidden", "Unauthorized")) or self.status == HTTPStatus.UNAUTHORIZED
        refused = self.status == HTTPStatus.OK or HTTPStatus.BAD_REQUEST <= self.status < _SERVER_ERRORS
        return refused and self.permanent and not denied


def _parse_failure(error: KustoServiceError) -> _EngineFailure:
    status = getattr(getattr(error, "http_response", None), "status", HTTPStatus.OK)
    if isinstance(error, KustoApiError):
        one = error.get_api_error()
    elif isinstance(error, KustoMultiApiError) and error.get_api_errors():
        one = error.get_api_errors()[0]
    else:
        return _EngineFailure("", error.message_text, status, permanent=False)
    permanent = one.permanent is not False
    codes = f"{one.code} {one.type}"
    return _EngineFailure(codes, one.description or one.message or "", status, permanent)


def _invalid_query_error(failure: _EngineFailure, query: EngineQuery) -> WorkspaceError:
    code = "QUERY_NOT_READ_ONLY" if _contains_any(_READ_ONLY, failure.code) else "QUERY_INVALID"
    reported = failure.message
    if _EMBEDDED_ONLY in reported:
        reported += ". The query runs on Data Explorer only."
    place = _POSITION.search(reported)
    if place is None:
        return invalid("query", reported, code=code)
    line, column = max(int(place[1]) - query.lines_before, 1), int(place[2])
    message = _POSITION.sub(f"[line:position={line}:{column}]", reported)
    error = invalid("query", message, code=code)
    error.members.update(line=line, column=column)
    return error


def _contains_any(marks: tuple[str, ...], *texts: str) -> bool:
    return any(mark in text for mark in marks for text in texts)


def build_timeout_error(query: EngineQuery) -> WorkspaceError:
    """Build the error of a KQL query that did not finish in time."""
    return WorkspaceError(
        Kind.TIMEOUT, "QUERY_TIMEOUT", f"The query did not finish within {query.timeout_seconds} seconds."
    )


def build_unavailable_error() -> WorkspaceError:
    """Build the error of a query engine that does not respond."""
    return WorkspaceError(
        Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine does not respond; retry later.", retryAfter=5
    )
