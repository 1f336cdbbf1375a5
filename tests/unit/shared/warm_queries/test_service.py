"""Tests of executing warm queries: the engine's request and the caller's result."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import MAX_LISTED, Kind, WorkspaceError
from shared.runtime import Runtime
from shared.timestamps import format_rfc3339, now, parse_rfc3339
from shared.validation.names import MAX_HINTS
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from shared.warm_queries.results import QueryResult
from shared.warm_queries.service import MAX_BYTES, ResultCache, WarmQueries

APPROVAL = {"approvedBy": "admin@x", "approvedAt": "2026-01-05T08:00:00Z"}


class Engine:
    """Fake query engine that records requests and returns fixed rows."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self.rows = rows
        self.requests: list[EngineQuery] = []

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the fixed rows."""
        self.requests.append(query)
        return EngineResult((Column("t", "datetime"), Column("v", "real")), self.rows[: query.max_records], 1.25)

    async def ping(self) -> None:
        """Report that the engine is reachable."""


def build_query(lookup: str, **more: Any) -> CatalogEntry[WarmQuery]:
    """Return a stored query with the given lookup."""
    definition = {"lookup": lookup, "name": lookup.title(), "surface": "s", "kql": "Telemetry | count", **more}
    return CatalogEntry(WarmQuery.model_validate(definition), now(), now(), "editor@x")


def build_service(engine: Engine) -> WarmQueries:
    """Return a query service with two approved queries, a draft, and a query that reads other data."""
    parameters = [{"name": "device", "type": "string", "default": ""}, {"name": "n", "type": "long"}]
    queries = {
        "plain": build_query("plain", approval=APPROVAL, apiPath="area/plain"),
        "draft": build_query("draft"),
        "typed": build_query("typed", approval=APPROVAL, parameters=parameters),
        "outside": build_query("outside", approval=APPROVAL, kql="cluster('x').database('y').T"),
    }

    async def return_catalog() -> Catalog:
        return Catalog(queries=queries)

    return WarmQueries(return_catalog, engine, 30)


ROWS = [[f"2026-01-01T00:00:0{second}Z", float(second)] for second in range(5)]


async def execute_query(engine: Engine, lookup: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Execute a query with the default settings."""
    return await build_service(engine).execute(lookup, more.get("time_range"), more.get("limit", 1000), arguments or {})


async def get_error(lookup: str, arguments: Mapping[str, Any] | None = None) -> WorkspaceError:
    """Execute a query that is rejected before it reaches the engine, and return the error."""
    engine = Engine(ROWS)
    with pytest.raises(WorkspaceError) as refused:
        await execute_query(engine, lookup, arguments)
    assert engine.requests == []
    return refused.value


@pytest.mark.parametrize("lookup", ["plain", "area/plain"])
async def test_query_is_found_by_lookup_and_api_path(lookup: str) -> None:
    """A query can be executed by its lookup or by its API path, with the same result, which contains the approval."""
    run = await execute_query(Engine(ROWS), lookup)
    assert (run.query, run.truncated, len(run.rows)) == ("Plain", False, 5)
    assert run.rows[1] == {"t": "2026-01-01T00:00:01.000000Z", "v": 1.0}
    assert run.approval is not None
    assert run.approval.approved_by == "admin@x"


@pytest.mark.parametrize("lookup", ["nothing", "Plain", "area/plain/", "area"])
async def test_unknown_lookup_is_not_found(lookup: str) -> None:
    """A lookup or API path must match exactly, also in letter case; the error names both kinds of id."""
    error = await get_error(lookup)
    assert error.code == "WARM_QUERY_NOT_FOUND"
    assert error.detail == f"No warm query has the lookup (short name in URLs) or API path {lookup!r}."


async def test_draft_cannot_be_executed() -> None:
    """A draft is rejected before its parameters are validated."""
    error = await get_error("draft", {"unknown": "1"})
    assert (error.kind, error.code) == (Kind.FORBIDDEN, "QUERY_NOT_APPROVED")


async def test_one_more_row_shows_that_a_result_is_truncated() -> None:
    """The service requests one row more than the limit, to find out whether the result is truncated."""
    engine = Engine(ROWS)
    run = await execute_query(engine, "plain", limit=4)
    assert (len(run.rows), run.truncated, engine.requests[0].max_records) == (4, True, 5)
    assert not (await execute_query(Engine(ROWS), "plain", limit=5)).truncated


async def test_time_range_is_bound_as_parameters() -> None:
    """The start and end of a timeRange are sent as parameters of a filter that precedes the query."""
    engine = Engine(ROWS)
    run = await execute_query(engine, "plain", time_range=timedelta(hours=2))
    [requests] = engine.requests
    assert requests.text.endswith("\nTelemetry | count")
    assert "between (_oi_from .. _oi_to)" in requests.text
    start, end = (parse_rfc3339(requests.parameters[name][9:-1]) for name in ("_oi_from", "_oi_to"))
    assert (end - start, end) == (timedelta(hours=2), run.executed_at)


async def test_declared_parameters_are_bound_as_literals() -> None:
    """Each declared parameter is sent as a literal with the caller's value or the default, never as query text."""
    engine = Engine(ROWS)
    hostile = 'x" or true | project Payload //'
    await execute_query(engine, "typed", {"n": "42", "device": hostile})
    assert engine.requests[0].parameters == {"n": "long(42)", "device": hostile}
    assert hostile not in engine.requests[0].text
    await execute_query(engine, "typed", {"n": 42})
    assert engine.requests[1].parameters == {"n": "long(42)", "device": ""}


async def test_all_invalid_parameters_are_listed() -> None:
    """Missing, invalid and unknown parameters are listed together."""
    error = await get_error("typed", {"device": 5, "other": "x"})
    assert [failing["field"] for failing in error.members["errors"]] == ["p.other", "p.device", "p.n"]  # type: ignore[attr-defined]


async def test_a_repeated_argument_is_listed_with_the_other_errors() -> None:
    """An argument that was sent several times is an error of its own, also for a parameter that has a default."""
    engine = Engine(ROWS)
    with pytest.raises(WorkspaceError) as refused:
        await build_service(engine).execute(
            "typed", None, 9, {"device": "a", "other": "x"}, repeated_names={"device", "other"}
        )
    errors: Any = refused.value.members["errors"]
    assert [each["field"] for each in errors] == ["p.other", "p.device", "p.n"]
    assert errors[1]["message"] == "is repeated; send it once"
    assert engine.requests == []


async def test_at_most_a_thousand_unknown_parameters_are_listed() -> None:
    """The first 1,000 unknown parameters are listed, with a similar name for the first 20, and all are counted."""
    error = await get_error("typed", {f"devices{number}": 1 for number in range(60_000)})
    errors: Any = error.members["errors"]
    assert len(errors) == MAX_LISTED + 1
    assert errors[-1]["message"] == "60001 errors were found; at most 1000 of them are listed"
    assert sum("did you mean" in each["message"] for each in errors) == MAX_HINTS


async def test_result_is_cached_within_cache_seconds() -> None:
    """For the duration ``cacheSeconds``, a call with equal arguments returns the cached result."""
    engine = Engine(ROWS)
    queries = {
        "kept": build_query("kept", approval=APPROVAL, cacheSeconds=60, parameters=[{"name": "n", "type": "long"}]),
    }

    async def return_catalog() -> Catalog:
        return Catalog(queries=queries)

    warm = WarmQueries(return_catalog, engine, 30)
    first = await warm.execute("kept", timedelta(hours=1), 10, {"n": 1})
    again = await warm.execute("kept", timedelta(hours=1), 10, {"n": "1"})
    other = await warm.execute("kept", timedelta(hours=1), 10, {"n": 2})
    assert (first.from_cache, again.from_cache, other.from_cache) == (False, True, False)
    assert (again.executed_at, again.rows) == (first.executed_at, first.rows)
    assert len(engine.requests) == 2
    assert parse_rfc3339(engine.requests[0].parameters["_oi_to"][9:-1]) == first.executed_at
    plain = await warm.execute("kept", None, 10, {"n": 1})
    assert plain.from_cache is False
    assert [requests.cache_seconds for requests in engine.requests] == [0, 0, 60]


async def test_a_result_from_before_the_approval_is_not_used() -> None:
    """The engine may return only results that are younger than the approval to which they are attributed."""
    engine, at = Engine(ROWS), datetime(2026, 1, 5, 9, tzinfo=UTC)
    approval = {"approvedBy": "admin@x", "approvedAt": format_rfc3339(at - timedelta(seconds=20))}
    queries = {"kept": build_query("kept", approval=approval, cacheSeconds=60)}

    async def return_catalog() -> Catalog:
        return Catalog(queries=queries)

    warm = WarmQueries(return_catalog, engine, 30, runtime=Runtime(now=lambda: at))
    await warm.execute("kept", None, 10, {})
    assert engine.requests[0].cache_seconds == 20


@pytest.mark.parametrize("first_by_column", [False, True])
async def test_a_cached_result_is_returned_by_row_and_by_column(first_by_column: bool) -> None:  # noqa: FBT001  a case
    """A cached result can be returned both as rows and as values by column, so that the query runs only once."""
    engine = Engine(ROWS)
    queries = {"kept": build_query("kept", approval=APPROVAL, cacheSeconds=60)}

    async def return_catalog() -> Catalog:
        return Catalog(queries=queries)

    warm = WarmQueries(return_catalog, engine, 30)
    await warm.execute("kept", None, 10, {}, allows_column_values=first_by_column)
    by_row = await warm.execute("kept", None, 10, {})
    by_column = await warm.execute("kept", None, 10, {}, allows_column_values=True)
    assert [row["v"] for row in by_row.rows] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert (by_row.values, by_row.row_count, by_column.row_count) == (None, 5, 5)
    assert by_row.executed_at == by_column.executed_at
    assert len(engine.requests) == 1


async def test_changed_query_does_not_return_cached_result() -> None:
    """A cached result is returned only for the version of the query that was approved when it was cached."""
    engine = Engine(ROWS)
    queries = {"kept": build_query("kept", approval=APPROVAL, cacheSeconds=60)}

    async def return_catalog() -> Catalog:
        return Catalog(queries=dict(queries))

    warm = WarmQueries(return_catalog, engine, 30)
    await warm.execute("kept", None, 10, {})
    queries["kept"] = build_query("kept", approval=APPROVAL, cacheSeconds=60, kql="Telemetry | take 1")
    assert (await warm.execute("kept", None, 10, {})).from_cache is False
    queries["kept"] = build_query("kept", cacheSeconds=60, kql="Telemetry | take 1")
    with pytest.raises(WorkspaceError, match="draft"):
        await warm.execute("kept", None, 10, {})


async def test_query_that_violates_newer_rule_is_rejected() -> None:
    """An approved query that reads data outside the workspace is rejected before it reaches the engine."""
    assert (await get_error("outside")).code == "QUERY_INVALID"


AT = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


def build_result(rows: int, *, by_column: bool = False, size: int = 0, at: datetime = AT) -> QueryResult:
    """Return a result with the given number of rows, size in bytes and time of execution."""
    objects = [] if by_column else [{"n": number} for number in range(rows)]
    values = (list(range(rows)),) if by_column else None
    return QueryResult("q", at, (Column("n", "long"),), objects, False, 1.0, None, values=values, size=size)


def find_cached_keys(cache: ResultCache, at: datetime = AT) -> str:
    """Return the keys from ``a`` to ``d`` whose results are cached and usable at the given time."""
    return "".join(key for key in "abcd" if cache.find_result(key, at) is not None)


def test_a_cached_result_expires() -> None:
    """A result is cached until it is older than the cache time of its query."""
    cache = ResultCache()
    cache.store_result("a", build_result(1), HOUR, AT)
    assert cache.find_result("a", AT + HOUR) is not None
    assert cache.find_result("a", AT + 2 * HOUR) is None
    assert cache.find_result("a", AT) is None


def test_expired_results_are_removed_when_another_one_is_cached() -> None:
    """A result that has expired is removed when another one is cached, although no caller requests it again."""
    cache = ResultCache()
    cache.store_result("a", build_result(1), HOUR, AT)
    cache.store_result("b", build_result(1), 3 * HOUR, AT)
    cache.store_result("c", build_result(1, at=AT + 2 * HOUR), HOUR, AT + 2 * HOUR)
    assert find_cached_keys(cache, AT) == "b"
    assert find_cached_keys(cache, AT + 2 * HOUR) == "b"


def test_a_result_is_not_used_after_the_clock_was_set_back() -> None:
    """If the clock was set back to a time before a cached result, the result's age is unknown, so it is not used."""
    cache = ResultCache()
    cache.store_result("a", build_result(1), HOUR, AT)
    assert cache.find_result("a", AT - timedelta(seconds=1)) is None
    assert cache.find_result("a", AT) is None


@pytest.mark.parametrize("by_column", [False, True])
def test_the_least_recently_used_results_are_evicted(by_column: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001  a case
    """The cache has a maximum number of rows; a result with more rows is not cached."""
    monkeypatch.setattr("shared.warm_queries.service.MAX_ROWS", 10)
    cache = ResultCache()
    for key in ("a", "b"):
        cache.store_result(key, build_result(4, by_column=by_column), HOUR, AT)
    assert cache.find_result("a", AT) is not None
    cache.store_result("c", build_result(4, by_column=by_column), HOUR, AT)
    cache.store_result("d", build_result(11, by_column=by_column), HOUR, AT)
    assert find_cached_keys(cache) == "ac"


def test_the_size_of_cached_results_is_limited() -> None:
    """The cache has a maximum size in bytes; a larger result is not cached, and replaces an older one of its key."""
    cache = ResultCache()
    for key in ("a", "b"):
        cache.store_result(key, build_result(1, size=MAX_BYTES // 2), HOUR, AT)
    assert find_cached_keys(cache) == "ab"
    cache.store_result("c", build_result(1, size=1), HOUR, AT)
    assert find_cached_keys(cache) == "bc"
    cache.store_result("d", build_result(1, size=MAX_BYTES + 1), HOUR, AT)
    cache.store_result("b", build_result(1, size=MAX_BYTES + 1), HOUR, AT)
    assert find_cached_keys(cache) == "c"
    cache.store_result("a", build_result(1, size=MAX_BYTES - 1), HOUR, AT)
    assert find_cached_keys(cache) == "ac"


async def test_a_result_of_a_call_that_started_later_stays_cached() -> None:
    """A slow call does not remove the cached result of a call that started later and ended earlier."""
    times = [AT, AT + timedelta(seconds=5)]
    is_running, may_end = asyncio.Event(), asyncio.Event()

    class SlowEngine(Engine):
        async def execute(self, query: EngineQuery) -> EngineResult:
            reply = await super().execute(query)
            if len(self.requests) == 1:
                is_running.set()
                await may_end.wait()
            return reply

    async def return_catalog() -> Catalog:
        return Catalog(queries={"kept": build_query("kept", approval=APPROVAL, cacheSeconds=60)})

    warm = WarmQueries(return_catalog, SlowEngine(ROWS), 30, runtime=Runtime(now=lambda: times[is_running.is_set()]))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(warm.execute("kept", None, 1, {}))
        await is_running.wait()
        await warm.execute("kept", None, 2, {})
        may_end.set()
    assert [(await warm.execute("kept", None, limit, {})).from_cache for limit in (1, 2)] == [True, True]
