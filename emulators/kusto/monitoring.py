"""Health check and statistics of the Data Explorer emulator."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import duckdb

from emulators.kusto.engine import Engine
from emulators.kusto.ingest import HubConsumer
from emulators.kusto.sandbox import read_memory_bytes_by_purpose
from emulators.kusto.translator import Translator


class Health(NamedTuple):
    """Result of the health check, and its details as a JSON object."""

    is_healthy: bool
    details: Mapping[str, Any]


class EndpointMonitor:
    """Collects health and statistics from the parts of the emulator: engine, translator and ingestion."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tables: tuple[str, ...],
        engine: Engine,
        translator: Translator,
        consumer: HubConsumer | None,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._engine = engine
        self._translator = translator
        self._consumer = consumer

    async def check_health(self) -> Health:
        """Check whether the database responds and ingestion works."""
        try:
            await self._count_rows_by_table()
        except duckdb.Error:
            return Health(False, {"status": "failed", "engine": "the database does not respond"})
        if self._consumer is None:
            return Health(True, {"status": "ok"})
        healthy = self._consumer.is_alive() and not self._consumer.last_error
        ingest = {"lagSeconds": round(self._consumer.lag_seconds, 3), "error": self._consumer.last_error}
        return Health(healthy, {"status": "ok" if healthy else "failed", "ingest": ingest})

    async def read_stats(self) -> Mapping[str, Any]:
        """Return statistics: rows, queries by outcome, cached translations, memory by its purpose, and ingestion."""
        document: dict[str, Any] = {
            "rows": await self._count_rows_by_table(),
            "queries": {"running": self._engine.running, "inside": self._engine.pending, **self._engine.outcomes},
            "translations": {"hits": self._translator.hits, "misses": self._translator.misses},
            "memoryBytes": await asyncio.to_thread(_read_memory_bytes_by_purpose, self._connection.cursor()),
        }
        if self._consumer is not None:
            document["ingest"] = self._consumer.read_counters()
        return document

    async def _count_rows_by_table(self) -> dict[str, int]:
        # The cursor is opened in this thread, because two threads must not use a connection at the same time.
        return await asyncio.to_thread(_count_rows_of_tables, self._connection.cursor(), self._tables)


def _count_rows_of_tables(cursor: duckdb.DuckDBPyConnection, tables: tuple[str, ...]) -> dict[str, int]:
    with cursor:
        return {table: _count_table_rows(cursor, table) for table in tables}


def _read_memory_bytes_by_purpose(cursor: duckdb.DuckDBPyConnection) -> dict[str, int]:
    with cursor:
        return {purpose: size for purpose, size in read_memory_bytes_by_purpose(cursor).items() if size}


def _count_table_rows(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    row = cursor.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608  a checked table name
    return row[0] if row else 0
