"""Caches of query results and of parsed SQL statements."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import orjson

from emulators.kusto.errors import internal_error
from emulators.kusto.frames import KqlResult, ResultOrigin
from emulators.kusto.options import RequestOptions

MAX_RESULT_BYTES = 16 * 1024 * 1024
MAX_BYTES = 64 * 1024 * 1024

type CacheKey = bytes


@dataclass(frozen=True, slots=True)
class CachedQueryResult:
    """Cached query result, with the request for which the result was computed."""

    result: KqlResult
    origin: ResultOrigin


class QueryResultsCache:
    """LRU cache of query results with a maximum total size in bytes.

    A cached result remains even if the data changes; each request states the maximum age of the result that it accepts.
    See the page "Query results cache" of the Data Explorer documentation.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._results: OrderedDict[CacheKey, CachedQueryResult] = OrderedDict()
        self._bytes = 0

    @staticmethod
    def create_key(kql_text: str, parameters: Mapping[str, Any], options: RequestOptions) -> CacheKey:
        """Return the cache key of a request, from its query text, parameters and result limits."""
        limits = [options.take_records, options.max_records, options.max_bytes]
        return orjson.dumps([kql_text, parameters, limits], option=orjson.OPT_SORT_KEYS)

    def find(self, key: CacheKey, max_age: timedelta) -> CachedQueryResult | None:
        """Return the result with a cache key; None if no result is cached or the result is older than ``max_age``.

        Also return None if the result is newer than the current time: the clock was set back, so the result's age is
        unknown.
        """
        cached = self._results.get(key)
        if cached is None or not timedelta(0) <= datetime.now(UTC) - cached.origin.started_at <= max_age:
            return None
        self._results.move_to_end(key)
        return cached

    def store(self, key: CacheKey, cached: CachedQueryResult) -> None:
        """Store a result under a cache key; remove the older result even if the new one is too large to be stored."""
        self._remove_result(key)
        if _count_cached_bytes(key, cached) > MAX_RESULT_BYTES + len(key):
            return
        self._results[key] = cached
        self._bytes += _count_cached_bytes(key, cached)
        while self._bytes > self._max_bytes:
            self._remove_result(next(iter(self._results)))

    def _remove_result(self, key: CacheKey) -> None:
        cached = self._results.pop(key, None)
        if cached is not None:
            self._bytes -= _count_cached_bytes(key, cached)


def _count_cached_bytes(key: CacheKey, cached: CachedQueryResult) -> int:
    return len(key) + sum(len(each.rows) for each in (cached.result, *cached.result.further))


MAX_CACHED_CHARACTERS = 1_000_000
"""Maximum length of the cached SQL texts in total; their parse trees take about ten times as much memory."""


class StatementCache:
    """Thread-safe cache of parsed SQL statements, so that DuckDB parses the SQL of a repeated query only once."""

    def __init__(self) -> None:
        self._statements: OrderedDict[str, duckdb.Statement] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def parse_select(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
        """Parse SQL text that contains exactly one SELECT; return the statement, which can be executed repeatedly.

        Raises:
            QueryError: the SQL text is not exactly one SELECT.
            duckdb.ParserException: the text is not valid SQL.
        """
        with self._lock:
            known = self._statements.get(sql)
            if known is not None:
                self._statements.move_to_end(sql)
                return known
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
            raise internal_error()
        self._store_statement(sql, statements[0])
        return statements[0]

    def _store_statement(self, sql: str, statement: duckdb.Statement) -> None:
        with self._lock:
            if sql not in self._statements:
                self._statements[sql] = statement
                self._characters += len(sql)
            while self._characters > MAX_CACHED_CHARACTERS:
                oldest, _ = self._statements.popitem(last=False)
                self._characters -= len(oldest)
