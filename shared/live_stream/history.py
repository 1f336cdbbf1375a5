"""Reader of stored impulses (normalised telemetry messages) in the table Telemetry, oldest first, page by page."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from shared.errors import WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.impulses import encode_impulse_from_texts
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult, QueryEngine
from shared.warm_queries.results import to_row_objects

PAGE_ROWS: Final = 5_000
TIMEOUT_SECONDS = 60
_PAGE_SHRINK_FACTOR: Final = 5
"""Number by which the page size is divided after the engine has rejected a page as too large."""

_MIN_PAGE_ROWS: Final = 40
"""Minimum number of rows of a page: 40 messages of 256 KiB, the maximum, are 10 MiB, which the engine accepts."""

MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a page's impulses, unless it has only one; a replay holds its page while it waits for its client."""

_SLICE_ROWS: Final = 500
"""Number of rows that are converted in one call; other work can use the worker thread between the calls."""

_FROM, _TO = "_oi_from", "_oi_to"
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# The payload is read as text, because values of a dynamic column would be parsed and serialised again.
_QUERY = f"""\
declare query_parameters({_FROM}:datetime, {_TO}:datetime);
Telemetry
| where Timestamp >= {_FROM} and Timestamp < {_TO} and ConnectionLookup in ({{connections}})
| project Timestamp, ConnectionLookup, SurfaceLookups, DeviceId, MessageId, Payload = tostring(Payload)
| order by Timestamp asc, ConnectionLookup asc, strlen(MessageId) asc, MessageId asc
{{skip}}| take {{rows}}"""
_SKIP = """\
| serialize _oi_row = row_number()
| where _oi_row > {count}
| project-away _oi_row
"""

type ImpulseKey = tuple[str, str]
"""Connection and message id, which together identify an impulse (telemetry message)."""


@dataclass(frozen=True, slots=True)
class StoredImpulse:
    """Impulse (normalised telemetry message) from the table Telemetry.

    Attributes:
        key: connection and message id, which together identify the message.
        timestamp: time of the measurement.
        text: the impulse as JSON text, with empty headers, because the table stores none.
    """

    key: ImpulseKey
    timestamp: datetime
    text: bytes


class HistoryPage(NamedTuple):
    """Page of stored impulses.

    Attributes:
        impulses: impulses, oldest first.
        is_last: whether no later page follows.
    """

    impulses: list[StoredImpulse]
    is_last: bool


class _QueriedPage(NamedTuple):
    """Page of stored impulses that one query has read.

    Attributes:
        impulses: impulses, oldest first.
        is_complete: whether no later impulses of the requested time range exist.
        next_rows: size in rows with which the next page should be read.
    """

    impulses: list[StoredImpulse]
    is_complete: bool
    next_rows: int


class History:
    """Reads stored impulses from the table Telemetry through the query engine."""

    def __init__(self, engine: QueryEngine, page_rows: int = PAGE_ROWS, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._engine = engine
        self._page_rows = page_rows
        self._runtime = runtime

    async def read_pages(
        self, connection_lookups: Sequence[str], since: datetime, until: datetime = _END_OF_TIME
    ) -> AsyncIterator[HistoryPage]:
        """Yield pages of the stored messages of connections, oldest first; two pages can contain the same message.

        There is always a last page, which can be empty.

        A page starts at the last timestamp of the previous page, so the messages of this timestamp are repeated. If
        a whole page has one timestamp, the following pages continue within this timestamp.

        Args:
            connection_lookups: lookups (ids in URLs) of the connections.
            since: earliest timestamp of the messages.
            until: end of the range of timestamps, exclusive.

        Raises:
            WorkspaceError: any error of the engine.
        """
        if not connection_lookups:
            yield HistoryPage([], is_last=True)
            return
        rows, skipped_rows = self._page_rows, 0
        while True:
            # To skip rows is expensive, because the engine sorts them again; so it is limited to one timestamp.
            end = min(since + _MICROSECOND, until) if skipped_rows else until
            page, is_complete, rows = await self._read_page(connection_lookups, since, end, rows, skipped_rows)
            is_last = is_complete and end == until
            if page or is_last:
                yield HistoryPage(page, is_last)
            if is_last:
                return
            if is_complete:
                since, skipped_rows = end, 0
            elif page[-1].timestamp > since:
                since = page[-1].timestamp
            else:
                skipped_rows += len(page)

    async def _read_page(
        self, connection_lookups: Sequence[str], since: datetime, until: datetime, page_rows: int, skipped_rows: int
    ) -> _QueriedPage:
        """Return a page of at most ``page_rows`` messages, with the number of rows to request for the next page.

        The page is shorter if the engine rejects a larger result, or if its messages reach ``MAX_PAGE_BYTES``. The next
        page gets the limit of rows that this page had in the end; if this page is full and has less than half of
        ``MAX_PAGE_BYTES``, the limit is doubled.
        """
        while True:
            query = _build_history_query(connection_lookups, since, until, skipped_rows, page_rows)
            try:
                impulses = await self._convert_engine_result(await self._engine.execute(query))
            except WorkspaceError as error:
                if error.code != "QUERY_TOO_LARGE" or page_rows <= _MIN_PAGE_ROWS:
                    raise
                page_rows = max(page_rows // _PAGE_SHRINK_FACTOR, _MIN_PAGE_ROWS)
            else:
                return self._limit_page(impulses, page_rows)

    def _limit_page(self, impulses: list[StoredImpulse], page_rows: int) -> _QueriedPage:
        """Return the first messages of a result of at most ``page_rows`` messages, up to ``MAX_PAGE_BYTES``."""
        count = _count_impulses_of_page(impulses)
        if count < len(impulses):
            return _QueriedPage(impulses[:count], is_complete=False, next_rows=count)
        if count < page_rows:
            return _QueriedPage(impulses, is_complete=True, next_rows=page_rows)
        is_small = sum(len(impulse.text) for impulse in impulses) < MAX_PAGE_BYTES / 2
        next_rows = min(2 * page_rows, self._page_rows) if is_small else page_rows
        return _QueriedPage(impulses, is_complete=False, next_rows=next_rows)

    async def _convert_engine_result(self, result: EngineResult) -> list[StoredImpulse]:
        impulses: list[StoredImpulse] = []
        for start in range(0, len(result.rows), _SLICE_ROWS):
            rows = result.rows[start : start + _SLICE_ROWS]
            size = result.size * len(rows) // len(result.rows)
            impulses += await self._runtime.run_in_thread_if_large(size, _to_stored_impulses, result.columns, rows)
        return impulses


def _count_impulses_of_page(impulses: Sequence[StoredImpulse]) -> int:
    """Return how many messages, from the first on, fit in a page of ``MAX_PAGE_BYTES``; at least 1 if there is any."""
    total = 0
    for number, impulse in enumerate(impulses):
        total += len(impulse.text)
        if number and total > MAX_PAGE_BYTES:
            return number
    return len(impulses)


def _build_history_query(
    connection_lookups: Sequence[str], since: datetime, until: datetime, skipped_rows: int, max_rows: int
) -> EngineQuery:
    lookups = ", ".join(f'"{connection}"' for connection in connection_lookups)
    skip = _SKIP.format(count=skipped_rows) if skipped_rows else ""
    text = _QUERY.format(connections=lookups, skip=skip, rows=max_rows)
    bounds = {name: f"datetime({format_rfc3339(instant)})" for name, instant in ((_FROM, since), (_TO, until))}
    return EngineQuery(text, bounds, max_rows, TIMEOUT_SECONDS)


def _to_stored_impulses(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[StoredImpulse]:
    return [_to_stored_impulse(row) for row in to_row_objects(columns, rows)]


def _to_stored_impulse(row: dict[str, Any]) -> StoredImpulse:
    connection, message_id, timestamp = row["ConnectionLookup"], row["MessageId"], row["Timestamp"]
    surfaces, payload = tuple(row["SurfaceLookups"] or ()), (row["Payload"] or "{}").encode()
    text = encode_impulse_from_texts(message_id, timestamp, row["DeviceId"], connection, surfaces, payload)
    return StoredImpulse((connection, message_id), parse_rfc3339(timestamp), text)
