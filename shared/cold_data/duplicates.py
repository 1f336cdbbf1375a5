"""Which rows are copies: a message that comes again within a day of its first arrival, as the query table has it."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.cold_data.engine import select_repeated_ids, select_rows_with_ids

if TYPE_CHECKING:
    import duckdb

DUPLICATE_WINDOW = 24 * 3600 * 1_000_000
"""Microseconds."""
TABLE = "copies"
"""Temporary table of the rows to be left out: partition, sequence, and when the hub took them, in to_microseconds."""


class DuplicateFinder:
    """Finds copies in one engine, block of hours by block of hours in order of time.

    Of messages with one id the first that the hub took is kept, and those within a day of one that is kept are
    copies. Only ids that repeat are looked at one by one.
    """

    def __init__(self, engine: "duckdb.DuckDBPyConnection") -> None:
        self._engine = engine
        self._execute(f'CREATE TEMP TABLE {TABLE} ("partition" VARCHAR, "sequence" BIGINT, enqueued BIGINT)')

    def add(self, files: Sequence[Path], until: int) -> int:
        """Put the copies among rows into the table, and return how many there are by now.

        Args:
            files: of a block of hours, and of those around it.
            until: the end of the block, to_microseconds since 1970; what lies behind it is decided with later blocks.
        """
        if files:
            self._execute(f"CREATE OR REPLACE TEMP TABLE repeated AS {select_repeated_ids(files)}")
            # A copy known from an earlier block makes no copies, though the message that it copies is out of sight.
            unknown = f'ANTI JOIN {TABLE} USING ("partition", "sequence", enqueued)'
            self._execute(
                f"CREATE OR REPLACE TEMP TABLE suspects AS {select_rows_with_ids(files, 'repeated')} {unknown}"
            )
            self._add_close(until)
            self._add_spread(until)
        [(count,)] = self._execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608  our own name
        return int(count)

    def _add_close(self, until: int) -> None:
        """Add the copies among messages whose arrivals all lie within a day: all but the first."""
        self._execute(
            f'INSERT INTO {TABLE} SELECT "partition", "sequence", enqueued FROM (SELECT *, '  # noqa: S608  our own names
            'row_number() OVER (PARTITION BY message_id ORDER BY enqueued, "partition", "sequence") AS nth, '
            "max(enqueued) OVER by_id - min(enqueued) OVER by_id AS spread "
            "FROM suspects WINDOW by_id AS (PARTITION BY message_id)) "
            f"WHERE nth > 1 AND spread <= {DUPLICATE_WINDOW} AND happened < {until}"
        )

    def _add_spread(self, until: int) -> None:
        """Add the copies among messages whose arrivals lie more than a day apart."""
        rows = self._execute(
            'SELECT message_id, enqueued, "partition", "sequence", happened FROM suspects '  # noqa: S608  our own names
            "WHERE message_id IN (SELECT message_id FROM suspects GROUP BY message_id "
            f"HAVING max(enqueued) - min(enqueued) > {DUPLICATE_WINDOW}) ORDER BY ALL"
        )
        found: list[tuple[str, int, int]] = []
        for _, arrivals in groupby(rows, key=itemgetter(0)):
            kept: int | None = None
            for _, enqueued, partition, sequence, happened in arrivals:
                if kept is None or enqueued - kept > DUPLICATE_WINDOW:
                    kept = enqueued
                elif happened < until:
                    found.append((partition, sequence, enqueued))
        if found:
            self._engine.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", found)  # noqa: S608  our own name

    def _execute(self, query: str) -> list[tuple[Any, ...]]:
        return self._engine.execute(query).fetchall()
