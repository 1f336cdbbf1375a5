"""Port of imports: the table of recent telemetry that KQL queries read."""

from typing import Protocol


class TelemetryTable(Protocol):
    """Table of recent telemetry that KQL queries read."""

    async def ingest(self, blob_name: str, ingestion_tag: str) -> None:
        """Add the rows of a Parquet file to the table, unless a call with the same tag has already added them.

        Args:
            blob_name: name of the Parquet file in the container of job files; it has the columns of the table.
            ingestion_tag: unique name for this set of rows.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUERY_ENGINE_UNAVAILABLE``; try again.
        """
        ...
