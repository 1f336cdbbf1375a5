"""Tests of the number of store reads of a GraphQL request."""

import pytest

from bench.graphql_list import CALLER, QUERY, CountingStores, build_catalog, build_service, disable_limits

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
