"""Tests of the execution of GraphQL requests."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from bench.graphql_list import (
    CALLER,
    QUERY,
    CountingStores,
    build_catalog,
    build_graphql_service,
    relax_graphql_limits,
)
from shared.catalog.models import ParameterType, QueryParameter, WarmQuery
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.graphql_api.service import GraphQLResult, GraphQLService
from shared.runtime import Runtime
from shared.telemetry.connection_status import ConnectionStatus, ConnectionStatuses
from shared.warm_queries.ports import Column

DEEP = (
    "{ connections(first: 1000) { nodes { status stats { messagesReceived } surfaces { connections { status } "
    "queries { name surface { name connections { id } } } } } } }"
)


@pytest.mark.parametrize(("query", "reads"), [(QUERY, 2), (DEEP, 2), ("{ surfaces { nodes { id } } }", 1)])
async def test_a_list_needs_a_fixed_number_of_store_reads(query: str, reads: int) -> None:
    """A list of many connections needs as many store reads as a list of one."""
    for connections, surfaces in ((1, 1), (200, 10)):
        stores = CountingStores(build_catalog(connections, surfaces))
        with relax_graphql_limits():
            answer = await build_graphql_service(stores).run(CALLER, query, {}, None)
        assert (answer.executed, "errors" in answer.body) == (True, False)
        assert stores.count == reads


class RecordingPools:
    """Worker threads whose pools are recorded by name."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, thread_count: int, name: str) -> Executor:
        """Open a thread pool, and record its name."""
        self.opened.append(name)
        return ThreadPoolExecutor(thread_count, name)


class FailingColumns:
    """Source of result columns: those of ``q-1`` are unknown, other queries have ``count``; calls are recorded."""

    def __init__(self, count: int = 1) -> None:
        self.requested: list[list[str]] = []
        self.is_requested = asyncio.Event()
        self.may_reply = asyncio.Event()
        self.may_reply.set()
        self._columns = (Column("n", "long"),) * count

    async def resolve_all_columns_or_errors(
        self, queries: Sequence[WarmQuery]
    ) -> list[tuple[Column, ...] | WorkspaceError]:
        """Return the columns of each query, or the error of ``q-1``, once ``may_reply`` is set."""
        self.requested.append([query.lookup for query in queries])
        self.is_requested.set()
        await self.may_reply.wait()
        unknown = WorkspaceError(Kind.INVALID, "QUERY_INVALID", "The query does not bind.")
        return [unknown if query.lookup == "q-1" else self._columns for query in queries]


def build_service_with(
    catalog: Catalog, pools: RecordingPools, columns: FailingColumns | None = None
) -> GraphQLService:
    """Build a GraphQL service for a catalog, with recorded thread pools and result columns."""
    stores: Any = CountingStores(catalog)
    unused: Any = None
    source: Any = columns
    return GraphQLService(
        stores.load_catalog, stores, ConnectionStatuses(()), unused, source, runtime=Runtime(open_pool=pools.open)
    )


async def test_a_long_list_is_resolved_in_a_worker_thread() -> None:
    """A result with thousands of fields is computed in a worker thread, and equals that of short lists."""
    pools = RecordingPools()
    service = build_service_with(build_catalog(3_000, 1), pools)
    short = await service.run(CALLER, '{ surface(id: "s-0") { id } }', {}, None)
    assert (short.body, pools.opened) == ({"data": {"surface": {"id": "s-0"}}}, [])
    long = await service.run(CALLER, '{ surface(id: "s-0") { connections { id } } }', {}, None)
    ids = [each["id"] for each in long.body["data"]["surface"]["connections"]]
    assert (ids, pools.opened) == ([f"c-{number}" for number in range(3_000)], ["long GraphQL results"])


async def test_nested_lists_above_the_limit_are_rejected() -> None:
    """A cheap document whose nested lists have millions of items is rejected with the limit."""
    text = '{ surface(id: "s-0") { connections { surfaces { connections { id } } } } }'
    answer = await build_service_with(build_catalog(1_000, 1), RecordingPools()).run(CALLER, text, {}, None)
    assert not answer.executed
    [error] = answer.body["errors"]
    assert error["extensions"] == {"code": "VALIDATION_ERROR"}
    assert "more than 200000 fields" in error["message"]
    assert "data" not in answer.body


async def test_fields_that_a_second_selection_of_a_fragment_adds_count() -> None:
    """Fields that one of two selections adds to the list of a fragment count towards the limit."""
    more = " ".join(f"a{number}: name" for number in range(40))
    text = (
        f'{{ a: surface(id: "s-0") {{ ...f }} b: surface(id: "s-0") {{ ...f connections {{ {more} }} }} }} '
        "fragment f on Surface { connections { id } }"
    )
    answer = await build_service_with(build_catalog(5_000, 1), RecordingPools()).run(CALLER, text, {}, None)
    assert "more than 200000 fields" in answer.body["errors"][0]["message"]


def build_catalog_with_parameters(count: int) -> Catalog:
    """Return a workspace whose only query has many parameters."""
    parameters = tuple(QueryParameter(name=f"p{number}", type=ParameterType.LONG) for number in range(count))
    catalog = build_catalog(1, 1)
    stored = catalog.queries["q-0"]
    wide = replace(stored, value=stored.value.model_copy(update={"parameters": parameters}))
    return replace(catalog, queries={"q-0": wide})


QUERY_LISTS = ["parameters { name type }", "schema { columns { name type } }"]


async def run_with_aliases(field: str, alias_count: int, list_length: int, pools: RecordingPools) -> GraphQLResult:
    """Select a field of a query under several aliases; the query has ``list_length`` parameters and columns."""
    service = build_service_with(build_catalog_with_parameters(list_length), pools, FailingColumns(list_length))
    aliases = " ".join(f"a{number}: {field}" for number in range(alias_count))
    return await service.run(CALLER, f'{{ query(name: "q-0") {{ {aliases} }} }}', {}, None)


@pytest.mark.parametrize("field", QUERY_LISTS)
@pytest.mark.parametrize(("alias_count", "opened"), [(1, []), (2, ["long GraphQL results"])])
async def test_many_parameters_or_columns_are_resolved_in_a_worker_thread(
    field: str, alias_count: int, opened: list[str]
) -> None:
    """A result with thousands of parameters or columns is computed in a worker thread."""
    pools = RecordingPools()
    answer = await run_with_aliases(field, alias_count, 1_000, pools)
    assert ("errors" in answer.body, pools.opened) == (False, opened)
    lists = [each if isinstance(each, list) else each["columns"] for each in answer.body["data"]["query"].values()]
    assert [len(each) for each in lists] == [1_000] * alias_count


@pytest.mark.parametrize("field", QUERY_LISTS)
async def test_parameters_and_columns_above_the_limit_are_rejected(field: str) -> None:
    """A cheap document whose lists of parameters or columns have too many fields is rejected with the limit."""
    answer = await run_with_aliases(field, 50, 2_001, RecordingPools())
    assert not answer.executed
    [error] = answer.body["errors"]
    assert "lists of connections, surfaces and queries in the result have more than 200000" in error["message"]


async def test_a_principal_has_few_long_requests_at_once() -> None:
    """A long request of a principal is rejected while four of them run or wait, and those succeed."""
    service = build_service_with(build_catalog(3_000, 1), RecordingPools())
    text = '{ surface(id: "s-0") { connections { id } } }'
    results = await asyncio.gather(*(service.run(CALLER, text, {}, None) for _ in range(5)), return_exceptions=True)
    rejected = [each for each in results if isinstance(each, WorkspaceError)]
    assert [each.kind for each in rejected] == [Kind.THROTTLED]
    assert [each.executed for each in results if isinstance(each, GraphQLResult)] == [True] * 4


async def test_columns_of_long_lists_are_loaded_together_and_in_the_event_loop() -> None:
    """A worker thread gets the columns of each query, and an error for the query whose columns are unknown."""
    columns = FailingColumns()
    service = build_service_with(build_catalog(3_000, 1), RecordingPools(), columns)
    text = '{ surface(id: "s-0") { connections { id } queries { lookup schema { columns { name type } } } } }'
    answer = await service.run(CALLER, text, {}, None)
    assert answer.body["data"]["surface"]["queries"] == [
        {"lookup": "q-0", "schema": {"columns": [{"name": "n", "type": "long"}]}},
        {"lookup": "q-1", "schema": {"columns": []}},
    ]
    assert [error["path"] for error in answer.body["errors"]] == [["surface", "queries", 1, "schema"]]
    assert columns.requested == [["q-0", "q-1"]]


LONG_LIST = '{ surface(id: "s-0") { connections { id } } }'


async def test_a_long_request_occupies_no_thread_while_it_loads_columns() -> None:
    """While a long request waits for the query engine, the long request of another principal is executed."""
    columns = FailingColumns()
    columns.may_reply.clear()
    service = build_service_with(build_catalog(3_000, 1), RecordingPools(), columns)
    text = LONG_LIST.replace("{ id }", "{ id } queries { schema { columns { name } } }")
    waiting = asyncio.create_task(service.run(CALLER, text, {}, None))
    await columns.is_requested.wait()
    other = await service.run(replace(CALLER, member_id="other@t"), LONG_LIST, {}, None)
    assert other.executed
    assert not waiting.done()
    columns.may_reply.set()
    schemas = [each["schema"] for each in (await waiting).body["data"]["surface"]["queries"]]
    assert schemas == [{"columns": [{"name": "n"}]}, {"columns": []}]


class HeldPool(Executor):
    """Thread pool that executes its jobs only when a test requests it."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.has_job = asyncio.Event()

    def submit[**P, T](self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Store the job, which is running from now on."""
        job: Future[T] = Future()
        job.set_running_or_notify_cancel()
        self.jobs.append((job, partial(function, *args, **kwargs)))
        self.has_job.set()
        return job

    async def finish_job(self) -> None:
        """Wait for a job if there is none, and execute the oldest one."""
        await self.has_job.wait()
        job, function = self.jobs.pop(0)
        self.has_job.clear()
        job.set_result(function())


async def test_a_cancelled_long_request_occupies_the_thread_until_its_execution_ends() -> None:
    """After a cancellation, the next execution starts when the thread is free, not in the queue of the thread."""
    stores: Any = CountingStores(build_catalog(3_000, 1))
    pool, unused, are_collections_enabled = HeldPool(), cast("Any", None), []

    class Statuses(ConnectionStatuses):
        """Statuses that record whether garbage collections are enabled."""

        def derive_status(self, *arguments: Any) -> ConnectionStatus:
            """Record the state of the garbage collection, and derive the status."""
            are_collections_enabled.append(gc.isenabled())
            return super().derive_status(*arguments)

    runtime = Runtime(open_pool=lambda *_: pool)
    service = GraphQLService(stores.load_catalog, stores, Statuses(()), unused, unused, runtime=runtime)
    text = LONG_LIST.replace("{ id }", "{ status }")
    tasks = [
        asyncio.create_task(service.run(replace(CALLER, member_id=each), text, {}, None)) for each in ("ann", "bob")
    ]
    await pool.has_job.wait()
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(pool.jobs) == 1
    await pool.finish_job()
    await pool.finish_job()
    assert (await tasks[1]).executed
    assert set(are_collections_enabled) == {False}


async def test_an_introspection_is_executed_in_a_worker_thread() -> None:
    """An introspection is executed in a worker thread, because it takes longer than the event loop may be blocked."""
    pools = RecordingPools()
    service = build_service_with(build_catalog(1, 1), pools)
    assert (await service.run(CALLER, "{ __typename }", {}, None)).body == {"data": {"__typename": "Query"}}
    assert pools.opened == []
    reply = await service.run(CALLER, "{ __schema { queryType { name } } }", {}, None)
    assert reply.body == {"data": {"__schema": {"queryType": {"name": "Query"}}}}
    assert pools.opened == ["large texts"]


@pytest.mark.parametrize(
    ("document", "name", "rule"),
    [
        (
            "query A { __typename } query B { __typename }",
            None,
            "must have exactly one operation, or operationName must",
        ),
        ("query A { __typename }", "B", "has no operation with this name"),
    ],
)
async def test_an_unclear_operation_is_rejected_with_the_reason(document: str, name: str | None, rule: str) -> None:
    """A document with several operations and no ``operationName`` is rejected, and so is an unknown operation name."""
    answer = await build_graphql_service(CountingStores(build_catalog(1, 1))).run(CALLER, document, {}, name)
    assert answer.body["errors"][0]["message"].startswith(f"operationName: the document {rule}")
    assert answer.body["errors"][0]["extensions"] == {"code": "VALIDATION_ERROR"}


@pytest.mark.parametrize(
    "document",
    [
        f"{{ queries(first: 500) {{ nodes {{ {'name ' * 30} }} }} }}",
        f"{{ {'a: workspace { id } ' * 60} }}",
        f"{{ queries(first: 500) {{ nodes {{ {'...F ' * 30} }} }} }} fragment F on WarmQuery {{ name }}",
    ],
    ids=["fields", "aliases", "fragments"],
)
async def test_repeated_selections_count_once(document: str) -> None:
    """A selection that a document repeats counts once towards the limits, as it is executed once."""
    answer = await build_graphql_service(CountingStores(build_catalog(1, 1))).run(CALLER, document, {}, None)
    assert answer.executed, answer.body
