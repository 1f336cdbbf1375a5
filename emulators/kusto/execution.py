"""One query on DuckDB, from bound SQL to encoded rows; runs in a thread and can be told to stop."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from emulators.kusto.engine_errors import reworded
from emulators.kusto.errors import execution_failed, out_of_memory, result_too_large, timed_out
from emulators.kusto.frames import Answer, columns_of, encode_rows
from emulators.kusto.options import RequestOptions
from emulators.kusto.positions import placed
from emulators.kusto.statements import Statements

_LOGGER = logging.getLogger(__name__)
_FIRST_ROWS = 16
_MOST_ROWS = 2000
_CHUNK_BYTES = 1024 * 1024


@dataclass(slots=True)
class Execution:
    """One run of one query.

    Attributes:
        cursor: a cursor for this run alone; closed when it ends.
        statements: keeps what is parsed.
        text: the query as it was asked, where errors have their place.
        sql: one SELECT.
        bound: values of its placeholders.
        options: limits of the result.
        stopped: set when nobody waits for the result any more.
    """

    cursor: duckdb.DuckDBPyConnection
    statements: Statements
    text: str
    sql: str
    bound: Mapping[str, Any]
    options: RequestOptions
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> Answer:
        """Execute the query and encode its rows.

        Raises:
            QueryError: the query failed or was stopped.
        """
        began = time.perf_counter()
        try:
            columns, rows = self._answer()
        except duckdb.Error as error:
            raise placed(reworded(error), self.text) from error
        except MemoryError:
            raise out_of_memory() from None
        except (OverflowError, ValueError) as error:
            raise execution_failed(str(error)) from error
        finally:
            self.cursor.close()
        return Answer(columns, rows, time.perf_counter() - began)

    def stop(self) -> None:
        """Ask the run to end; to be called again until it has, since DuckDB forgets an interrupt between statements."""
        self.stopped.set()
        self.cursor.interrupt()

    def _answer(self) -> tuple[tuple[tuple[str, str], ...], bytes]:
        limited = f"SELECT * FROM ({self.sql}) LIMIT {self._limit()}"  # noqa: S608  the translator's own SQL
        statement = self.statements.select(self.cursor, limited)
        if self.stopped.is_set():
            raise timed_out()
        if _LOGGER.isEnabledFor(logging.DEBUG):
            self._log_plan(limited)
        self.cursor.execute(statement, dict(self.bound) or None)
        columns = columns_of(self.cursor.description or ())
        return columns, b",".join(self._chunks(columns))

    def _log_plan(self, sql: str) -> None:
        (_, plan), *_ = self.cursor.execute(f"EXPLAIN {sql}", dict(self.bound) or None).fetchall()
        _LOGGER.debug("the plan of a query:\n%s", plan)

    def _limit(self) -> int:
        take = self.options.take_records
        one_more = self.options.max_records + 1
        return one_more if take is None else min(take, one_more)

    def _chunks(self, columns: tuple[tuple[str, str], ...]) -> Iterator[bytes]:
        records = size = 0
        at_once = _FIRST_ROWS
        while rows := self.cursor.fetchmany(at_once):
            if self.stopped.is_set():
                raise timed_out()
            records += len(rows)
            if records > self.options.max_records:
                raise result_too_large(
                    f"The results of this query exceed the set limit of {self.options.max_records} records"
                )
            chunk = encode_rows(columns, rows)
            size += len(chunk)
            if size > self.options.max_bytes:
                raise result_too_large(
                    f"The results of this query exceed the set limit of {self.options.max_bytes} bytes"
                )
            yield chunk
            # A row can be megabytes: as many at once as the rows so far suggest, so that the limit is met in time.
            at_once = min(_MOST_ROWS, max(1, _CHUNK_BYTES * records // max(1, size)))
