"""Finding the items of a request."""

from typing import Any

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.graphql_api.request import GraphQLRequest
from shared.timestamps import now


def stored(lookup: str, name: str) -> CatalogEntry[WarmQuery]:
    """Return a stored query."""
    query = WarmQuery(lookup=lookup, name=name, surface="hall", kql="Telemetry")
    return CatalogEntry(query, now(), now(), "editor@x")


def test_a_lookup_is_not_shadowed_by_a_name() -> None:
    """In a catalog that is older than the rule on names, a lookup leads to its own query."""
    catalog = Catalog(queries={"pressure": stored("pressure", "Pressure"), "mine": stored("mine", "pressure")})
    absent: Any = None
    request = GraphQLRequest(absent, catalog, {}, absent, absent)
    found = [request.find_query(name) for name in ("pressure", "Pressure", "mine", "nothing")]
    assert [each and each.value.lookup for each in found] == ["pressure", "pressure", "mine", None]
