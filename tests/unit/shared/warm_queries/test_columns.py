"""Tests of the cache of query columns."""

import asyncio

import pytest

from shared.catalog.models import WarmQuery
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.warm_queries import columns as module
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

COLUMNS = (Column("n", "long"),)


class Engine:
    """Fake query engine whose replies the test can delay."""

    def __init__(self) -> None:
        self.awake = asyncio.Event()
        self.broken = False
        self.rejects = False
        self.request_count = 0

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return a query's columns when the test allows it."""
        self.request_count += 1
        await self.awake.wait()
        if self.rejects:
            raise build_invalid_field_error("query", query.text, code="QUERY_INVALID")
        if self.broken:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", query.text)
        return EngineResult(COLUMNS, [], 1.0, approximations=("reduce (approximate)",))

    async def ping(self) -> None:
        """Report that the engine is reachable."""


def build_query(kql: str) -> WarmQuery:
    """Return a query with the given KQL text."""
    return WarmQuery(lookup="q", name="Q", surface="s", kql=kql)


async def test_columns_of_a_query_are_requested_once() -> None:
    """Columns are cached after the first request; for a query that the engine rejects, ``find`` returns None."""
    engine = Engine()
    engine.awake.set()
    columns = QueryColumns(engine)
    assert [await columns.find_columns(build_query("T | count")) for _ in range(3)] == [COLUMNS] * 3
    assert engine.request_count == 1
    engine.broken = True
    assert await columns.find_columns(build_query("T | take 1")) is None
    with pytest.raises(WorkspaceError):
        await columns.resolve_columns(build_query("T | take 1"))


async def test_approximate_functions_are_cached_with_the_columns() -> None:
    """The approximate functions of a query are cached with its columns."""
    engine = Engine()
    engine.awake.set()
    columns = QueryColumns(engine)
    assert columns.find_approximated_functions(build_query("T | reduce by s")) == ()
    await columns.resolve_columns(build_query("T | reduce by s"))
    assert columns.find_approximated_functions(build_query("T | reduce by s")) == ("reduce (approximate)",)


async def test_wait_for_unresponsive_engine_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the engine is slow, only one request is sent, and only the first caller waits for it, for a limited time."""
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
    engine = Engine()
    columns = QueryColumns(engine)
    assert await columns.find_columns(build_query("T | count")) is None
    monkeypatch.setattr(module, "WAIT_SECONDS", 3600.0)
    assert await asyncio.wait_for(columns.find_columns(build_query("T | count")), 60) is None
    assert await asyncio.wait_for(columns.find_columns(build_query("T | take 1")), 60) is None
    assert engine.request_count == 2
    engine.awake.set()
    assert await columns.resolve_columns(build_query("T | take 2")) == COLUMNS
    assert await columns.find_columns(build_query("T | count")) == COLUMNS
    assert engine.request_count == 3


async def test_cache_holds_all_queries_of_a_list() -> None:
    """If a list has more queries than the cache holds, the columns of each are still requested once."""
    engine = Engine()
    engine.awake.set()
    columns = QueryColumns(engine)
    queries = [build_query(f"T | take {number}") for number in range(module.MIN_CACHED + 10)]
    for each in queries:
        columns.enlarge_cache(len(queries))
        assert await columns.find_query_error(each) is None
    assert await columns.find_columns_of_queries(queries) == [COLUMNS] * len(queries)
    assert engine.request_count == len(queries)


async def test_long_list_does_not_wait_for_unknown_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a long list, cached columns are returned at once; missing columns are requested later, a few at a time."""
    monkeypatch.setattr(module, "MAX_AWAITED", 10)
    engine = Engine()
    columns = QueryColumns(engine)
    queries = [build_query(f"T | take {number}") for number in range(20)]
    assert await asyncio.wait_for(columns.find_columns_of_queries(queries), 60) == [None] * 20
    await asyncio.sleep(0)
    assert engine.request_count <= module.LIST_REQUESTS
    engine.awake.set()
    assert await columns.find_columns(queries[-1]) == COLUMNS
    assert [await columns.find_query_error(each) for each in queries] == [None] * 20
    assert engine.request_count == 20
    assert await columns.find_columns_of_queries(queries) == [COLUMNS] * 20


async def test_queued_requests_end_when_the_engine_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure of the engine, queued requests are not sent; the next list sends them."""
    monkeypatch.setattr(module, "MAX_AWAITED", 10)
    engine = Engine()
    engine.broken = True
    columns = QueryColumns(engine)
    queries = [build_query(f"T | take {number}") for number in range(20)]
    await columns.find_columns_of_queries(queries)
    engine.awake.set()
    queued = list(columns._queued.values())
    assert [result.code for result in await asyncio.gather(*queued) if isinstance(result, WorkspaceError)]
    assert engine.request_count == module.LIST_REQUESTS
    engine.broken = False
    assert await columns.find_columns(queries[0]) == COLUMNS


async def test_an_unknown_column_of_bag_unpack_gets_a_hint() -> None:
    """If a column is unknown after ``bag_unpack`` or ``pivot``, the error says that the query must declare it."""
    engine = Engine()
    engine.awake.set()
    engine.rejects = True
    columns = QueryColumns(engine)
    unresolved = "// Failed to resolve, which the fake engine repeats"
    for plugin in ("bag_unpack(d)", "pivot(d)"):
        with pytest.raises(WorkspaceError, match="must declare the columns") as caught:
            await columns.resolve_columns(build_query(f"T | evaluate {plugin} {unresolved}"))
        assert caught.value.code == "QUERY_INVALID"
    for other in (f"T | take 1 {unresolved}", "T | evaluate pivot(d)"):
        with pytest.raises(WorkspaceError) as caught:
            await columns.resolve_columns(build_query(other))
        assert "must declare" not in caught.value.detail


async def test_lists_do_not_send_a_rejected_query_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists do not send a rejected query to the engine again for some time; saving the query sends it at once."""
    engine = Engine()
    engine.awake.set()
    engine.rejects = True
    columns = QueryColumns(engine)
    assert [await columns.find_columns(build_query("T | wher")) for _ in range(3)] == [None] * 3
    assert engine.request_count == 1
    with pytest.raises(WorkspaceError):
        await columns.resolve_columns(build_query("T | wher"))
    assert engine.request_count == 2
    monkeypatch.setattr(module, "REJECTED_SECONDS", -1.0)
    await columns.find_columns(build_query("T | whe"))
    await columns.find_columns(build_query("T | whe"))
    assert engine.request_count == 4
