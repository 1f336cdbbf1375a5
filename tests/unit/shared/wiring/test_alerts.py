"""Tests of the selection of the store for alerts."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_settings_choose_the_store(choose: Choice) -> None:
    """The settings select the store of alerts, of the same kind as other stores."""
    assert choose(lambda services: services.alerts.store) == ("SqliteAlertStore", "CosmosAlertStore")
