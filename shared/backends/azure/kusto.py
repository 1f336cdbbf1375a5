"""The query engine over azure-kusto-data: Azure Data Explorer, or the embedded endpoint on loopback."""

import asyncio
import json
import re
import time
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

from shared.backends.azure.identity import app_identity
from shared.errors import Kind, WorkspaceError, invalid
from shared.observability import logs
from shared.text_formats.json_slices import loads_in_slices
from shared.timestamps import parse_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from shared.worker_threads import pause_garbage_collection, run_in_worker

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

MARGIN_SECONDS = 20.0
_LOG = logs.get_logger("kusto")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_POSITION = re.compile(r"\[line:position=(\d+):(\d+)\]")
_SERVER_ERRORS = 500
_SLICED_LEVELS = 3
"""Of a reply: frames, the rows of a frame, the cells of a row are read together."""
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
"""Every request property that keeps a query inside its database.

Documented at https://learn.microsoft.com/kusto/api/rest/request-properties. ``request_block_row_level_security`` is
not among them: it makes a query fail on a table whose rows the owner of the cluster restricts.
"""
_TOO_LARGE = ("LimitsExceeded", "LowMemoryCondition", "E_QUERY_RESULT_SET_TOO_LARGE", "E_RUNAWAY_QUERY")
_TIMED_OUT = ("TimeoutException", "Timeout", "timed out", "504", "80DA0002")
_READ_ONLY = ("request_readonly", "NotReadOnly", "read-only", "E_QUERY_NOT_READ_ONLY")


class _Reply(aiohttp.ClientResponse):
    """A reply whose JSON is read in a worker thread, because a result has up to 64 MiB."""

    async def json(self, **_: Any) -> Any:
        """Return the JSON value of the body, None for an empty one."""
        text = await self.text()
        with pause_garbage_collection(len(text)):
            return await run_in_worker(len(text), loads_in_slices, text, _SLICED_LEVELS) if text.strip() else None


class _Client(KustoClient):
    """The genuine client, made to read the DataSetCompletion frame: a failure told there alone would look like success.

    The client itself looks at tables only. It reads replies outside the event loop.
    """

    def __init__(self, connection: KustoConnectionStringBuilder) -> None:
        super().__init__(connection)
        # The client has no option for the class of its replies, and has not connected yet.
        cast("aiohttp.ClientSession", self._session)._response_class = _Reply  # noqa: SLF001

    @staticmethod
    def _kusto_parse_by_endpoint(endpoint: str, response_json: Any) -> KustoResponseDataSet:
        for frame in response_json if isinstance(response_json, list) else []:
            if frame.get("FrameType") == "DataSetCompletion" and (frame.get("HasErrors") or frame.get("Cancelled")):
                raise KustoMultiApiError([{"OneApiErrors": frame.get("OneApiErrors") or [_UNNAMED_FAILURE]}])
        # Asked for by its name and not through super(): a static method has no instance to go by.
        parsed: KustoResponseDataSet = KustoClient._kusto_parse_by_endpoint(endpoint, response_json)  # noqa: SLF001
        return parsed


_NO_REASON = "The engine reports a failure without a reason."
_UNNAMED_FAILURE = {
    "error": {"code": "PartialFailure", "message": _NO_REASON, "@message": _NO_REASON, "@permanent": False}
}


class KustoEngine:
    """The QueryEngine port.

    Args:
        uri: of the cluster, or of the embedded endpoint.
        database: that is queried.
        identity_client_id: of the user-assigned identity to sign in with; empty for the system-assigned one.
        margin_seconds: longest time beyond a query's own for signing in, connecting and carrying the answer.
    """

    def __init__(
        self, uri: str, database: str, identity_client_id: str = "", *, margin_seconds: float = MARGIN_SECONDS
    ) -> None:
        self._uri = uri
        self._database = database
        self._identity_client_id = identity_client_id
        self._margin_seconds = margin_seconds
        self._client: KustoClient | None = None
        self._credential: DefaultAzureCredential | None = None

    async def execute(self, query: EngineQuery) -> EngineResult:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(query.timeout_seconds + self._margin_seconds):
                answer = await self._connected().execute_query(self._database, query.text, _properties(query))
            table = answer.primary_results[0]
            _refuse_partial(answer, table.raw_rows)
        except KustoThrottlingError as error:
            raise WorkspaceError(Kind.THROTTLED, "THROTTLED", "The query engine is busy.", retryAfter=5) from error
        except KustoServiceError as error:
            _fail(error, query)
        except TimeoutError as error:
            raise _timed_out(query) from error
        except KustoAuthenticationError as error:
            _LOG.warning("no token for the query engine", extra=logs.fields(error=type(error.exception).__name__))
            raise _unavailable() from error
        except RecursionError:
            raise invalid("query", "a value of the result is nested too deeply", code="QUERY_INVALID") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            # What is no Kusto reply makes the client stumble in its own ways.
            raise _unavailable() from error
        columns = tuple(Column(column.column_name, column.column_type) for column in table.columns)
        elapsed = (time.perf_counter() - started) * 1000
        return EngineResult(columns, table.raw_rows, _engine_ms(answer, elapsed), _computed_at(answer))

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

    def _connected(self) -> KustoClient:
        if self._client is None:
            connection, self._credential = _connection(self._uri, self._identity_client_id)
            self._client = _Client(connection)
        return self._client


def _connection(
    uri: str, identity_client_id: str
) -> "tuple[KustoConnectionStringBuilder, DefaultAzureCredential | None]":
    parts = urlsplit(uri)
    if parts.scheme == "http":
        if parts.hostname not in _LOOPBACK:
            raise WorkspaceError(
                Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "KUSTO_URI: plain http is taken on loopback only."
            )
        return KustoConnectionStringBuilder.with_no_authentication(uri), None
    credential = app_identity(identity_client_id)

    async def token() -> str:
        return (await credential.get_token(f"{uri.rstrip('/')}/.default")).token

    # Given a credential, the client asks the cluster for its sign-in address first, without a time-out and on the
    # event loop's own thread; given tokens, it asks for nothing.
    return KustoConnectionStringBuilder.with_async_token_provider(uri, token), credential


def _properties(query: EngineQuery) -> ClientRequestProperties:
    properties = ClientRequestProperties()
    properties.client_request_id = f"oi;{logs.request_id.get() or 'background'}"
    for restriction in _RESTRICTIONS:
        properties.set_option(restriction, True)
    # The same text could mean something else in SQL, which the engine also runs.
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


def _refuse_partial(answer: KustoResponseDataSet, rows: list[Any]) -> None:
    failures = [row for row in rows if isinstance(row, dict)]
    if failures:
        raise KustoMultiApiError(failures)
    if answer.errors_count:
        raise KustoServiceError("; ".join(answer.get_exceptions()))


def _computed_at(answer: KustoResponseDataSet) -> datetime | None:
    # Kusto names a kept answer's origin in the ExtendedProperties: {"OriginalClientRequestId", "OriginalStartedOn"}.
    for cells in _cells(answer, "@ExtendedProperties"):
        if cells.get("Key") == "ServerCache":
            return parse_rfc3339(json.loads(cells["Value"])["OriginalStartedOn"])
    return None


def _cells(answer: KustoResponseDataSet, table_name: str) -> Iterator[dict[str, Any]]:
    for table in answer.tables:
        if table.table_name == table_name:
            names = [column.column_name for column in table.columns]
            yield from (dict(zip(names, row, strict=False)) for row in table.raw_rows)


def _engine_ms(answer: KustoResponseDataSet, elapsed_ms: float) -> float:
    for cells in _cells(answer, "QueryCompletionInformation"):
        if cells.get("EventTypeName") == "QueryResourceConsumption":
            return float(json.loads(cells["Payload"]).get("ExecutionTime", elapsed_ms / 1000)) * 1000
    return elapsed_ms


def _fail(error: KustoServiceError, query: EngineQuery) -> NoReturn:
    if isinstance(error, KustoNetworkError):
        raise (_timed_out(query) if isinstance(error.__cause__, TimeoutError) else _unavailable()) from error
    told = _told(error)
    if told.status == HTTPStatus.GATEWAY_TIMEOUT or _holds(_TIMED_OUT, told.code):
        raise _timed_out(query) from error
    if _holds(_TOO_LARGE, told.code):
        detail = "The query needs more memory or gives more rows than the engine allows."
        raise invalid("query", detail, code="QUERY_TOO_LARGE") from error
    if told.is_the_querys_fault:
        raise _refused(told, query) from error
    _LOG.warning("the query engine failed", extra=logs.fields(status=told.status, engineCode=told.code))
    raise _unavailable() from error


@dataclass(frozen=True, slots=True)
class _Told:
    """What the engine says of a failure; status 200 is a failure inside a good reply."""

    code: str
    message: str
    status: int
    permanent: bool

    @property
    def is_the_querys_fault(self) -> bool:
        """Whether the same query would fail again, and not because this service may not ask."""
        denied = self.code.startswith(("Forbidden", "Unauthorized")) or self.status == HTTPStatus.UNAUTHORIZED
        refused = self.status == HTTPStatus.OK or HTTPStatus.BAD_REQUEST <= self.status < _SERVER_ERRORS
        return refused and self.permanent and not denied


def _told(error: KustoServiceError) -> _Told:
    status = getattr(getattr(error, "http_response", None), "status", HTTPStatus.OK)
    if isinstance(error, KustoApiError):
        one = error.get_api_error()
    elif isinstance(error, KustoMultiApiError) and error.get_api_errors():
        one = error.get_api_errors()[0]
    else:
        return _Told("", error.message_text, status, permanent=False)
    permanent = one.permanent is not False
    return _Told(f"{one.code} {one.type}", one.description or one.message or "", status, permanent)


def _refused(told: _Told, query: EngineQuery) -> WorkspaceError:
    code = "QUERY_NOT_READ_ONLY" if _holds(_READ_ONLY, told.code) else "QUERY_INVALID"
    place = _POSITION.search(told.message)
    if place is None:
        return invalid("query", told.message, code=code)
    line, column = max(int(place[1]) - query.lines_before, 1), int(place[2])
    message = _POSITION.sub(f"[line:position={line}:{column}]", told.message)
    error = invalid("query", message, code=code)
    error.members.update(line=line, column=column)
    return error


def _holds(marks: tuple[str, ...], *texts: str) -> bool:
    return any(mark in text for mark in marks for text in texts)


def _timed_out(query: EngineQuery) -> WorkspaceError:
    return WorkspaceError(
        Kind.TIMEOUT, "QUERY_TIMEOUT", f"The query was given up after {query.timeout_seconds} seconds."
    )


def _unavailable() -> WorkspaceError:
    return WorkspaceError(
        Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The query engine does not answer.", retryAfter=5
    )
