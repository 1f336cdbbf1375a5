"""Execution of one query on DuckDB, from bound SQL to encoded rows; it runs in a thread and can be stopped."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from emulators.kusto.caches import StatementCache
from emulators.kusto.errors import execution_error, out_of_memory_error, result_too_large_error, timeout_error
from emulators.kusto.frames import KqlResult, columns_from_description, encode_rows
from emulators.kusto.library_errors import error_from_duckdb
from emulators.kusto.options import RequestOptions
from emulators.kusto.positions import with_position

_LOGGER = logging.getLogger(__name__)
_FIRST_FETCH_ROWS = 16
_MAX_FETCH_ROWS = 2000
_CHUNK_BYTES = 1024 * 1024


@dataclass(slots=True)
class Execution:
    """Execution of one query.

    Attributes:
        cursor: cursor of this execution only; closed at its end.
        statements: cache of parsed statements.
        text: text of the query, to find the positions of errors.
        sql: one SELECT.
        bound: values of its placeholders.
        options: limits of the result.
        stopped: set when the result is no longer needed.
    """

    cursor: duckdb.DuckDBPyConnection
    statements: StatementCache
    text: str
    sql: str
    bound: Mapping[str, Any]
    options: RequestOptions
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> KqlResult:
        """Execute the query and encode its rows.

        Raises:
            QueryError: the query failed or was stopped.
        """
        began = time.perf_counter()
        try:
            columns, rows = self._fetch()
        except duckdb.Error as error:
            raise with_position(error_from_duckdb(error), self.text) from error
        except MemoryError:
            raise out_of_memory_error() from None
        except (OverflowError, ValueError) as error:
            raise execution_error(str(error)) from error
        finally:
            self.cursor.close()
        return KqlResult(columns, rows, time.perf_counter() - began)

    def stop(self) -> None:
        """Interrupt the execution; repeat until it ends, because DuckDB loses an interrupt between statements."""
        self.stopped.set()
        self.cursor.interrupt()

    def _fetch(self) -> tuple[tuple[tuple[str, str], ...], bytes]:
        limited = f"SELECT * FROM ({self.sql}) LIMIT {self._compute_row_limit()}"  # noqa: S608  the translator's own SQL
        statement = self.statements.parse_select(self.cursor, limited)
        if self.stopped.is_set():
            raise timeout_error()
        if _LOGGER.isEnabledFor(logging.DEBUG):
            self._log_plan(limited)
        self.cursor.execute(statement, dict(self.bound) or None)
        columns = columns_from_description(self.cursor.description or ())
        return columns, b",".join(self._encode_chunks(columns))

    def _log_plan(self, sql: str) -> None:
        (_, plan), *_ = self.cursor.execute(f"EXPLAIN {sql}", dict(self.bound) or None).fetchall()
        _LOGGER.debug("the plan of a query:\n%s", plan)

    def _compute_row_limit(self) -> int:
        take = self.options.take_records
        one_more = self.options.max_records + 1
        return one_more if take is None else min(take, one_more)

    def _encode_chunks(self, columns: tuple[tuple[str, str], ...]) -> Iterator[bytes]:
        records = size = 0
        fetch_rows = _FIRST_FETCH_ROWS
        while rows := self.cursor.fetchmany(fetch_rows):
            if self.stopped.is_set():
                raise timeout_error()
            records += len(rows)
            if records > self.options.max_records:
                raise result_too_large_error(
                    f"The results of this query exceed the set limit of {self.options.max_records} records"
                )
            chunk = encode_rows(columns, rows)
            size += len(chunk)
            if size > self.options.max_bytes:
                raise result_too_large_error(
                    f"The results of this query exceed the set limit of {self.options.max_bytes} bytes"
                )
            yield chunk
            # A row can have megabytes: the next chunk is sized by the average row, so that the limit stops it in time.
            fetch_rows = min(_MAX_FETCH_ROWS, max(1, _CHUNK_BYTES * records // max(1, size)))
