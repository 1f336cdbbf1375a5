"""Parquet files that add imported messages to the table of recent telemetry."""

from collections.abc import Sequence

import orjson
import pyarrow as pa


def build_table_file(connection: str, surfaces: Sequence[str], messages: pa.Table) -> pa.Table:
    """Convert imported messages to the columns of the KQL table ``Telemetry``; dynamic values are JSON texts.

    Args:
        connection: lookup (id in URLs) of the connection.
        surfaces: lookups (ids in URLs) of the surfaces (groups of connections) that contain the connection.
        messages: messages with the columns ``step_rows.SCHEMA``.
    """
    count = messages.num_rows
    return pa.table(
        {
            "Timestamp": messages.column("timestamp"),
            "ConnectionLookup": pa.repeat(pa.scalar(connection, pa.string()), count),
            "SurfaceLookups": pa.repeat(pa.scalar(orjson.dumps(list(surfaces)).decode(), pa.string()), count),
            "DeviceId": messages.column("device_id"),
            "MessageId": messages.column("message_id"),
            "Payload": messages.column("payload"),
        }
    )
