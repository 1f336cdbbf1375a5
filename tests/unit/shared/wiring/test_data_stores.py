"""Tests of the selection of document stores."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_document_stores(find_store_classes: Choice) -> None:
    """The setting STORES selects the stores; on Azure, containers and documents are in one account."""
    assert find_store_classes(lambda services: services.data_stores.container_store) == (
        "SqliteContainerStore",
        "CosmosContainerStore",
    )
    assert find_store_classes(lambda services: services.data_stores.document_store) == (
        "SqliteDocumentStore",
        "CosmosDocumentStore",
    )
