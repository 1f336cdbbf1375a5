"""Reader of stored impulses (normalised telemetry messages) in the table Telemetry, oldest first, page by page."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.errors import invalid
from shared.telemetry.impulses import encode_impulse
from shared.telemetry.models import Impulse
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.warm_queries.ports import EngineQuery, QueryEngine
from shared.warm_queries.results import to_row_objects

PAGE_ROWS = 5_000
MAX_PAGE_ROWS = 400_000
TIMEOUT_SECONDS = 60
_FROM, _TO = "_oi_from", "_oi_to"
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
_QUERY = f"""\
declare query_parameters({_FROM}:datetime, {_TO}:datetime);
Telemetry
| where Timestamp >= {_FROM} and Timestamp < {_TO} and ConnectionLookup in ({{connections}})
| project Timestamp, ConnectionLookup, SurfaceLookups, DeviceId, MessageId, Payload
| order by Timestamp asc, ConnectionLookup asc, strlen(MessageId) asc, MessageId asc
| take {{rows}}"""

type Key = tuple[str, str]
"""Connection and message id, which together identify an impulse (telemetry message)."""


@dataclass(frozen=True, slots=True)
class StoredImpulse:
    """Impulse (normalised telemetry message) from the table Telemetry.

    Attributes:
        key: connection and message id, which together identify the message.
        timestamp: time of the measurement.
        text: the impulse as JSON text, with empty headers, because the table stores none.
    """

    key: Key
    timestamp: datetime
    text: bytes


class History:
    """Reads stored impulses from the table Telemetry through the query engine."""

    def __init__(self, engine: QueryEngine, page_rows: int = PAGE_ROWS) -> None:
        self._engine = engine
        self._page_rows = page_rows

    async def read_pages(
        self, connections: Sequence[str], since: datetime, until: datetime = _END_OF_TIME
    ) -> AsyncIterator[list[StoredImpulse]]:
        """Yield pages of the stored messages of connections; two pages can contain the same message.

        A page starts at the last timestamp of the previous page, so the messages of this timestamp are repeated. If
        they fill a whole page, the next page is larger.

        Args:
            connections: lookups (ids in URLs) of the connections.
            since: earliest timestamp of the messages.
            until: end of the range of timestamps, exclusive.

        Raises:
            WorkspaceError: any error of the engine; INVALID ``QUERY_TOO_LARGE`` if too many messages share a timestamp.
        """
        rows = self._page_rows
        while connections:
            page = await self._read_page(connections, since, until, rows)
            if page:
                yield page
            if len(page) < rows:
                return
            if page[-1].timestamp > since:
                since, rows = page[-1].timestamp, self._page_rows
            elif rows < MAX_PAGE_ROWS:
                rows *= 4
            else:
                raise invalid(
                    "since", "too many messages have the same timestamp; choose a later start", code="QUERY_TOO_LARGE"
                )

    async def _read_page(
        self, connections: Sequence[str], since: datetime, until: datetime, rows: int
    ) -> list[StoredImpulse]:
        lookups = ", ".join(f'"{connection}"' for connection in connections)
        text = _QUERY.format(connections=lookups, rows=rows)
        bounds = {name: f"datetime({format_rfc3339(instant)})" for name, instant in ((_FROM, since), (_TO, until))}
        query = EngineQuery(text, bounds, rows, TIMEOUT_SECONDS)
        result = await self._engine.execute(query)
        return [_to_stored_impulse(row) for row in to_row_objects(result.columns, result.rows)]


def _to_stored_impulse(row: dict[str, Any]) -> StoredImpulse:
    timestamp = parse_rfc3339(row["Timestamp"])
    impulse = Impulse(
        message_id=row["MessageId"],
        timestamp=timestamp,
        connection=row["ConnectionLookup"],
        surfaces=tuple(row["SurfaceLookups"] or ()),
        device_id=row["DeviceId"],
        headers={},
        payload=row["Payload"] or {},
    )
    return StoredImpulse((impulse.connection, impulse.message_id), timestamp, encode_impulse(impulse))
