"""Tests of the execution of GraphQL requests."""

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from bench.graphql_list import CALLER, QUERY, CountingStores, build_catalog, build_service, disable_limits
from shared.graphql_api.service import GraphQLService
from shared.runtime import Runtime
from shared.telemetry.connection_status import ConnectionStatuses

DEEP = (
    "{ connections(first: 1000) { nodes { status stats { messagesReceived } surfaces { connections { status } "
    "queries { name surface { name connections { id } } } } } } }"
)


@pytest.mark.parametrize(("query", "reads"), [(QUERY, 2), (DEEP, 2), ("{ surfaces { nodes { id } } }", 1)])
async def test_a_list_needs_a_fixed_number_of_store_reads(query: str, reads: int) -> None:
    """A list of many connections needs as many store reads as a list of one."""
    for connections, surfaces in ((1, 1), (200, 10)):
        stores = CountingStores(build_catalog(connections, surfaces))
        with disable_limits():
            answer = await build_service(stores).run(CALLER, query, {}, None)
        assert (answer.executed, "errors" in answer.body) == (True, False)
        assert stores.count == reads


async def test_an_introspection_is_executed_in_a_worker_thread() -> None:
    """An introspection is executed in a worker thread, because it takes longer than the event loop may be blocked."""
    pools: list[str] = []

    def open_pool(thread_count: int, name: str) -> Executor:
        pools.append(name)
        return ThreadPoolExecutor(thread_count, name)

    stores: Any = CountingStores(build_catalog(1, 1))
    unused: Any = None
    runtime = Runtime(open_pool=open_pool)
    service = GraphQLService(stores.current, stores, ConnectionStatuses(()), unused, unused, runtime=runtime)
    assert (await service.run(CALLER, "{ __typename }", {}, None)).body == {"data": {"__typename": "Query"}}
    assert pools == []
    reply = await service.run(CALLER, "{ __schema { queryType { name } } }", {}, None)
    assert reply.body == {"data": {"__schema": {"queryType": {"name": "Query"}}}}
    assert pools == ["large texts"]


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
    answer = await build_service(CountingStores(build_catalog(1, 1))).run(CALLER, document, {}, name)
    assert answer.body["errors"][0]["message"].startswith(f"operationName: the document {rule}")
    assert answer.body["errors"][0]["extensions"] == {"code": "VALIDATION_ERROR"}
