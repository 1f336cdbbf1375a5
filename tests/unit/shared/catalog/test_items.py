"""Tests of the conversion of a workspace document to catalog items."""

from shared.catalog.document import load_document
from shared.catalog.items import MODELS, SINGLETON_KEY, ItemKind, definitions_from_document, to_definition
from tests.unit.shared.catalog.documents import PLANT

ITEMS = definitions_from_document(load_document(PLANT, "w.yaml"))


def test_each_item_of_the_document_has_its_kind_and_key() -> None:
    """The key of a member is its id, the key of a container is database and name, and the workspace has a fixed key."""
    assert set(ITEMS) == {
        (ItemKind.WORKSPACE, SINGLETON_KEY),
        (ItemKind.SETTINGS, SINGLETON_KEY),
        *((ItemKind.MEMBER, key) for key in ("admin@plant-a.example", "viewer@plant-a.example", "historian")),
        (ItemKind.CONNECTION, "rig"),
        (ItemKind.CONNECTION, "sim"),
        (ItemKind.SURFACE, "cooling"),
        (ItemKind.WARM_QUERY, "q1"),
        (ItemKind.WARM_QUERY, "q2"),
        (ItemKind.DATA_STORE, "mes"),
        (ItemKind.CONTAINER, "orders/workorders"),
        (ItemKind.CONTAINER, "orders/recipes"),
    }


def test_a_data_store_does_not_repeat_its_containers() -> None:
    """The definition of a data store omits its containers, which are separate items."""
    assert [database["containers"] for database in ITEMS[ItemKind.DATA_STORE, "mes"]["databases"]] == [[]]


def test_a_stored_definition_is_parsed_to_an_equal_model() -> None:
    """A stored definition that is parsed to its model and serialised again is unchanged."""
    for (kind, _), definition in ITEMS.items():
        assert to_definition(MODELS[ItemKind(kind)].model_validate(definition)) == definition
