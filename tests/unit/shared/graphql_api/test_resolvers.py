"""Tests of the columns of warm queries in GraphQL lists."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from bench.graphql_list import CALLER, CountingStores
from shared.catalog.models import Surface, WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import invalid
from shared.graphql_api.service import GraphQLService
from shared.telemetry.connection_status import ConnectionStatuses
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

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
            raise invalid("query", "'wher' is no operator", code="QUERY_INVALID")
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
        stores.current, cast("Any", stores), ConnectionStatuses(()), cast("Any", None), QueryColumns(Engine())
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
