"""Tests of the selection of stores for the audit log."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_settings_choose_the_stores(choose: Choice) -> None:
    """The settings select the stores; the summaries of chains are stored with the chains."""
    assert choose(lambda services: services.provenance.chain_store) == ("SqliteChainStore", "CosmosChainStore")
    assert choose(lambda services: services.provenance.chain_overview) == (
        "SqliteChainOverview",
        "CosmosChainOverview",
    )
