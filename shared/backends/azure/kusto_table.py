"""Telemetry table in Azure Data Explorer, or in its local emulator: ingestion of Parquet files from blobs."""

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from azure.kusto.data.aio import KustoClient
from azure.kusto.data.exceptions import KustoError

from shared.backends.azure.kusto import build_connection
from shared.errors import Kind, WorkspaceError
from shared.observability import logs

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

RAW_TABLE = "TelemetryRaw"
_LOG = logs.get_logger("kusto")


class KustoTelemetryTable:
    """Implementation of TelemetryTable: stores recent telemetry in Azure Data Explorer or its local emulator.

    Each command has a tag; a second command with the same tag ingests nothing
    (https://learn.microsoft.com/kusto/management/extent-tags). The time of ingestion is the time of the command; the
    retention starts at that time.

    Args:
        uri: URL of the cluster, or of the local emulator.
        database: name of the database with the telemetry.
        locate: converts the name of a file's blob to the address from which the engine reads the file: a signed URL,
            or a path for the emulator.
        identity_client_id: client id of the user-assigned identity; empty for the system-assigned identity.
    """

    def __init__(
        self, uri: str, database: str, locate: Callable[[str], Awaitable[str]], identity_client_id: str = ""
    ) -> None:
        self._uri = uri
        self._database = database
        self._locate = locate
        self._identity_client_id = identity_client_id
        self._client: KustoClient | None = None
        self._credential: DefaultAzureCredential | None = None

    async def ingest(self, blob: str, tag: str) -> None:
        command = build_command(await self._locate(blob), tag)
        try:
            await self._get_or_open_client().execute_mgmt(self._database, command)
        except (KustoError, OSError, ValueError, LookupError) as error:
            # The text of the error may contain the signed address of the file.
            _LOG.warning("a file cannot be ingested", extra=logs.fields(tag=tag, error=type(error).__name__))
            detail = "The query engine does not ingest imported messages; retry later."
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
            connection, self._credential = build_connection(self._uri, self._identity_client_id)
            self._client = KustoClient(connection)
        return self._client


def build_command(address: str, tag: str) -> str:
    """Build the Kusto command that ingests a Parquet file, unless a file with the same tag was ingested before.

    Args:
        address: signed URL of the file, or its path for the emulator.
        tag: tag that identifies the file.
    """
    source = address.replace("'", "''")
    tags = json.dumps([f"ingest-by:{tag}"])
    condition = json.dumps([tag])
    return (
        f".ingest into table {RAW_TABLE} (h@'{source}') "
        f"with (format='parquet', tags='{tags}', ingestIfNotExists='{condition}')"
    )
