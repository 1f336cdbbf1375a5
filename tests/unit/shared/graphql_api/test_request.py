"""Tests of finding warm queries in a GraphQL request."""

from typing import Any

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.graphql_api.request import GraphQLRequest
from shared.timestamps import now


def build_stored_query(lookup: str, name: str) -> CatalogEntry[WarmQuery]:
    """Return the catalog entry of a warm query."""
    query = WarmQuery(lookup=lookup, name=name, surface="hall", kql="Telemetry")
    return CatalogEntry(query, now(), now(), "editor@x")


def test_a_lookup_has_priority_over_an_equal_name() -> None:
    """If a name is the lookup of one query and the name of another, it selects the query with the lookup."""
    catalog = Catalog(
        queries={"pressure": build_stored_query("pressure", "Pressure"), "mine": build_stored_query("mine", "pressure")}
    )
    absent: Any = None
    request = GraphQLRequest(absent, catalog, {}, absent, absent, absent)
    found = [request.find_query_by_name_or_lookup(name) for name in ("pressure", "Pressure", "mine", "nothing")]
    assert [each and each.value.lookup for each in found] == ["pressure", "pressure", "mine", None]
