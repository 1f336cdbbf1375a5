"""Parsers of Kusto replies: partial failures, times, properties of the operator ``render``, and errors.

Errors of the SDK azure-kusto-data are converted to errors of the service.

This module is separate from the adapter, because the form of replies and the error codes change with versions of the
engine.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, NoReturn

from azure.kusto.data._models import WellKnownDataSet
from azure.kusto.data.exceptions import KustoApiError, KustoMultiApiError, KustoNetworkError, KustoServiceError
from azure.kusto.data.response import KustoResponseDataSet

from shared.catalog.kql_tokens import tokenize
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.observability import logs
from shared.timestamps import parse_rfc3339
from shared.warm_queries.ports import EngineQuery

_VISUALIZATION = {
    "Visualization": "visualization", "Title": "title", "XColumn": "xColumn", "Series": "series",
    "YColumns": "yColumns", "AnomalyColumns": "anomalyColumns", "XTitle": "xTitle", "YTitle": "yTitle",
    "XAxis": "xAxis", "YAxis": "yAxis", "Legend": "legend", "YSplit": "ySplit", "Accumulate": "accumulate",
    "Kind": "kind", "Ymin": "yMin", "Ymax": "yMax", "Xmin": "xMin", "Xmax": "xMax",
}  # fmt: skip
"""API names of the properties of ``render``, by their names in the engine's annotation ``Visualization``."""
_SEVERAL_RESULTS = frozenset({("|", "fork"), ("|", "facet"), ("evaluate", "preview"), ("evaluate", "funnel_sequence")})
"""Operators that return several result tables, each as two adjacent tokens of a query."""
_INFORMATION_LEVEL: Final = 4
"""Lowest level of an event that is not a failure."""
_NAME_LISTS = frozenset({"series", "yColumns", "anomalyColumns"})


def reject_partial_result(reply: KustoResponseDataSet, rows: list[Any]) -> None:
    """Check that a reply has all rows of the result.

    Args:
        reply: reply of the engine.
        rows: rows of the reply's first result table; the engine reports a failure in place of a row.

    Raises:
        KustoServiceError: the engine reports failures among the rows or at the end of the reply.
    """
    failures = [row for row in rows if isinstance(row, dict)]
    if failures:
        raise KustoMultiApiError(failures)
    if _has_failed_events(reply):
        raise KustoServiceError("; ".join(reply.get_exceptions()))


def reject_failed_ingestion(reply: KustoResponseDataSet) -> None:
    """Check that a command ``.ingest`` has not failed; the engine can report its failure in a successful HTTP reply.

    The reply has no errors if the command ingested nothing, because a file with the same tag was ingested before
    (https://learn.microsoft.com/kusto/management/data-ingestion/ingest-from-storage#returns).

    Raises:
        KustoServiceError: a row of the reply reports a failure in the column ``HasErrors``.
    """
    table = reply.primary_results[0]
    names = [column.column_name for column in table.columns]
    if "HasErrors" in names and any(row[names.index("HasErrors")] for row in table.raw_rows):
        raise KustoServiceError("The column HasErrors of the reply reports a failure.")


def _has_failed_events(reply: KustoResponseDataSet) -> bool:
    """Return whether the reply's table QueryCompletionInformation reports failures.

    The SDK's ``errors_count`` gives the same answer, but takes longer, because it converts all cells of the table.
    """
    for table in reply.tables:
        if table.table_kind is WellKnownDataSet.QueryCompletionInformation:
            level = [column.column_name for column in table.columns].index("Level")
            return any(row[level] < _INFORMATION_LEVEL for row in table.raw_rows)
    return False


def reject_several_results(reply: KustoResponseDataSet, query_text: str) -> None:
    """Check that a query has only one result table.

    Args:
        reply: reply of the engine.
        query_text: KQL text of the query.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID`` if the query has several result tables.
    """
    count = len(reply.primary_results)
    if count > 1:
        cause = _find_operator_with_several_results(query_text)
        rule = f"remove the operator {cause}" if cause else "send one statement at a time"
        detail = f"the query has {count} results; a query of the workspace must have one: {rule}"
        raise build_invalid_field_error("query", detail, code="QUERY_INVALID")


def _find_operator_with_several_results(query_text: str) -> str | None:
    """Return the first operator of a KQL text that has several results; None if there is none."""
    previous = ""
    for token in tokenize(query_text):
        if (previous, token.text) in _SEVERAL_RESULTS:
            return token.text if previous == "|" else f"{previous} {token.text}"
        previous = token.text
    return None


def parse_cached_result_time(reply: KustoResponseDataSet) -> datetime | None:
    """Parse the time at which the engine computed a result that it returned from its cache; None for a new result."""
    # The ExtendedProperties of a cached result state its origin: {"OriginalClientRequestId", "OriginalStartedOn"}.
    for cells in _iterate_rows_of_table(reply, "@ExtendedProperties"):
        if cells.get("Key") == "ServerCache":
            return parse_rfc3339(json.loads(cells["Value"])["OriginalStartedOn"])
    return None


def parse_visualization(reply: KustoResponseDataSet) -> dict[str, Any] | None:
    """Parse the properties of a query's operator ``render``, named as in the API; None without ``render``."""
    for cells in _iterate_rows_of_table(reply, "@ExtendedProperties"):
        if cells.get("Key") == "Visualization":
            value = cells["Value"]
            annotation = json.loads(value) if isinstance(value, str) else value
            if not isinstance(annotation, dict) or not annotation.get("Visualization"):
                return None
            return {
                name: _render_property_to_api_value(name, annotation.get(key)) for key, name in _VISUALIZATION.items()
            }
    return None


def parse_names_of_approximate_functions(reply: KustoResponseDataSet) -> tuple[str, ...]:
    """Parse the list of the query's functions whose results in the emulator differ from those of Data Explorer."""
    for cells in _iterate_rows_of_table(reply, "@ExtendedProperties"):
        if cells.get("Key") == "Approximations":
            return tuple(map(str, json.loads(cells["Value"])))
    return ()


def _render_property_to_api_value(api_name: str, engine_value: Any) -> Any:
    if api_name in _NAME_LISTS and isinstance(engine_value, str):
        return [each.strip() for each in engine_value.split(",") if each.strip()]
    return None if engine_value in ("", "NaN") else engine_value


def _iterate_rows_of_table(reply: KustoResponseDataSet, table_name: str) -> Iterator[dict[str, Any]]:
    for table in reply.tables:
        if table.table_name == table_name:
            names = [column.column_name for column in table.columns]
            yield from (dict(zip(names, row, strict=False)) for row in table.raw_rows)


def parse_execution_time_ms(reply: KustoResponseDataSet, default_ms: float) -> float:
    """Parse the duration in milliseconds that the engine reports for a query; ``default_ms`` if it reports none."""
    for cells in _iterate_rows_of_table(reply, "QueryCompletionInformation"):
        if cells.get("EventTypeName") == "QueryResourceConsumption":
            return float(json.loads(cells["Payload"]).get("ExecutionTime", default_ms / 1000)) * 1000
    return default_ms


_LOG = logs.get_logger("kusto")
_POSITION = re.compile(r"\[line:position=(\d+):(\d+)\]")
_SERVER_ERRORS = 500
_DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_EMBEDDED_ONLY = "EMB0001"
"""Code in the message of the local emulator for a construct that it does not support, in contrast to Data Explorer."""
_TOO_LARGE = ("LimitsExceeded", "LowMemoryCondition", "E_QUERY_RESULT_SET_TOO_LARGE", "E_RUNAWAY_QUERY")
_TIMED_OUT = ("TimeoutException", "Timeout", "timed out", "504", "80DA0002")
_READ_ONLY = ("request_readonly", "NotReadOnly", "read-only", "E_QUERY_NOT_READ_ONLY")


def raise_query_failure(error: KustoServiceError, query: EngineQuery) -> NoReturn:
    """Convert a failure that the query engine reported to an error of this service, and raise the error.

    Raises:
        WorkspaceError: INVALID ``QUERY_INVALID``, ``QUERY_NOT_READ_ONLY`` or ``QUERY_TOO_LARGE`` if the query caused
            the failure; TIMEOUT ``QUERY_TIMEOUT`` if the query did not finish in time; UNAVAILABLE
            ``QUERY_ENGINE_UNAVAILABLE`` in all other cases.
    """
    if isinstance(error, KustoNetworkError):
        raise (
            build_timeout_error(query) if isinstance(error.__cause__, TimeoutError) else build_unavailable_error()
        ) from error
    failure = _parse_failure(error)
    if failure.status == HTTPStatus.GATEWAY_TIMEOUT or _is_any_phrase_in(_TIMED_OUT, failure.code):
        raise build_timeout_error(query) from error
    if _is_any_phrase_in(_TOO_LARGE, failure.code):
        detail = "the query requires more memory or returns more rows than the engine allows; select fewer rows"
        raise build_invalid_field_error("query", detail, code="QUERY_TOO_LARGE") from error
    if failure.is_caused_by_query:
        raise _build_invalid_query_error(failure, query) from error
    _LOG.warning(
        "the query engine reported a failure", extra=logs.fields(status=failure.status, engineCode=failure.code)
    )
    raise (build_denied_error("Viewer") if failure.is_denied else build_unavailable_error()) from error


def is_access_denied(error: Exception) -> bool:
    """Return whether an error of the SDK states that the query engine denied access."""
    return isinstance(error, KustoServiceError) and _parse_failure(error).is_denied


@dataclass(frozen=True, slots=True)
class _EngineFailure:
    """Failure that the query engine reports; ``status`` is 200 if a successful HTTP reply contains the failure."""

    code: str
    message: str
    status: int
    permanent: bool

    @property
    def is_denied(self) -> bool:
        """True if the identity of this process lacks access rights."""
        return self.code.startswith(("Forbidden", "Unauthorized")) or self.status in _DENIED

    @property
    def is_caused_by_query(self) -> bool:
        """True if the query itself caused the failure; False for example if this service lacks access rights."""
        refused = self.status == HTTPStatus.OK or HTTPStatus.BAD_REQUEST <= self.status < _SERVER_ERRORS
        return refused and self.permanent and not self.is_denied


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


def _build_invalid_query_error(failure: _EngineFailure, query: EngineQuery) -> WorkspaceError:
    code = "QUERY_NOT_READ_ONLY" if _is_any_phrase_in(_READ_ONLY, failure.code) else "QUERY_INVALID"
    reported = failure.message
    if _EMBEDDED_ONLY in reported:
        reported += ". The query runs on Data Explorer only."
    place = _POSITION.search(reported)
    if place is None:
        return build_invalid_field_error("query", reported, code=code)
    line, column = max(int(place[1]) - query.lines_before, 1), int(place[2])
    message = _POSITION.sub(f"[line:position={line}:{column}]", reported)
    error = build_invalid_field_error("query", message, code=code)
    error.members.update(line=line, column=column)
    return error


def _is_any_phrase_in(phrases: tuple[str, ...], *texts: str) -> bool:
    return any(mark in text for mark in phrases for text in texts)


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


def build_denied_error(missing_role: str) -> WorkspaceError:
    """Build the error of a query engine that denies access.

    Args:
        missing_role: role on the database that the identity of this process lacks.
    """
    detail = (
        "The query engine denied access; "
        f"the identity that signs in there needs the role {missing_role} on the database."
    )
    return WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", detail, retryAfter=5)
