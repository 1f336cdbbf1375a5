"""Query engine over the SDK azure-kusto-data: Azure Data Explorer, or its local emulator."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import urlsplit

import aiohttp
from azure.kusto.data import ClientRequestProperties, KustoConnectionStringBuilder
from azure.kusto.data.aio import KustoClient
from azure.kusto.data.exceptions import (
    KustoApiError,
    KustoAuthenticationError,
    KustoMultiApiError,
    KustoNetworkError,
    KustoServiceError,
    KustoThrottlingError,
)
from azure.kusto.data.response import KustoResponseDataSet

from shared.backends.azure.identity import create_app_credential
from shared.errors import Kind, WorkspaceError, invalid
from shared.interpreter import pause_garbage_collection
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.text_formats.json_slices import loads_in_slices
from shared.timestamps import parse_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

MARGIN_SECONDS = 20.0
_LOG = logs.get_logger("kusto")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_POSITION = re.compile(r"\[line:position=(\d+):(\d+)\]")
_SERVER_ERRORS = 500
_SLICED_LEVELS = 3
"""Number of nested JSON levels of a reply that are parsed in small steps: frames, rows of a frame, cells of a row."""
_MAX_RESULT_BYTES = 64 * 1024 * 1024
_RESTRICTIONS = (
    "request_readonly",
    "request_readonly_hardline",
    "request_callout_disabled",
    "request_external_data_disabled",
    "request_external_table_disabled",
    "request_impersonation_disabled",
    "request_remote_entities_disabled",
    "request_sandboxed_execution_disabled",
)
"""Request properties that restrict a query to reads of its database.

See https://learn.microsoft.com/kusto/api/rest/request-properties. ``request_block_row_level_security`` is omitted,
because it makes queries fail on tables with row-level security.
"""
_VISUALIZATION = {
    "Visualization": "visualization", "Title": "title", "XColumn": "xColumn", "Series": "series",
    "YColumns": "yColumns", "AnomalyColumns": "anomalyColumns", "XTitle": "xTitle", "YTitle": "yTitle",
    "XAxis": "xAxis", "YAxis": "yAxis", "Legend": "legend", "YSplit": "ySplit", "Accumulate": "accumulate",
    "Kind": "kind", "Ymin": "yMin", "Ymax": "yMax", "Xmin": "xMin", "Xmax": "xMax",
}  # fmt: skip
"""Names in the API of the properties of ``render`` that the engine's annotation ``Visualization`` contains."""
_EMBEDDED_ONLY = "EMB0001"
"""Code in the message of the local emulator for a construct that it does not support, in contrast to Data Explorer."""
_NAME_LISTS = frozenset({"series", "yColumns", "anomalyColumns"})
_TOO_LARGE = ("LimitsExceeded", "LowMemoryCondition", "E_QUERY_RESULT_SET_TOO_LARGE", "E_RUNAWAY_QUERY")
_TIMED_OUT = ("TimeoutException", "Timeout", "timed out", "504", "80DA0002")
_READ_ONLY = ("request_readonly", "NotReadOnly", "read-only", "E_QUERY_NOT_READ_ONLY")


def _create_reply_class(runtime: Runtime) -> type[aiohttp.ClientResponse]:
    """Create a class of HTTP replies that parse their JSON in a worker thread, because a reply may have 64 MiB."""

    class WorkerParsedReply(aiohttp.ClientResponse):
        """HTTP reply whose JSON is parsed in a worker thread."""

        async def json(self, **_: Any) -> Any:
            """Parse the body as JSON; return None for an empty body."""
            text = await self.text()
            if not text.strip():
                return None
            with pause_garbage_collection(len(text)):
                return await runtime.run_in_worker(len(text), loads_in_slices, text, _SLICED_LEVELS)

    return WorkerParsedReply


class _StrictKustoClient(KustoClient):
    """Client of the SDK that also raises the failures that the engine reports at the end of a reply.

    The frame DataSetCompletion contains them; the SDK ignores this frame and would return the reply as a success.
    Replies are parsed in worker threads.
    """

    def __init__(self, connection: KustoConnectionStringBuilder, runtime: Runtime) -> None:
        super().__init__(connection)
        # The SDK has no option for the class of replies; the session is not connected yet.
        cast("aiohttp.ClientSession", self._session)._response_class = _create_reply_class(runtime)  # noqa: SLF001

    @staticmethod
    def _kusto_parse_by_endpoint(endpoint: str, response_json: Any) -> KustoResponseDataSet:
        for frame in response_json if isinstance(response_json, list) else []:
            if frame.get("FrameType") == "DataSetCompletion" and (frame.get("HasErrors") or frame.get("Cancelled")):
                raise KustoMultiApiError([{"OneApiErrors": frame.get("OneApiErrors") or [_UNKNOWN_FAILURE]}])
        # Called by the class name, because super() does not work in a static method.
        parsed: KustoResponseDataSet = KustoClient._kusto_parse_by_endpoint(endpoint, response_json)  # noqa: SLF001
        return parsed


_NO_REASON = "The engine reports a failure without a reason."
_UNKNOWN_FAILURE = {
    "error": {"code": "PartialFailure", "message": _NO_REASON, "@message": _NO_REASON, "@permanent": False}
}


class KustoEngine:
    """Implementation of QueryEngine: runs KQL queries in Azure Data Explorer or its local emulator.

    Args:
        uri: URL of the cluster, or of the local emulator.
        database: name of the database with the telemetry.
        identity_client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        margin_seconds: seconds that are added to a query's timeout for sign-in, connection and transfer of the result.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        uri: str,
        database: str,
        identity_client_id: str = "",
        *,
        margin_seconds: float = MARGIN_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._uri = uri
        self._database = database
        self._identity_client_id = identity_client_id
        self._margin_seconds = margin_seconds
        self._runtime = runtime
        self._client: KustoClient | None = None
        self._credential: DefaultAzureCredential | None = None

    async def execute(self, query: EngineQuery) -> EngineResult:
        started = self._runtime.monotonic()
        try:
            async with asyncio.timeout(query.timeout_seconds + self._margin_seconds):
                reply = await self._get_or_open_client().execute_query(
                    self._database, query.text, _build_properties(query)
                )
            table = reply.primary_results[0]
            _reject_partial(reply, table.raw_rows)
            _reject_several_tables(reply)
        except KustoThrottlingError as error:
            detail = "The query engine is busy; retry later."
            raise WorkspaceError(Kind.THROTTLED, "THROTTLED", detail, retryAfter=5) from error
        except KustoServiceError as error:
            _raise_failure(error, query)
        except TimeoutError as error:
            raise _timeout_error(query) from error
        except KustoAuthenticationError as error:
            _LOG.warning("no token for the query engine", extra=logs.fields(error=type(error.exception).__name__))
            raise _unavailable_error() from error
        except RecursionError:
            raise invalid("query", "a value of the result is nested too deeply", code="QUERY_INVALID") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            # The SDK raises these if the reply is not a Kusto reply.
            raise _unavailable_error() from error
        columns = tuple(Column(column.column_name, column.column_type) for column in table.columns)
        elapsed = (self._runtime.monotonic() - started) * 1000
        engine_ms, computed_at = _parse_engine_ms(reply, elapsed), _parse_computed_at(reply)
        return EngineResult(columns, table.raw_rows, engine_ms, computed_at, _parse_visualization(reply))

    async def ping(self) -> None:
        await self.execute(EngineQuery("print ok = true", {}, 1, 10))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        credential, self._credential = self._credential, None
        if credential is not None:
            await credential.close()

    def _get_or_open_client(self) -> KustoClient:
        if self._client is None:
            connection, self._credential = build_connection(self._uri, self._identity_client_id)
            self._client = _StrictKustoClient(connection, self._runtime)
        return self._client


def build_connection(
    uri: str, identity_client_id: str
) -> "tuple[KustoConnectionStringBuilder, DefaultAzureCredential | None]":
    """Return the connection to a query engine and its Azure credential, which is None for a local emulator.

    The caller closes the credential.

    Raises:
        WorkspaceError: UNAVAILABLE ``QUERY_ENGINE_UNAVAILABLE`` for plain HTTP to another machine.
    """
    parts = urlsplit(uri)
    if parts.scheme == "http":
        if parts.hostname not in _LOOPBACK:
            raise WorkspaceError(
                Kind.UNAVAILABLE,
                "QUERY_ENGINE_UNAVAILABLE",
                "KUSTO_URI: plain http is allowed for loopback addresses only; use https.",
            )
        return KustoConnectionStringBuilder.with_no_authentication(uri), None
    credential = create_app_credential(identity_client_id)

    async def fetch_token() -> str:
        return (await credential.get_token(f"{uri.rstrip('/')}/.default")).token

    # With a credential, the SDK first requests the sign-in address from the cluster, without a timeout and blocking
    # the event loop. With a token provider it does not.
    return KustoConnectionStringBuilder.with_async_token_provider(uri, fetch_token), credential


def _build_properties(query: EngineQuery) -> ClientRequestProperties:
    properties = ClientRequestProperties()
    properties.client_request_id = f"oi;{logs.request_id.get() or 'background'}"
    for restriction in _RESTRICTIONS:
        properties.set_option(restriction, True)
    # The engine also runs SQL, in which the same text could have another meaning.
    properties.set_option("query_language", "kql")
    properties.set_option("query_take_max_records", query.max_records)
    properties.set_option("truncationmaxrecords", query.max_records)
    properties.set_option("truncationmaxsize", _MAX_RESULT_BYTES)
    properties.set_option(ClientRequestProperties.request_timeout_option_name, timedelta(seconds=query.timeout_seconds))
    if query.cache_seconds:
        properties.set_option("query_results_cache_max_age", str(timedelta(seconds=query.cache_seconds)))
    for name, value in query.parameters.items():
        properties.set_parameter(name, value)
    return properties


def _reject_partial(reply: KustoResponseDataSet, rows: list[Any]) -> None:
    failures = [row for row in rows if isinstance(row, dict)]
    if failures:
        raise KustoMultiApiError(failures)
    if reply.errors_count:
        raise KustoServiceError("; ".join(reply.get_exceptions()))


def _reject_several_tables(reply: KustoResponseDataSet) -> None:
    count = len(reply.primary_results)
    if count > 1:
        detail = (
            f"the query has {count} results; a query of the workspace must have one statement without fork or facet"
        )
        raise invalid("query", detail, code="QUERY_INVALID")


def _parse_computed_at(reply: KustoResponseDataSet) -> datetime | None:
    # The ExtendedProperties of a cached result state its origin: {"OriginalClientRequestId", "OriginalStartedOn"}.
    for cells in _read_cells(reply, "@ExtendedProperties"):
        if cells.get("Key") == "ServerCache":
            return parse_rfc3339(json.loads(cells["Value"])["OriginalStartedOn"])
    return None


def _parse_visualization(reply: KustoResponseDataSet) -> dict[str, Any] | None:
    """Return the properties of the query's operator ``render`` with the names of the API; None without ``render``."""
    for cells in _read_cells(reply, "@ExtendedProperties"):
        if cells.get("Key") == "Visualization":
            value = cells["Value"]
            annotation = json.loads(value) if isinstance(value, str) else value
            if not isinstance(annotation, dict) or not annotation.get("Visualization"):
                return None
            return {name: _convert_annotation(name, annotation.get(key)) for key, name in _VISUALIZATION.items()}
    return None


def _convert_annotation(name: str, value: Any) -> Any:
    if name in _NAME_LISTS and isinstance(value, str):
        return [each.strip() for each in value.split(",") if each.strip()]
    return None if value in ("", "NaN") else value


def _read_cells(reply: KustoResponseDataSet, table_name: str) -> Iterator[dict[str, Any]]:
    for table in reply.tables:
        if table.table_name == table_name:
            names = [column.column_name for column in table.columns]
            yield from (dict(zip(names, row, strict=False)) for row in table.raw_rows)


def _parse_engine_ms(reply: KustoResponseDataSet, elapsed_ms: float) -> float:
    for cells in _read_cells(reply, "QueryCompletionInformation"):
        if cells.get("EventTypeName") == "QueryResourceConsumption":
            return float(json.loads(cells["Payload"]).get("ExecutionTime", elapsed_ms / 1000)) * 1000
    return elapsed_ms


def _raise_failure(error: KustoServiceError, query: EngineQuery) -> NoReturn:
    if isinstance(error, KustoNetworkError):
        raise (_timeout_error(query) if isinstance(error.__cause__, TimeoutError) else _unavailable_error()) from error
    failure = _parse_failure(error)
    if failure.status == HTTPStatus.GATEWAY_TIMEOUT or _contains_any(_TIMED_OUT, failure.code):
        raise _timeout_error(query) from error
    if _contains_any(_TOO_LARGE, failure.code):
        detail = "The query requires more memory or returns more rows than the engine allows."
        raise invalid("query", detail, code="QUERY_TOO_LARGE") from error
    if failure.is_caused_by_query:
        raise _invalid_query_error(failure, query) from error
    _LOG.warning("the query engine failed", extra=logs.fields(status=failure.status, engineCode=failure.code))
    raise _unavailable_error() from error


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


def _timeout_error(query: EngineQuery) -> WorkspaceError:
    return WorkspaceError(
        Kind.TIMEOUT, "QUERY_TIMEOUT", f"The query did not finish within {query.timeout_seconds} seconds."
    )


def _unavailable_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine does not respond; retry later.", retryAfter=5
    )
