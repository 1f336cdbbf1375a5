"""What the endpoint says about itself: health and counters."""

import asyncio
from collections.abc import Mapping
from typing import Any

import duckdb

from emulators.kusto.engine import Engine
from emulators.kusto.ingest import Ingest
from emulators.kusto.translator import Translator


class Figures:
    """Gathers health and counters from the parts of the process."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tables: tuple[str, ...],
        engine: Engine,
        translator: Translator,
        ingest: Ingest | None,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._engine = engine
        self._translator = translator
        self._ingest = ingest

    async def health(self) -> tuple[bool, Mapping[str, Any]]:
        """Return whether queries and ingestion work, and the document that says so."""
        try:
            await self._rows()
        except duckdb.Error:
            return False, {"status": "failed", "engine": "the database does not answer"}
        if self._ingest is None:
            return True, {"status": "ok"}
        well = self._ingest.alive() and not self._ingest.last_error
        ingest = {"lagSeconds": round(self._ingest.lag_seconds(), 3), "error": self._ingest.last_error}
        return well, {"status": "ok" if well else "failed", "ingest": ingest}

    async def stats(self) -> Mapping[str, Any]:
        """Return row counts, ingestion counters, and what became of the queries."""
        figures: dict[str, Any] = {
            "rows": await self._rows(),
            "queries": {"running": self._engine.running, "inside": self._engine.inside, **self._engine.outcomes},
            "translations": {"hits": self._translator.hits, "misses": self._translator.misses},
        }
        if self._ingest is not None:
            figures["ingest"] = self._ingest.figures()
        return figures

    async def _rows(self) -> dict[str, int]:
        # The cursor is taken here: a connection refuses to be used by two threads at once.
        return await asyncio.to_thread(_counts, self._connection.cursor(), self._tables)


def _counts(cursor: duckdb.DuckDBPyConnection, tables: tuple[str, ...]) -> dict[str, int]:
    with cursor:
        return {table: _count(cursor, table) for table in tables}


def _count(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    row = cursor.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608  a name of our own choosing
    return row[0] if row else 0
