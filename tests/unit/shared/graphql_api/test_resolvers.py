"""Tests of the columns of warm queries in GraphQL lists, and of the rows of executed queries."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, cast

import orjson
import pytest

from bench.graphql_list import CALLER, CountingStores
from shared.catalog.models import Surface, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import build_invalid_field_error
from shared.graphql_api.service import GraphQLService
from shared.runtime import LARGE, Runtime
from shared.telemetry.connection_status import ConnectionStatuses
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from shared.warm_queries.results import QueryResult

AT = datetime(2026, 1, 1, tzinfo=UTC)
KQL = {"a": "print n = 1", "b": "Telemetry | wher x", "c": ".drop table Telemetry", "d": "print m = 1"}
NODES = [
    {"name": "a", "schema": {"columns": [{"name": "n"}]}},
    {"name": "b", "schema": {"columns": []}},
    {"name": "c", "schema": {"columns": []}},
    {"name": "d", "schema": {"columns": [{"name": "n"}]}},
]


class Engine:
    """Fake engine that rejects queries with ``wher``."""

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Accept a query, or reject a query that contains ``wher``."""
        if "wher " in query.text:
            raise build_invalid_field_error("query", "'wher' is no operator", code="QUERY_INVALID")
        return EngineResult((Column("n", "long"),), [], 1.0)

    async def ping(self) -> None:
        """Report that the engine is reachable."""


def build_catalog() -> Catalog:
    """Return a workspace with valid and invalid warm queries."""
    stored = {key: WarmQuery(lookup=key, name=key, surface="s", kql=kql) for key, kql in KQL.items()}
    return Catalog(
        version=1,
        workspace=None,
        surfaces={"s": CatalogEntry(Surface(lookup="s", name="S"), AT, AT, "")},
        queries={key: CatalogEntry(query, AT, AT, "") for key, query in stored.items()},
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{ queries { nodes { name schema { columns { name } } } } }", ["queries", "nodes"]),
        (
            '{ surface(id: "s") { queries { name schema { columns { name } } } } }',
            ["surface", "queries"],
        ),
    ],
)
async def test_invalid_query_does_not_affect_other_queries(text: str, place: list[str]) -> None:
    """In a list of warm queries, an invalid query has an error instead of columns; the valid queries have columns."""
    stores = CountingStores(build_catalog())
    service = GraphQLService(
        stores.load_catalog, cast("Any", stores), ConnectionStatuses(()), cast("Any", None), QueryColumns(Engine())
    )
    answer = await service.run(CALLER, text, {}, None)
    value: Any = answer.body["data"]
    for step in place:
        value = value[step]
    assert value == NODES
    assert [(error["path"], error["extensions"]["reason"]) for error in answer.body["errors"]] == [
        ([*place, 1, "schema"], "QUERY_INVALID"),
        ([*place, 2, "schema"], "QUERY_NOT_READ_ONLY"),
    ]


class CountingPool(ThreadPoolExecutor):
    """Thread pool that counts the submitted jobs."""

    jobs = 0

    def submit[**P, T](self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Count the job and execute it."""
        self.jobs += 1
        return super().submit(function, *args, **kwargs)


class Queries:
    """Fake service that executes warm queries: each query returns one row, from a large reply of the engine.

    Args:
        column_count: number of columns of each result.
    """

    def __init__(self, column_count: int = 1) -> None:
        self.executions = 0
        self.arguments: object = None
        self._columns = (Column("n", "long"),) * column_count

    async def execute(self, lookup: str, *options: object) -> QueryResult:
        """Count the execution, record the arguments of the query, and return the result."""
        self.executions += 1
        _time_range, _max_rows, self.arguments, _format_field_name = options
        return QueryResult(lookup, AT, self._columns, [{"n": 1}], False, 1.0, None, size=LARGE)


def build_service(queries: Queries, pool: CountingPool) -> GraphQLService:
    """Build a GraphQL service whose worker threads are those of a pool."""
    stores: Any = CountingStores(build_catalog())
    return GraphQLService(
        stores.load_catalog,
        stores,
        ConnectionStatuses(()),
        cast("Any", queries),
        QueryColumns(Engine()),
        runtime=Runtime(open_pool=lambda *_: pool),
    )


@pytest.mark.parametrize(
    ("selection", "result", "jobs"),
    [
        ("meta { rowCount }", {"meta": {"rowCount": 1}}, 0),
        ("meta { rowCount } rows @skip(if: true)", {"meta": {"rowCount": 1}}, 0),
        ("...R", {"rows": [{"n": 1}]}, 1),
        ("rows again: rows", {"rows": [{"n": 1}], "again": [{"n": 1}]}, 1),
    ],
)
async def test_rows_of_a_query_are_serialised_once_if_they_are_selected(
    selection: str, result: dict[str, Any], jobs: int
) -> None:
    """The rows of an executed query are serialised only if the request selects them, and once for all aliases."""
    with CountingPool(1) as pool:
        service = build_service(Queries(), pool)
        text = f'mutation {{ executeQuery(name: "a") {{ {selection} }} }} '
        fragment = "fragment R on ExecuteQueryResult { rows }" if "...R" in selection else ""
        answer = await service.run(CALLER, text + fragment, {}, None)
    assert orjson.loads(orjson.dumps(answer.body)) == {"data": {"executeQuery": result}}
    assert pool.jobs == jobs


async def test_the_error_about_an_unknown_query_names_the_name() -> None:
    """The error of `executeQuery` about an unknown query says that no query has this name, lookup or API path."""
    stores: Any = CountingStores(build_catalog())
    queries = cast("Any", Queries())
    service = GraphQLService(stores.load_catalog, stores, ConnectionStatuses(()), queries, QueryColumns(Engine()))
    answer = await service.run(CALLER, 'mutation { executeQuery(name: "Pressure per hour") { rows } }', {}, None)
    [error] = answer.body["errors"]
    assert error["extensions"]["code"] == "RESOURCE_NOT_FOUND"
    assert error["message"] == "No warm query has the name, lookup or API path 'Pressure per hour'."


@pytest.mark.parametrize(("arguments", "field"), [("limit: 0", "limit"), ('timeRange: "P1Y"', "timeRange")])
async def test_limit_and_time_range_are_validated_before_the_query_is_looked_up(arguments: str, field: str) -> None:
    """The error of `executeQuery` is about an invalid `limit` or `timeRange`, also if the query is unknown."""
    stores: Any = CountingStores(build_catalog())
    queries = cast("Any", Queries())
    service = GraphQLService(stores.load_catalog, stores, ConnectionStatuses(()), queries, QueryColumns(Engine()))
    answer = await service.run(CALLER, f'mutation {{ executeQuery(name: "gone", {arguments}) {{ rows }} }}', {}, None)
    [error] = answer.body["errors"]
    assert error["extensions"]["code"] == "VALIDATION_ERROR"
    assert [each["field"] for each in error["extensions"]["errors"]] == [field]


@pytest.mark.parametrize(
    ("max_bytes", "selection", "path"),
    [
        (7, "rows", None),
        (6, "rows", ["a", "rows"]),
        (7, "rows again: rows", ["a", "again"]),
    ],
)
async def test_rows_above_the_size_of_a_reply_have_an_error(
    max_bytes: int, selection: str, path: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that exceed the limit of a reply, also under a second alias, have an error, and no further query runs."""
    for module in ("resolvers", "request"):
        monkeypatch.setattr(f"shared.graphql_api.{module}.MAX_REPLY_BYTES", max_bytes)
    queries = Queries()
    second = 'b: executeQuery(name: "a") { meta { rowCount } }'
    text = f'mutation {{ a: executeQuery(name: "a") {{ {selection} }} {second} }}'
    with CountingPool(1) as pool:
        answer = await build_service(queries, pool).run(CALLER, text, {}, None)
    if path is None:
        assert orjson.loads(orjson.dumps(answer.body["data"]["a"])) == {"rows": [{"n": 1}]}
        assert (answer.row_bytes, queries.executions) == (len(b'{"n":1}'), 2)
    else:
        error = answer.body["errors"][0]
        assert (error["path"], error["extensions"], answer.body["data"]) == (path, {"code": "VALIDATION_ERROR"}, None)
        assert error["message"].startswith("The reply has more than")
        assert queries.executions == 1


async def test_the_columns_of_a_mutation_have_a_limit() -> None:
    """The columns in the result of a mutation have at most 10,000 fields, because the event loop processes them."""
    text = 'mutation { executeQuery(name: "a") { columns { name type } } }'
    with CountingPool(1) as pool:
        largest = await build_service(Queries(5_000), pool).run(CALLER, text, {}, None)
        larger = await build_service(Queries(5_001), pool).run(CALLER, text, {}, None)
    assert "errors" not in largest.body
    assert not larger.executed
    assert "in the result have more than 10000 fields" in larger.body["errors"][0]["message"]


@pytest.mark.parametrize("default", ["", ' = "2026-01-05T08:00:00+01:00"'])
async def test_a_variable_of_type_date_time_is_text_in_parameters(default: str) -> None:
    """A variable of type DateTime, and its default, can be used in the parameters of a query; its value is a text."""
    queries, sent = Queries(), "2026-01-05T08:00:00+01:00"
    text = (
        f"mutation($at: DateTime{default}, $all: [DateTime!]) "
        '{ executeQuery(name: "a", parameters: {at: $at, all: $all}) { meta { rowCount } } }'
    )
    with CountingPool(1) as pool:
        variables = {"all": [sent]} if default else {"at": sent, "all": [sent]}
        answer = await build_service(queries, pool).run(CALLER, text, variables, None)
        rejected = await build_service(queries, pool).run(CALLER, text, {"at": "yesterday"}, None)
    assert answer.body == {"data": {"executeQuery": {"meta": {"rowCount": 1}}}}
    assert queries.arguments == {"at": sent, "all": [sent]}
    assert "RFC 3339" in rejected.body["errors"][0]["message"]


async def test_a_literal_has_as_many_levels_as_a_json_body() -> None:
    """A JSON literal in a document has at most 100 levels, as a JSON body has."""
    replies = []
    with CountingPool(1) as pool:
        for levels in (99, 100):
            parameters = f"{{v: {'[' * levels}1{']' * levels}}}"
            text = f'mutation {{ executeQuery(name: "a", parameters: {parameters}) {{ meta {{ rowCount }} }} }}'
            replies.append((await build_service(Queries(), pool).run(CALLER, text, {}, None)).body)
    assert replies[0] == {"data": {"executeQuery": {"meta": {"rowCount": 1}}}}
    [error] = replies[1]["errors"]
    assert error["extensions"] == {"code": "VALIDATION_ERROR"}
    assert "must not be nested deeper than 100 levels" in error["message"]


@pytest.mark.parametrize(
    ("value", "is_accepted"), [("x" * 499_998, True), ("x" * 499_999, False), (2**70, True), ({"n": [2**70]}, True)]
)
async def test_a_literal_repeats_its_variables_only_up_to_a_limit(value: object, *, is_accepted: bool) -> None:
    """The repetitions of variables in a literal have at most 1,000,000 characters, as a whole query would be built."""
    text = 'mutation($p: JSON) { executeQuery(name: "a", parameters: {v: [$p, $p, $p]}) { meta { rowCount } } }'
    with CountingPool(1) as pool:
        answer = await build_service(Queries(), pool).run(CALLER, text, {"p": value}, None)
    assert ("errors" not in answer.body) == is_accepted
    if not is_accepted:
        assert "at most 1000000 characters" in answer.body["errors"][0]["message"]
