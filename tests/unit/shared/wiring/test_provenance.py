"""Tests of the selection of stores for the audit log."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_audit_stores(find_store_classes: Choice) -> None:
    """The setting STORES selects the stores; the summaries of chains are stored with the chains."""
    assert find_store_classes(lambda services: services.provenance.chain_store) == (
        "SqliteChainStore",
        "CosmosChainStore",
    )
    assert find_store_classes(lambda services: services.provenance.chain_overview) == (
        "SqliteChainOverview",
        "CosmosChainOverview",
    )
