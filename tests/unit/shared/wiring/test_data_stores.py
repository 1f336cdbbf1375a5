"""Tests of the selection of document stores."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_settings_choose_the_stores(choose: Choice) -> None:
    """The settings select the stores; containers and documents are in one account."""
    assert choose(lambda services: services.data_stores.container_store) == (
        "SqliteContainerStore",
        "CosmosContainerStore",
    )
    assert choose(lambda services: services.data_stores.document_store) == (
        "SqliteDocumentStore",
        "CosmosDocumentStore",
    )
