"""Detection of duplicates: messages sent again within a day, as in the query table."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.cold_data.engine import select_repeated_ids, select_rows_with_ids

if TYPE_CHECKING:
    import duckdb

DUPLICATE_WINDOW = 24 * 3600 * 1_000_000
"""In microseconds."""
TABLE = "copies"
"""Temporary table of duplicate rows: partition, sequence and enqueued time in microseconds."""


class DuplicateFinder:
    """Finds duplicates with one DuckDB engine, in ascending blocks of hours.

    Of the messages with one id, the first that the hub received is original; those within a day of an original are
    duplicates. Only ids that occur more than once are examined individually.
    """

    def __init__(self, engine: "duckdb.DuckDBPyConnection") -> None:
        self._engine = engine
        self._execute(f'CREATE TEMP TABLE {TABLE} ("partition" VARCHAR, "sequence" BIGINT, enqueued BIGINT)')

    def add(self, files: Sequence[Path], until: int) -> int:
        """Add the duplicates among rows to the table; return the number of duplicates so far.

        Args:
            files: Parquet files of a block of hours and of the adjacent hours.
            until: end of the block, microseconds since 1970; later rows are decided with later blocks.
        """
        if files:
            self._execute(f"CREATE OR REPLACE TEMP TABLE repeated AS {select_repeated_ids(files)}")
            # A duplicate from an earlier block must not count as an original here, where its own original is missing.
            unknown = f'ANTI JOIN {TABLE} USING ("partition", "sequence", enqueued)'
            self._execute(
                f"CREATE OR REPLACE TEMP TABLE suspects AS {select_rows_with_ids(files, 'repeated')} {unknown}"
            )
            self._add_within_a_day(until)
            self._add_beyond_a_day(until)
        [(count,)] = self._execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608  constant names
        return int(count)

    def _add_within_a_day(self, until: int) -> None:
        """Add duplicates of ids whose arrivals are all within a day: all rows but the first."""
        self._execute(
            f'INSERT INTO {TABLE} SELECT "partition", "sequence", enqueued FROM (SELECT *, '  # noqa: S608  constant namess
            'row_number() OVER (PARTITION BY message_id ORDER BY enqueued, "partition", "sequence") AS nth, '
            "max(enqueued) OVER by_id - min(enqueued) OVER by_id AS spread "
            "FROM suspects WINDOW by_id AS (PARTITION BY message_id)) "
            f"WHERE nth > 1 AND spread <= {DUPLICATE_WINDOW} AND happened < {until}"
        )

    def _add_beyond_a_day(self, until: int) -> None:
        """Add duplicates of ids whose arrivals span more than a day."""
        rows = self._execute(
            'SELECT message_id, enqueued, "partition", "sequence", happened FROM suspects '  # noqa: S608  constant namess
            "WHERE message_id IN (SELECT message_id FROM suspects GROUP BY message_id "
            f"HAVING max(enqueued) - min(enqueued) > {DUPLICATE_WINDOW}) ORDER BY ALL"
        )
        duplicates: list[tuple[str, int, int]] = []
        for _, arrivals in groupby(rows, key=itemgetter(0)):
            original: int | None = None
            for _, enqueued, partition, sequence, happened in arrivals:
                if original is None or enqueued - original > DUPLICATE_WINDOW:
                    original = enqueued
                elif happened < until:
                    duplicates.append((partition, sequence, enqueued))
        if duplicates:
            self._engine.executemany(f"INSERT INTO {TABLE} VALUES (?, ?, ?)", duplicates)  # noqa: S608  constant names

    def _execute(self, query: str) -> list[tuple[Any, ...]]:
        return self._engine.execute(query).fetchall()
