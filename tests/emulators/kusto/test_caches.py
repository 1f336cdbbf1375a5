"""Tests of the cache of query results and the cache of parsed statements."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import httpx
import pytest
from azure.kusto.data import ClientRequestProperties, KustoClient, KustoConnectionStringBuilder

from emulators.kusto.caches import (
    MAX_CACHED_CHARACTERS,
    MAX_RESULT_BYTES,
    CachedQueryResult,
    QueryResultsCache,
    StatementCache,
)
from emulators.kusto.errors import QueryError
from emulators.kusto.frames import KqlResult, ResultOrigin
from emulators.kusto.options import RequestOptions
from tests.emulators.kusto.endpoints import Endpoint

NOW = "declare query_parameters(n:long = 1); print at = now(), n = n"
MINUTE = timedelta(minutes=1)


def query_with_cache(
    endpoint: Endpoint, text: str = NOW, request_id: str = "", n: int | None = None, **options: Any
) -> Any:
    """Execute a query; return its value and the reply's property ``ServerCache`` or None."""
    properties = ClientRequestProperties()
    if request_id:
        properties.client_request_id = request_id
    for name, option in options.items():
        properties.set_option(name, option)
    if n is not None:
        properties.set_parameter("n", str(n))
    with KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        answer = client.execute_query("Telemetry", text, properties)
    extended = {row["Key"]: row["Value"] for row in answer.tables[0]}
    cached = extended.get("ServerCache")
    return answer.primary_results[0].raw_rows[0][0], cached if cached is None else json.loads(
        str(cached).replace("'", '"')
    )


def test_a_recent_result_is_returned_from_the_cache(endpoint: Endpoint) -> None:
    """A repeated query gets the cached result and the first request's id, if the result is recent enough."""
    text = NOW + " | where n > -1"
    first, uncached = query_with_cache(endpoint, text, "first-request", query_results_cache_max_age="00:05:00")
    again, origin = query_with_cache(endpoint, text, "second-request", query_results_cache_max_age="00:05:00")
    assert uncached is None
    assert again == first
    assert origin["OriginalClientRequestId"] == "first-request"
    started = datetime.fromisoformat(origin["OriginalStartedOn"])
    assert abs(datetime.now(UTC) - started) < timedelta(minutes=5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"query_results_cache_max_age": "00:00:00"},
        {"query_results_cache_max_age": "00:05:00", "n": 2},
        {"query_results_cache_max_age": "00:05:00", "text": NOW + " | where n > 0"},
        {"query_results_cache_max_age": "00:05:00", "query_take_max_records": 7},
        {"query_results_cache_max_age": "00:05:00", "query_results_cache_force_refresh": True},
    ],
)
def test_a_query_with_a_different_request_is_executed_again(endpoint: Endpoint, changes: dict[str, Any]) -> None:
    """A query is executed if any part of the request is different, or if the request allows no cached result."""
    first, _ = query_with_cache(endpoint, query_results_cache_max_age="00:05:00")
    then, origin = query_with_cache(endpoint, **changes)
    assert origin is None
    assert then > first


def test_a_failed_query_is_not_cached(endpoint: Endpoint) -> None:
    """A query that failed is not cached and is executed again."""
    text = "print toscalar(range i from 1 to 3 step 1 | where error_(i))"
    for _ in range(2):
        assert endpoint.query_error_code(text, query_results_cache_max_age="00:05:00")


@pytest.mark.parametrize("age", ["soon", 5, "-00:00:01", "1 day, 0:00:00"])
def test_the_maximum_age_of_cached_results_must_be_a_timespan(endpoint: Endpoint, age: object) -> None:
    """A maximum age that is not a timespan is rejected with the option's name."""
    options = {"Options": {"query_results_cache_max_age": age}}
    reply = httpx.post(f"{endpoint.url}/v2/rest/query", timeout=60, json={"csl": "print 1", "properties": options})
    assert reply.status_code == 400
    assert "query_results_cache_max_age" in reply.text


def build_cached_result(size: int, age: timedelta = timedelta()) -> CachedQueryResult:
    """Return a cached result with the given size and age."""
    return CachedQueryResult(KqlResult((), b"x" * size, 0.0), ResultOrigin("id", datetime.now(UTC) - age))


def build_cache_key(text: str) -> bytes:
    """Return the cache key of a query without parameters."""
    return QueryResultsCache.create_key(text, {}, RequestOptions())


def test_cached_results_older_than_the_maximum_age_of_a_request_are_ignored() -> None:
    """A result that is too old for one request stays cached for requests that allow a higher age."""
    cache = QueryResultsCache()
    cache.store(build_cache_key("a"), build_cached_result(1, MINUTE))
    assert cache.find(build_cache_key("a"), MINUTE / 2) is None
    assert cache.find(build_cache_key("a"), 2 * MINUTE) is not None


def test_a_result_is_ignored_after_the_clock_was_set_back() -> None:
    """If the clock was set back to a time before a cached result, the result's age is unknown, so it is not used."""
    cache = QueryResultsCache()
    cache.store(build_cache_key("a"), build_cached_result(1, -MINUTE))
    assert cache.find(build_cache_key("a"), 2 * MINUTE) is None


def test_the_least_recently_used_result_is_removed_first() -> None:
    """The cache removes the least recently used result first and stores no result that is too large."""
    cache = QueryResultsCache(max_bytes=1000)
    for name in "abc":
        cache.store(build_cache_key(name), build_cached_result(300))
    assert cache.find(build_cache_key("a"), MINUTE) is not None
    cache.store(build_cache_key("d"), build_cached_result(300))
    assert [cache.find(build_cache_key(name), MINUTE) is not None for name in "abcd"] == [True, False, True, True]
    cache.store(build_cache_key("a"), build_cached_result(MAX_RESULT_BYTES + 1))
    assert cache.find(build_cache_key("a"), MINUTE) is None


def test_a_repeated_sql_statement_is_parsed_once() -> None:
    """A repeated SQL text is parsed once, and can be executed with other values on another cursor."""
    statements = StatementCache()
    with duckdb.connect() as connection:
        statement = statements.parse_select(connection, "SELECT $n + 1")
        assert statements.parse_select(connection.cursor(), "SELECT $n + 1") is statement
        results = [connection.cursor().execute(statement, {"n": n}).fetchall() for n in (1, 2)]
    assert results == [[(2,)], [(3,)]]


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "CREATE TABLE t (i INT)", ""])
def test_only_a_single_select_is_accepted(sql: str) -> None:
    """An SQL text other than one SELECT is rejected."""
    with duckdb.connect() as connection, pytest.raises(QueryError):
        StatementCache().parse_select(connection, sql)


def test_a_long_cached_statement_removes_others() -> None:
    """The total length of cached statements is limited; a new long statement removes older statements."""
    statements = StatementCache()
    with duckdb.connect() as connection:
        first = statements.parse_select(connection, "SELECT 1")
        statements.parse_select(connection, f"SELECT '{'x' * (MAX_CACHED_CHARACTERS - 10)}'")
        assert statements.parse_select(connection, "SELECT 1") is not first
