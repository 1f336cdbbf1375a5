"""Tests of finding items of the catalog through its indexes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.catalog.document import load_document
from shared.catalog.items import definitions_from_document
from shared.catalog.models import Member
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.catalog.reader import build_catalog
from shared.catalog.snapshot import Catalog
from tests.unit.shared.catalog.documents import PLANT

AT = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """Return the catalog of a document with an item of every kind."""
    items = definitions_from_document(load_document(PLANT, "w.yaml")).items()
    stored = tuple(CatalogItem(kind, key, value, ItemOrigin.DECLARED, AT, AT, "x") for (kind, key), value in items)
    return build_catalog(StoredCatalog(1, stored))


@pytest.mark.parametrize(("name", "lookup"), [("q1", "q1"), ("cooling/q1", "q1"), ("q2", "q2"), ("First", None)])
def test_a_query_is_found_by_lookup_and_by_api_path(catalog: Catalog, name: str, lookup: str | None) -> None:
    """A query is found by its lookup (id in URLs) and by its API path, but not by its display name."""
    found = catalog.find_query(name)
    assert (None if found is None else found.value.lookup) == lookup


def test_surfaces_are_found_by_connection(catalog: Catalog) -> None:
    """The surfaces of a connection are those that contain it; there may be none."""
    assert (catalog.list_surface_lookups_of_connection("rig"), catalog.list_surface_lookups_of_connection("none")) == (
        ("cooling",),
        (),
    )


def test_the_longest_list_of_a_connection_or_surface_is_known(catalog: Catalog) -> None:
    """The longest list is that of a surface's connections, of its queries, or of a connection's surfaces."""
    surface = catalog.surfaces["cooling"]
    long = replace(surface, value=surface.value.model_copy(update={"connections": ("a", "b", "c", "d", "e", "f", "g")}))
    assert replace(catalog, surfaces={"cooling": long}).longest_nested_list_length == 7
    assert replace(catalog, surfaces={"cooling": long}, queries={}).longest_nested_list_length == 7
    assert replace(catalog, surfaces={}, queries={}).longest_nested_list_length == 0


def test_a_missing_or_disabled_connection_is_not_enabled(catalog: Catalog) -> None:
    """A connection is enabled only if it exists and is not disabled."""
    rig = catalog.connections["rig"]
    disabled = replace(rig, value=rig.value.model_copy(update={"enabled": False}))
    assert catalog.is_connection_enabled("rig")
    assert not catalog.is_connection_enabled("none")
    assert not replace(catalog, connections={"rig": disabled}).is_connection_enabled("rig")


def test_a_database_is_found_with_its_store_and_containers(catalog: Catalog) -> None:
    """A database is found by its lookup without its store, because lookups are unique in the workspace."""
    found = catalog.find_database("orders")
    assert found is not None
    assert (found.store, sorted(found.containers)) == ("mes", ["recipes", "workorders"])
    assert catalog.find_database("mes") is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"role": "Editor"}, False), ({"enabled": False}, False), ({"service": True}, False)],
)
def test_an_administrator_is_an_enabled_person(changes: dict[str, object], *, expected: bool) -> None:
    """Enabled persons with the role Admin are administrators; services and disabled members are not."""
    member = Member.model_validate({"id": "a", "name": "A", "role": "Admin", **changes})
    catalog = Catalog(members={"a": member})
    assert (catalog.is_administrator("a"), catalog.is_administrator("b")) == (expected, False)
