"""Tests of queries through the SDK: filters, order, aggregates and pages."""

from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import ContainerProxy, DatabaseProxy
from azure.cosmos.exceptions import CosmosHttpResponseError

from emulators.cosmos import CosmosServer, FaultKind, InjectedFault

ITEMS: list[dict[str, Any]] = [
    {"id": f"i{n:02}", "pk": f"p{n % 3}", "n": n, "even": n % 2 == 0, "tags": ["x", n % 4], "deep": {"s": f"t{n % 5}"}}
    for n in range(40)
]
INDEXES: Any = {
    "indexingMode": "consistent",
    "includedPaths": [{"path": "/n/?"}, {"path": "/even/?"}, {"path": "/deep/*"}],
    "excludedPaths": [{"path": "/*"}],
    "compositeIndexes": [[{"path": "/even", "order": "ascending"}, {"path": "/n", "order": "descending"}]],
}


@pytest.fixture
async def filled_container(database: DatabaseProxy) -> ContainerProxy:
    """Return a container with forty items in three logical partitions, spread over three physical partitions."""
    container = await database.create_container("filled", PartitionKey("/pk"), indexing_policy=INDEXES)
    for item in ITEMS:
        await container.create_item(item)
    return container


async def _query_all_items(container: ContainerProxy, query: str, **options: Any) -> list[Any]:
    return [result async for result in container.query_items(query, **options)]


FILTERS: list[tuple[str, Any]] = [
    ("c.n >= 10 AND c.n < 20", lambda i: 10 <= i["n"] < 20),
    ("c.n BETWEEN 3 AND 5 OR c.n = 30", lambda i: i["n"] in (3, 4, 5, 30)),
    ("NOT (c.even = true)", lambda i: not i["even"]),
    ("c.deep.s IN ('t1', 't2')", lambda i: i["deep"]["s"] in ("t1", "t2")),
    ("c['deep']['s'] NOT IN ('t1', 't2')", lambda i: i["deep"]["s"] not in ("t1", "t2")),
    ("STARTSWITH(c.id, @prefix) AND c.n != 11", lambda i: i["id"].startswith("i1") and i["n"] != 11),
    ("ARRAY_CONTAINS(c.tags, 3)", lambda i: 3 in i["tags"]),
    ("IS_DEFINED(c.missing) OR IS_NULL(c.n)", lambda _: False),
    ("c.n > '5'", lambda _: False),
    ("c.n != '5'", lambda _: True),
]


@pytest.mark.parametrize(("condition", "is_match"), FILTERS, ids=[condition for condition, _ in FILTERS])
async def test_a_query_filter_selects_items(filled_container: ContainerProxy, condition: str, is_match: Any) -> None:
    """A query returns the items that match its filter, in one partition or in all."""
    parameters = [{"name": "@prefix", "value": "i1"}]
    query = f"SELECT VALUE c.id FROM c WHERE {condition}"
    everywhere = await _query_all_items(filled_container, query, parameters=parameters)
    assert sorted(everywhere) == [item["id"] for item in ITEMS if is_match(item)]
    here = await _query_all_items(filled_container, query, parameters=parameters, partition_key="p1")
    assert here == [item["id"] for item in ITEMS if is_match(item) and item["pk"] == "p1"]


@pytest.mark.parametrize("partition", [{}, {"partition_key": "p1"}], ids=["all", "one"])
@pytest.mark.parametrize(
    ("clause", "key"),
    [
        ("ORDER BY c.n", lambda i: i["n"]),
        ("ORDER BY c.n DESC", lambda i: -i["n"]),
        ("ORDER BY c.even ASC, c.n DESC", lambda i: (i["even"], -i["n"])),
        ("ORDER BY c.even DESC, c.n ASC", lambda i: (-i["even"], i["n"])),
    ],
)
async def test_order_by_sorts_over_pages_and_partitions(
    filled_container: ContainerProxy, partition: dict[str, Any], clause: str, key: Any
) -> None:
    """ORDER BY sorts correctly over several pages and partitions."""
    found = await _query_all_items(filled_container, f"SELECT * FROM c {clause}", max_item_count=4, **partition)
    expected = sorted((item for item in ITEMS if not partition or item["pk"] == "p1"), key=key)
    assert [item["id"] for item in found] == [item["id"] for item in expected]


@pytest.mark.parametrize("partition", [{}, {"partition_key": "p1"}], ids=["all", "one"])
async def test_top_and_offset_limit_count_over_partitions(
    filled_container: ContainerProxy, partition: dict[str, Any]
) -> None:
    """TOP and OFFSET LIMIT count results over several pages and partitions."""
    numbers = [item["n"] for item in ITEMS if not partition or item["pk"] == "p1"]
    top = await _query_all_items(
        filled_container, "SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC", max_item_count=2, **partition
    )
    assert top == numbers[::-1][:5]
    query = "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET @skip LIMIT 5"
    parameters = [{"name": "@skip", "value": 3}]
    assert (
        await _query_all_items(filled_container, query, parameters=parameters, max_item_count=2, **partition)
        == numbers[3:8]
    )


@pytest.mark.parametrize("partition", [{}, {"partition_key": "p1"}], ids=["all", "one"])
async def test_aggregates_combine_values_of_all_partitions(
    filled_container: ContainerProxy, partition: dict[str, Any]
) -> None:
    """COUNT, SUM, MIN, MAX and AVG combine the values of all partitions."""
    numbers = [item["n"] for item in ITEMS if not partition or item["pk"] == "p1"]
    expected = {
        "COUNT(1)": len(numbers),
        "SUM(c.n)": sum(numbers),
        "MIN(c.n)": min(numbers),
        "MAX(c.n)": max(numbers),
        "AVG(c.n)": sum(numbers) / len(numbers),
    }
    found = {
        call: (await _query_all_items(filled_container, f"SELECT VALUE {call} FROM c", **partition))[0]
        for call in expected
    }
    assert found == expected


async def test_a_query_returns_only_the_listed_fields(filled_container: ContainerProxy) -> None:
    """A query with a list of fields returns only these fields; fields that an item lacks are left out."""
    query = "SELECT r.id, r.deep.s AS text, r.missing, r.tags[0] AS first FROM root r WHERE r.n = 7"
    assert await _query_all_items(filled_container, query) == [{"id": "i07", "text": "t2", "first": "x"}]


@pytest.mark.parametrize("partition", [{}, {"partition_key": "p1"}], ids=["all", "one"])
async def test_the_next_page_continues_after_the_last_item(
    filled_container: ContainerProxy, partition: dict[str, Any]
) -> None:
    """The next page starts after the last item of the previous page, even if items were added or removed meanwhile."""
    seen: list[str] = []
    token = None
    while True:
        pages: Any = filled_container.query_items(
            "SELECT * FROM c WHERE c.n >= 0", max_item_count=5, **partition
        ).by_page(token)
        seen += [item["id"] async for item in await anext(pages)]
        await filled_container.create_item({"id": f"new{len(seen)}", "pk": "p0", "n": -1})
        token = pages.continuation_token
        if not token:
            break
        await filled_container.delete_item(seen[-1], ITEMS[int(seen[-1][1:])]["pk"])
    assert sorted(seen) == [item["id"] for item in ITEMS if not partition or item["pk"] == "p1"]


async def test_a_continuation_token_of_another_query_is_rejected(filled_container: ContainerProxy) -> None:
    """A continuation token that is invalid or belongs to another query is rejected with 400."""
    pages: Any = filled_container.query_items("SELECT * FROM c", partition_key="p1", max_item_count=1).by_page()
    await anext(pages)
    for token, query in ((pages.continuation_token, "SELECT * FROM c WHERE c.n > 1"), ("nonsense", "SELECT * FROM c")):
        other = filled_container.query_items(query, partition_key="p1").by_page(token)
        with pytest.raises(CosmosHttpResponseError, match="Invalid Continuation Token"):
            await anext(other)


async def test_read_all_items_returns_every_item(filled_container: ContainerProxy) -> None:
    """The SDK's read_all_items returns every item of every partition."""
    assert sorted([item["id"] async for item in filled_container.read_all_items(max_item_count=7)]) == [
        i["id"] for i in ITEMS
    ]


async def test_read_items_returns_the_requested_items_in_order(filled_container: ContainerProxy) -> None:
    """read_items returns the existing items among the requested ones, in the requested order."""
    found = await filled_container.read_items([("i07", "p1"), ("i00", "p0"), ("nothing", "p1"), ("i08", "p2")])
    assert [item["id"] for item in found] == ["i07", "i00", "i08"]


async def test_order_by_requires_an_index(filled_container: ContainerProxy) -> None:
    """ORDER BY requires an index on its path; ORDER BY with two paths requires a composite index."""
    for clause, message in (("c.id, c.n", "composite index"), ("c.tags", "is excluded"), ("c.n, c.even", "composite")):
        with pytest.raises(CosmosHttpResponseError, match=message):
            await _query_all_items(filled_container, f"SELECT * FROM c ORDER BY {clause}", partition_key="p1")
    assert len(await _query_all_items(filled_container, "SELECT * FROM c ORDER BY c.deep.s", partition_key="p1")) == 13


@pytest.mark.parametrize(
    "query",
    [
        "SELECT",
        "SELECT * FROM c WHERE",
        "SELECT DISTINCT VALUE c.n FROM c",
        "SELECT * FROM c JOIN t IN c.tags",
        "SELECT c.n FROM c GROUP BY c.n",
        "SELECT * FROM c WHERE c.n LIKE 'x'",
        "SELECT * FROM c WHERE c.n + 1 = 2",
        "SELECT * FROM c WHERE x.n = 1",
        "SELECT * FROM c WHERE c.n = @missing",
        "SELECT * FROM c WHERE REGEXMATCH(c.id, 'x')",
        "SELECT * FROM c; DROP",
    ],
)
async def test_unsupported_cosmos_queries_are_rejected(filled_container: ContainerProxy, query: str) -> None:
    """Unsupported queries are rejected with 400."""
    with pytest.raises(CosmosHttpResponseError) as caught:
        await _query_all_items(filled_container, query, partition_key="p1")
    assert caught.value.status_code == 400


async def test_partial_and_empty_pages_lose_no_items(server: CosmosServer, filled_container: ContainerProxy) -> None:
    """A query returns all items even if the server returns partial and empty pages."""
    server.faults.add_all(
        [InjectedFault(FaultKind.PARTIAL_PAGE, page_size=0, times=3), InjectedFault(FaultKind.PARTIAL_PAGE, times=3)]
    )
    found = await _query_all_items(
        filled_container, "SELECT VALUE c.n FROM c ORDER BY c.n", partition_key="p1", max_item_count=10
    )
    assert found == [item["n"] for item in ITEMS if item["pk"] == "p1"]


async def test_a_partial_page_of_a_count_counts_a_part_of_the_items(
    server: CosmosServer, filled_container: ContainerProxy
) -> None:
    """If the server ends the page of a count early, each page has the count of a part of the items."""
    server.faults.add(InjectedFault(FaultKind.PARTIAL_PAGE, page_size=2, times=1))
    counts = await _query_all_items(filled_container, "SELECT VALUE COUNT(1) FROM c", partition_key="p1")
    assert counts == [2, sum(item["pk"] == "p1" for item in ITEMS) - 2]


async def test_sorted_pages_continue_after_changes_of_the_last_item(filled_container: ContainerProxy) -> None:
    """Sorted pages continue correctly after the last item of a page was changed or removed."""
    seen: list[int] = []
    token = None
    while True:
        query = "SELECT VALUE c.n FROM c WHERE c.n >= 0 ORDER BY c.n DESC"
        pages: Any = filled_container.query_items(query, partition_key="p1", max_item_count=3).by_page(token)
        seen += [number async for number in await anext(pages)]
        token = pages.continuation_token
        if not token:
            break
        last = ITEMS[seen[-1]]
        await filled_container.upsert_item({**last, "n": -1}) if seen[-1] % 2 else await filled_container.delete_item(
            last["id"], "p1"
        )
        await filled_container.create_item({"id": f"new{len(seen)}", "pk": "p1", "n": 100})
    assert seen == [item["n"] for item in ITEMS[::-1] if item["pk"] == "p1"]
