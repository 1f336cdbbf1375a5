"""Query engine and telemetry table that use the SDK azure-kusto-data: Azure Data Explorer, or its local emulator.

The table ingests Parquet files from blobs.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import aiohttp
from azure.kusto.data import ClientRequestProperties, KustoConnectionStringBuilder
from azure.kusto.data.aio import KustoClient
from azure.kusto.data.exceptions import (
    KustoAuthenticationError,
    KustoError,
    KustoMultiApiError,
    KustoServiceError,
    KustoThrottlingError,
)
from azure.kusto.data.response import KustoResponseDataSet

from shared.backends.azure.identity import create_app_credential
from shared.backends.azure.kusto_replies import (
    build_denied_error,
    build_timeout_error,
    build_unavailable_error,
    is_access_denied,
    parse_cached_result_time,
    parse_execution_time_ms,
    parse_names_of_approximate_functions,
    parse_visualization,
    raise_query_failure,
    reject_failed_ingestion,
    reject_partial_result,
    reject_several_results,
)
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.interpreter import pause_garbage_collection
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.text_formats.large_json import parse_json_in_slices
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

MARGIN_SECONDS = 20.0
_LOG = logs.get_logger("kusto")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
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


_reply_size: ContextVar[int] = ContextVar("reply_size", default=0)
"""Number of bytes of the reply that the current task received last. The SDK does not return this number."""


def _create_worker_parsed_reply_class(runtime: Runtime) -> type[aiohttp.ClientResponse]:
    """Create a class of HTTP replies whose JSON is parsed in a worker thread, because a reply can have 64 MiB."""

    class WorkerParsedReply(aiohttp.ClientResponse):
        """HTTP reply whose JSON is parsed in a worker thread."""

        async def read(self) -> bytes:
            """Return the body; the parts of a large body are joined in a worker thread."""
            if self._body is None:
                parts = [part async for part in self.content.iter_any()]
                self._body = await runtime.run_in_thread_if_large(sum(map(len, parts)), b"".join, parts)
            return await super().read()

        async def json(self, **_: Any) -> Any:
            """Parse the body as JSON; return None for an empty body."""
            body = await self.read()
            if not body or body.isspace():
                return None
            with pause_garbage_collection(len(body)):
                parsed = await runtime.run_in_thread_if_large(len(body), _parse_json_body, body, self.get_encoding())
            _reply_size.set(len(body))
            return parsed

    return WorkerParsedReply


def _parse_json_body(body: bytes, encoding: str) -> Any:
    return parse_json_in_slices(body.decode(encoding))


class _StrictKustoClient(KustoClient):
    """Client of the SDK that also raises the failures that the engine reports at the end of a reply.

    The frame DataSetCompletion contains these failures; in a reply to a command, the member ``Exceptions``. The SDK
    ignores both and would treat the reply as a success. Replies are parsed in worker threads.
    """

    def __init__(self, connection: KustoConnectionStringBuilder, runtime: Runtime) -> None:
        super().__init__(connection)
        # The SDK has no option for the class of replies; the session is not connected yet.
        cast("aiohttp.ClientSession", self._session)._response_class = _create_worker_parsed_reply_class(runtime)  # noqa: SLF001

    @staticmethod
    def _kusto_parse_by_endpoint(endpoint: str, response_json: Any) -> KustoResponseDataSet:
        for frame in response_json if isinstance(response_json, list) else []:
            if frame.get("FrameType") == "DataSetCompletion" and (frame.get("HasErrors") or frame.get("Cancelled")):
                raise KustoMultiApiError([{"OneApiErrors": frame.get("OneApiErrors") or [_UNKNOWN_FAILURE]}])
        if isinstance(response_json, dict) and response_json.get("Exceptions"):
            raise KustoServiceError(str(response_json["Exceptions"]))
        # Called by the class name, because super() does not work in a static method.
        parsed: KustoResponseDataSet = KustoClient._kusto_parse_by_endpoint(endpoint, response_json)  # noqa: SLF001
        return parsed


_NO_REASON = "The query engine reports a failure without a reason."
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
                    self._database, query.text, _build_request_properties(query)
                )
            table = reply.primary_results[0]
            reject_partial_result(reply, table.raw_rows)
            reject_several_results(reply, query.text)
        except KustoThrottlingError as error:
            detail = "The query engine is busy; retry later."
            raise WorkspaceError(Kind.THROTTLED, "THROTTLED", detail, retryAfter=5) from error
        except KustoServiceError as error:
            raise_query_failure(error, query)
        except TimeoutError as error:
            raise build_timeout_error(query) from error
        except KustoAuthenticationError as error:
            _LOG.warning("no token for the query engine", extra=logs.fields(error=type(error.exception).__name__))
            raise build_unavailable_error() from error
        except RecursionError:
            raise build_invalid_field_error(
                "query",
                "a value in the result of the query is nested too deeply; return values with fewer levels",
                code="QUERY_INVALID",
            ) from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            # The SDK raises these if the reply is not a Kusto reply.
            raise build_unavailable_error() from error
        columns = tuple(Column(column.column_name, column.column_type) for column in table.columns)
        elapsed = (self._runtime.monotonic() - started) * 1000
        engine_ms, computed_at = parse_execution_time_ms(reply, elapsed), parse_cached_result_time(reply)
        return EngineResult(
            columns,
            table.raw_rows,
            engine_ms,
            computed_at,
            parse_visualization(reply),
            parse_names_of_approximate_functions(reply),
            size=_reply_size.get(),
        )

    async def ping(self) -> None:
        await self.execute(EngineQuery("print ok = true", {}, 1, 10))

    async def close(self) -> None:
        """Close the connections to the query engine."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        credential, self._credential = self._credential, None
        if credential is not None:
            await credential.close()

    def _get_or_open_client(self) -> KustoClient:
        if self._client is None:
            connection, self._credential = build_kusto_connection_and_credential(self._uri, self._identity_client_id)
            self._client = _StrictKustoClient(connection, self._runtime)
        return self._client


def build_kusto_connection_and_credential(
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


def _build_request_properties(query: EngineQuery) -> ClientRequestProperties:
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
        properties.set_option("query_results_cache_max_age", _format_kusto_timespan(query.cache_seconds))
    for name, value in query.parameters.items():
        properties.set_parameter(name, value)
    return properties


def _format_kusto_timespan(seconds: int) -> str:
    """Format a duration as a Kusto timespan; ``str(timedelta)`` writes "1 day, 0:00:00", which Kusto cannot parse."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}.{hour:02}:{minute:02}:{second:02}"


RAW_TABLE = "TelemetryRaw"
INGEST_SECONDS = 180
"""Time in seconds after which the engine stops a command that ingests a file.

With the margin, this is shorter than the time for which an import reserves its connection, and than the timeout of
Azure Functions. The engine stops first, so that a repeated command does not run at the same time as the first one.
"""


class KustoTelemetryTable:
    """Implementation of TelemetryTable: stores recent telemetry in Azure Data Explorer or its local emulator.

    Each command has a tag; a second command with the same tag ingests nothing
    (https://learn.microsoft.com/kusto/management/extent-tags). The time of ingestion is the time of the command; the
    retention starts at that time.

    Args:
        uri: URL of the cluster, or of the local emulator.
        database: name of the database with the telemetry.
        locate_file: converts the name of a file's blob to the address from which the engine reads the file: a signed
            URL, or a path for the emulator.
        identity_client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        ingest_seconds: time in seconds after which the engine stops a command.
        margin_seconds: seconds that are added to ``ingest_seconds`` for sign-in, connection and reply.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        uri: str,
        database: str,
        locate_file: Callable[[str], Awaitable[str]],
        identity_client_id: str = "",
        *,
        ingest_seconds: float = INGEST_SECONDS,
        margin_seconds: float = MARGIN_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._uri = uri
        self._database = database
        self._locate = locate_file
        self._identity_client_id = identity_client_id
        self._ingest_seconds = ingest_seconds
        self._margin_seconds = margin_seconds
        self._runtime = runtime
        self._client: KustoClient | None = None
        self._credential: DefaultAzureCredential | None = None

    async def ingest(self, blob_name: str, ingestion_tag: str) -> None:
        command = build_ingest_command(await self._locate(blob_name), ingestion_tag)
        properties = ClientRequestProperties()
        properties.set_option(
            ClientRequestProperties.request_timeout_option_name, timedelta(seconds=self._ingest_seconds)
        )
        try:
            # The SDK would wait for an hour.
            async with asyncio.timeout(self._ingest_seconds + self._margin_seconds):
                reply = await self._get_or_open_client().execute_mgmt(self._database, command, properties)
            reject_failed_ingestion(reply)
        except (KustoError, OSError, ValueError, LookupError, TypeError) as error:
            # The SDK raises the last three if the reply is not a Kusto reply.
            # The text of the error can contain the signed address of the file.
            _LOG.warning("a file cannot be ingested", extra=logs.fields(tag=ingestion_tag, error=type(error).__name__))
            if is_access_denied(error):
                raise build_denied_error("Ingestor") from error
            detail = "The query engine did not ingest the imported messages; retry later."
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", detail, retryAfter=5) from error

    async def close(self) -> None:
        """Close the connections to the query engine."""
        client, self._client = self._client, None
        credential, self._credential = self._credential, None
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    def _get_or_open_client(self) -> KustoClient:
        if self._client is None:
            connection, self._credential = build_kusto_connection_and_credential(self._uri, self._identity_client_id)
            self._client = _StrictKustoClient(connection, self._runtime)
        return self._client


def build_ingest_command(file_address: str, tag: str) -> str:
    """Build the Kusto command that ingests a Parquet file, unless a file with the same tag was ingested before.

    Args:
        file_address: signed URL of the file, or its path for the emulator.
        tag: tag that identifies the file.
    """
    source = file_address.replace("'", "''")
    tags = json.dumps([f"ingest-by:{tag}"])
    condition = json.dumps([tag])
    return (
        f".ingest into table {RAW_TABLE} (h@'{source}') "
        f"with (format='parquet', tags='{tags}', ingestIfNotExists='{condition}')"
    )
