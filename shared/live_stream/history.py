"""Impulses out of the telemetry table, oldest first, page by page."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shared.errors import invalid
from shared.telemetry.impulses import encode
from shared.telemetry.models import Impulse
from shared.timestamps import parse_rfc3339, rfc3339
from shared.warm_queries.ports import EngineQuery, QueryEngine
from shared.warm_queries.results import row_objects

PAGE_ROWS = 5_000
MOST_PAGE_ROWS = 400_000
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
"""What tells an impulse from every other: its connection and its ID."""


@dataclass(frozen=True, slots=True)
class StoredImpulse:
    """An impulse out of the table.

    Attributes:
        key: connection and ID.
        timestamp: when it was measured.
        text: the impulse as JSON text; the table keeps no headers.
    """

    key: Key
    timestamp: datetime
    text: bytes


class History:
    """Reads the telemetry table through the query engine."""

    def __init__(self, engine: QueryEngine, page_rows: int = PAGE_ROWS) -> None:
        self._engine = engine
        self._page_rows = page_rows

    async def read_pages(
        self, connections: Sequence[str], since: datetime, until: datetime = _END_OF_TIME
    ) -> AsyncIterator[list[StoredImpulse]]:
        """Give the impulses of connections from an instant on; those at a page's end may come again.

        A page begins at the instant at which the one before ended: more impulses may share it than a page holds, and
        then the page grows.

        Args:
            connections: lookups out of the catalog.
            since: of the impulses' own timestamps.
            until: of the same; those measured then or later are left out.

        Raises:
            WorkspaceError: what the engine raises; INVALID ``QUERY_TOO_LARGE`` when one instant fills any page.
        """
        rows = self._page_rows
        while connections:
            page = await self._page(connections, since, until, rows)
            if page:
                yield page
            if len(page) < rows:
                return
            if page[-1].timestamp > since:
                since, rows = page[-1].timestamp, self._page_rows
            elif rows < MOST_PAGE_ROWS:
                rows *= 4
            else:
                raise invalid("since", "too many impulses share one instant to be replayed", code="QUERY_TOO_LARGE")

    async def _page(
        self, connections: Sequence[str], since: datetime, until: datetime, rows: int
    ) -> list[StoredImpulse]:
        listed = ", ".join(f'"{connection}"' for connection in connections)
        text = _QUERY.format(connections=listed, rows=rows)
        bounds = {name: f"datetime({rfc3339(instant)})" for name, instant in ((_FROM, since), (_TO, until))}
        query = EngineQuery(text, bounds, rows, TIMEOUT_SECONDS)
        result = await self._engine.execute(query)
        return [_past(row) for row in row_objects(result.columns, result.rows)]


def _past(row: dict[str, Any]) -> StoredImpulse:
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
    return StoredImpulse((impulse.connection, impulse.message_id), timestamp, encode(impulse))
